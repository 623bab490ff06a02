# SPDX-License-Identifier: MIT
"""README.md's table of costs, made of what was measured."""
import os
import resource
import subprocess
import sys

from . import figures, rounds, table

PARTS = ("switch", "ledger", "sample", "overhead", "request", "span", "registration", "hooks")
BARE = "beyond the bare switch in the same process"
PYTHON_PROFILERS = ("empty handler", "greenprof 1000", "greenprof exact", "cProfile")


def found(label):
    return table.measured.get(label)


def amount(label, digits, unit, sign=""):
    """A figure as the table shows it; what was left out is said."""
    estimate = found(label)
    if estimate is None:
        return "not measured"
    return f"{estimate.value:{sign}.{digits}f} ±{estimate.error:.{digits}f} {unit}"


def switch():
    return (f"{amount(f'assembly, linked, resting / {BARE}', 1, 'ns', '+')} at rest, "
            f"{amount(f'announced, sampling at 1000 Hz / {BARE}', 0, 'ns', '+')} while sampling, the ledger included")


def sample():
    return (f"{amount('1000 Hz: greenprof beyond the empty handler', 1, '%')}; in the handler "
            f"{amount('1000 Hz: the same, inside the handler only', 2, '%')}, in a service's first half "
            f"second {amount('service, 1000 Hz, its first half second', 1, 'us')} a sample")


def request():
    return (f"{amount('start + stop + free', 1, 'us')}, {amount('start + stop + free, CPU', 1, 'us')} of it the caller's CPU; "
            f"{amount('a request, with its trace', 0, 'ns')}")


def made():
    resting, sampled = (amount(f"makecontext, {how}", 0, "ns") for how in ("preloaded, resting", "greenprof run -F 1000"))
    return f"{resting} at rest, {sampled} while sampling ({amount('makecontext, greenprof absent', 0, 'ns')} without)"


def hooked():
    names = [name for name in table.measured if name.endswith("greenprof run -F 1000 / beyond the bare runtime")]
    return "; ".join(f"{name.split(',')[0]} {amount(name, 0, 'ns', '+')}" for name in names) or "not measured"


def started(bench):
    """The CPU time of the command beyond that of a program that does nothing, in turns."""
    commands = [os.path.join(bench.build, "tools/greenprof/greenprof"), "--version"], ["/bin/true"]
    took = [[cpu_of(command) for command in commands] for _ in range(bench.rounds(100))]
    beyond = rounds.Estimate.of_values([(mine - other) * 1e3 for mine, other in took])
    return f"{beyond.value:.1f} ±{beyond.error:.1f} ms"


def cpu_of(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def span_of(values):
    return f"x{min(values):.2f} to {max(values):.2f}" if values else "not measured"


def python(bench):
    """Ratios over the programs, from tools/bench/python/run."""
    command = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python/run"), "--build",
               bench.build, "--no-accuracy", "--no-switches", "-g", "1", "-r", str(max(3, int(10 * bench.effort))),
               *(f"--only={name}" for name in PYTHON_PROFILERS)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    if done.returncode != 0:
        return "not measured"
    ratios = list(figures.of_python(done.stdout))
    of = {name: [value for label, _, value in ratios if name in label and "beside" not in label] for name in PYTHON_PROFILERS}
    return (f"{span_of(of['greenprof 1000'])} (empty handler: {span_of(of['empty handler'])}); "
            f"{span_of(of['greenprof exact'])} (cProfile: {span_of(of['cProfile'])})")


def show(bench, machine):
    rows = (
        ("a coroutine switch", switch(), "`tools/bench/run switch ledger`"),
        ("1000 Hz beyond an empty handler", sample(), "`tools/bench/run sample overhead`"),
        ("a request's profile; with its trace", request(), "`tools/bench/run request span`"),
        ("a coroutine made", made(), "`tools/bench/run registration`"),
        ("a hooked runtime's switch while sampling", hooked(), "`tools/bench/run hooks`"),
        ("the command's start beyond `true`", started(bench), "`tools/bench/run --table`"),
        ("Python, 1000 Hz; exact mode", python(bench), "`tools/bench/python/run`"),
    )
    sys.stdout.flush()
    print(f"On {machine}:\n\n| | measured | reproduced by |\n|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")
