# SPDX-License-Identifier: MIT
"""15. Remains of `greenprof attach`: a process that was attached to, worked, and was detached from, beside an untouched one;
and beside it another untouched one, which says how far two processes of one program differ."""
import os
import shutil
import subprocess

from . import table
from .rounds import Comparison

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PYTHON = "/usr/bin/python3"
WORK_WHILE_ATTACHED = 20  # blocks
WORK_AFTER = 20           # blocks unmeasured: some hooks go once nobody has looked for a while
# title, program or script, which work, units in one, ms a block, rounds
LOADS = [
    ("ucontext: a switch", "switch_ucontext", 0, 2, 1, 400),
    ("greenlet: a switch", "greenlet_work.py", 0, 2, 2, 300),
    ("greenlet: a new one that ends at once", "greenlet_work.py", 1, 1, 2, 300),
    ("Ruby: a switch of Fibers", "hooks.rb", 0, 2, 2, 300),
    ("service: a request (SQLite, JSON, zlib)", "service_work", 0, 1, 30, 60),
]


def command_of(bench, program):
    """Its command line; None where something is missing."""
    if program.endswith(".py"):
        has = subprocess.run([PYTHON, "-c", "import greenlet"], stderr=subprocess.DEVNULL, check=False).returncode == 0
        return [PYTHON, os.path.join(HERE, program)] if has else None
    if program.endswith(".rb"):
        ruby = shutil.which("ruby")
        return [ruby, os.path.join(HERE, program)] if ruby else None
    return [bench.program(program), "--pin", str(bench.cpu)] if bench.has(program) else None


def greenprof(bench, *arguments):
    done = subprocess.run([os.path.join(bench.build, "tools/greenprof/greenprof"), *map(str, arguments)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())


def start(bench, command):
    return bench.under(["taskset", "-c", bench.cpu, *command])


def detached(bench, worker, which):
    """The same worker, once it was attached to while it worked, and detached from."""
    amount = 1
    while worker.block(amount, which).cpu < 2e6:
        amount *= 4
    greenprof(bench, "attach", worker.process.pid, "-o", bench.capture_path())
    for _ in range(WORK_WHILE_ATTACHED):
        worker.block(amount, which)
    greenprof(bench, "detach", worker.process.pid)
    for _ in range(WORK_AFTER):
        worker.block(amount, which)
    return worker


def measure(bench, title, command, which, units, milliseconds, rounds):
    never, again, after = (f"{title}, {what}" for what in ("never attached to", "another such process", "detached"))
    comparison = Comparison(lambda: {
        never: (start(bench, command), which),
        again: (start(bench, command), which),
        after: (detached(bench, start(bench, command), which), which),
    }, milliseconds, bench.rounds(rounds), warm_up_ms=100)
    first = comparison.cpu_ns(never).value
    for name in comparison.names:
        cost = comparison.cpu_ns(name)
        table.figure(name, cost.scaled(1 / units), "ns", ratio=cost.value / first)
        if name != never:
            table.figure("    beyond the first", comparison.extra_ns(name, never).scaled(1 / units), "ns")
            table.figure("    of it", comparison.extra_percent(name, never), "%")


def run(bench):
    table.heading("15. detached: ns of CPU, beside a process that was never attached to")
    for title, program, which, units, milliseconds, rounds in LOADS:
        command = command_of(bench, program)
        if command is None:
            table.line(f"{title}: not installed")
        else:
            measure(bench, title, command, which, units, milliseconds, rounds)
    table.line(f"load {os.getloadavg()[0]:.1f}")
