# SPDX-License-Identifier: MIT
"""Nova's scheduler with a profile for each of 8 overlapping requests, under `greenprof run`, and with others' profilers."""
import os
import subprocess
import sys

from . import table
from .progress import Progress
from .rounds import Comparison, Estimate, take_turns
from .worker import Worker

PASTE = "/usr/share/nova-common/api-paste.ini"
PROGRAM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python/nova_work.py")
REQUESTS, REQUESTS_MS = 16, 1300  # of a turn, and about what they take
GENERATIONS, ROUNDS = 3, 30  # generations: one where little is to be done
AT_REST, FINISHED, DUMPED, EXACT, C_PROFILE, OF_EVENTLET = range(6)  # KINDS of nova_work.py
PROFILED = ("a profile each, finish()", "a profile each, stop() and dump_stats()")
REFERENCES = {"exact mode, finish()": EXACT, "cProfile each": C_PROFILE, "eventlet.green.profile each": OF_EVENTLET}


def is_there():
    tried = subprocess.run([sys.executable, "-c", "import nova.tests.functional, placement, wsgi_intercept, oslotest"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return tried.returncode == 0 and os.path.exists(PASTE)


def worker(bench, prefix=()):
    files = os.path.join(bench.scratch, "nova")
    os.makedirs(files, exist_ok=True)
    return Worker([*prefix, sys.executable, "-W", "ignore", "-B", PROGRAM, files],
                  {"PYTHONPATH": os.path.join(bench.build, "src/python"), "PYTHONHASHSEED": "0"}, subprocess.DEVNULL)


def variants(bench):
    """Variants of a worker. The ones in the same process differ by nothing else."""
    greenprof = os.path.join(bench.build, "tools/greenprof/greenprof")
    mine = worker(bench)
    return {"without greenprof": (worker(bench), AT_REST),
            "`greenprof run`": (worker(bench, (greenprof, "run", "-F", "1000", "-o", bench.capture_path(), "--")), AT_REST),
            "imported, at rest": (mine, AT_REST), PROFILED[0]: (mine, FINISHED), PROFILED[1]: (mine, DUMPED)}


class Times(Progress):
    def round(self, blocks):
        base, *others = blocks
        self.found(f"times {base}: " + "; ".join(f"{name}: {blocks[name].cpu / blocks[base].cpu:.2f}" for name in others))


def others_percent(comparison, name):
    """The part of a turn's CPU time that threads other than the program's took."""
    return Estimate.of_generations([[100 * block.figures[0] / block.cpu for block in blocks] for blocks in comparison.blocks[name]])


def times(comparison, name, base):
    return comparison.extra_percent(name, base).scaled(0.01).minus(Estimate(-1))


def show(comparison):
    table.figure("a request, without greenprof", comparison.cpu_ns("without greenprof").scaled(1e-6), "ms of CPU", digits=1)
    table.figure("`greenprof run`", times(comparison, "`greenprof run`", "without greenprof"), "times", digits=3)
    for name in PROFILED:
        table.figure(name, times(comparison, name, "imported, at rest"), "times", digits=3, bound=(1.03, "<= 1.03"),
                     note="in the same process")
        table.figure("    beside a process without greenprof", times(comparison, name, "without greenprof"), "times", digits=3)
        table.figure("    of it in greenprof's threads", others_percent(comparison, name), "%")


def show_references(bench):
    rounds = max(1, int(3 * bench.effort))
    table.progress("others' profilers")
    for name, which in REFERENCES.items():
        process = worker(bench)
        blocks = take_turns({"alone": (process, AT_REST), name: (process, which)}, REQUESTS, rounds + 1,
                            reversed_in_turns(), Times(rounds + 1).round)
        ratios = [mine.cpu / alone.cpu for mine, alone in zip(blocks[name][1:], blocks["alone"][1:])]
        failed = f"{blocks[name][-1].figures[1]:.0f} of {(rounds + 1) * REQUESTS} requests failed"
        table.figure(name, Estimate.of_values(ratios), "times", note=failed)
        process.close()


def reversed_in_turns():
    return lambda order: order.reverse()


def run(bench):
    table.heading("Nova's scheduler, 8 requests at once: CPU of the process, its threads included")
    if not is_there():
        return table.line("left out: python3-nova, nova-common, python3-placement, python3-oslotest or python3-wsgi-intercept is missing")
    generations = max(1, min(GENERATIONS, round(GENERATIONS * bench.effort)))
    rounds = max(3, bench.rounds(ROUNDS) // generations)
    show(Comparison(lambda: variants(bench), REQUESTS_MS, rounds * generations, 2 * REQUESTS_MS, generations, REQUESTS,
                    Times(rounds * generations)))
    show_references(bench)
