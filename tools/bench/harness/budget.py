# SPDX-License-Identifier: MIT
"""13. `greenprof run --budget 1%`: what it takes of the CPU time of three loads, once it has found its rate, by the
process' clock and by greenprof's own account."""
import os
import random
import subprocess

from . import table
from .rounds import Estimate, amount_for

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GENERATIONS, PIECES, BLOCK_MS, SETTLE_S = 3, 5, 400, 15
TURNS = 15  # of a piece: longer than recording and resting take turns
BUDGET, TOLERANCE = 1.0, 0.2
PYTHON = "/usr/bin/python3"


def loads(bench):
    """name: command line; None where something is missing."""
    def program(name):
        return [bench.program(name), "--pin", str(bench.cpu)] if bench.has(name) else None
    has_eventlet = subprocess.run([PYTHON, "-c", "import eventlet"], stderr=subprocess.DEVNULL, check=False).returncode == 0
    python = [PYTHON, os.path.join(HERE, "eventlet_work.py"), "--pin", str(bench.cpu)]
    return {"service: SQLite, JSON, zlib on coroutines": program("service_work"),
            "switches: one every 7 us": program("switch_work"),
            "Python: eventlet's green threads": python if has_eventlet else None}


def generation(bench, command, turns, shuffle):
    """Percent beyond the plain program, by pieces; and what greenprof says that it took."""
    capture = bench.capture_path()
    greenprof = os.path.join(bench.build, "tools/greenprof/greenprof")
    plain = bench.bare(command)
    budgeted = bench.under([greenprof, "run", "-q", "--budget", f"{BUDGET}%", "-o", capture, "--", *command])
    amount = amount_for(plain, BLOCK_MS)
    clock = {plain: 0, budgeted: 0}

    def process_ns(worker):
        """CPU time of all threads since the block before: what they do while others have their turn is a cost, too."""
        now = worker.block(amount).process
        took, clock[worker] = now - clock[worker], now
        return took
    for _ in range(int(SETTLE_S * 1000 / BLOCK_MS)):
        process_ns(budgeted)
    extra = []
    process_ns(plain)
    for _ in range(PIECES):
        took = {plain: 0, budgeted: 0}
        for _ in range(turns):
            order = [plain, budgeted]
            shuffle(order)
            for worker in order:
                took[worker] += process_ns(worker)
        extra.append(100.0 * took[budgeted] / took[plain] - 100)
    plain.close()
    budgeted.close()
    said = subprocess.run([greenprof, "info", capture], check=True, stdout=subprocess.PIPE, text=True).stdout
    return extra, [line.strip() for line in said.splitlines() if line.strip().startswith(("own cost", "budget", "rested"))]


def run(bench):
    table.heading(f"13. budget: CPU of the process under --budget {BUDGET:g}%, beyond the process alone")
    shuffle = random.Random(1).shuffle
    for name, command in loads(bench).items():
        if command is None:
            table.line(f"{name}: not installed")
            continue
        generations = [generation(bench, command, bench.rounds(TURNS), shuffle) for _ in range(GENERATIONS)]
        table.figure(name, Estimate.of_generations([extra for extra, _ in generations]), "%",
                     bound=(BUDGET + TOLERANCE, f"must hold <= {BUDGET + TOLERANCE:g} %"))
        for line in generations[-1][1]:
            table.line("    " + line)
