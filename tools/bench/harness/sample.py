# SPDX-License-Identifier: MIT
"""2. The cost of a sample beyond an empty SIGPROF handler driven by the same timer."""
import statistics
import subprocess

from . import table
from .rounds import Comparison, Estimate, amount_for

OVERHEAD_BOUND = (1.0, "must hold <= 1 %")
BLOCK_MS = 20
ENGINES = ("perf", "cpu")  # monotonic is sent by a thread of greenprof's own, which the empty handler has not
FIRST_BOUND = (4.0, "must hold <= 4 us")
SLICES = ("its first half second", "its second half second")
SHAPES = ((10, 0, "10 frames"), (50, 0, "50 frames"), (50, 1, "50 new frames every 50 us"))


def run(bench):
    table.heading("2. sample: us per sample, delivery and lost caches included")
    engines(bench)
    for depth, changing, text in SHAPES:
        for hz in (1000, 10000):
            one(bench, hz, f"{text}, {hz} Hz", ("--depth", depth, "--changing", changing))
    first_seconds(bench)


def engines(bench):
    """The kernel's cost of a signal, by the engine that drives it. The cpu engine comes at the kernel's tick at most."""
    comparison = Comparison(
        lambda: {engine: (bench.empty("sample_work", 1000, engine=engine), 0) for engine in ENGINES},
        BLOCK_MS, bench.rounds(100))
    for engine in ENGINES:
        table.figure(f"empty handler, engine {engine}, 1000 Hz asked", comparison.figure(engine, 2).scaled(1e-3), "us",
                     note=f"({comparison.signals_per_second(engine):.0f} signals/s)")


def one(bench, hz, label, arguments):
    def make():
        return {
            "empty": (bench.empty("sample_work", hz, *arguments), 0),
            "greenprof": (bench.run("sample_work", hz, *arguments, probed=True), 0),
        }

    comparison = Comparison(make, BLOCK_MS, bench.rounds(200 if hz == 1000 else 80))
    empty, whole = comparison.figure("empty", 2), comparison.figure("greenprof", 2)
    beyond = comparison.figure_beyond("greenprof", "empty", 2)
    inside = comparison.figure_beyond("greenprof", "empty", 0)
    table.figure(f"{label}: empty handler", empty.scaled(1e-3), "us",
                 note=f"({comparison.signals_per_second('empty'):.0f} signals/s)")
    table.figure("    greenprof", whole.scaled(1e-3), "us", ratio=whole.value / empty.value,
                 note=f"({comparison.signals_per_second('greenprof'):.0f} signals/s)")
    table.figure("    beyond the empty handler", beyond.scaled(1e-3), "us")
    table.figure("    of that, inside the handler", inside.scaled(1e-3), "us")
    table.figure(f"    {hz} Hz beyond the empty handler", beyond.scaled(hz / 1e7), "%",
                 bound=OVERHEAD_BOUND if hz == 1000 else None)
    collector(bench, hz, arguments)


def collector(bench, hz, arguments):
    """The collector's CPU, from one long block: its rounds go on while others work."""
    worker = bench.run("sample_work", hz, *arguments)
    amount = amount_for(worker, 1000 * min(1.0, bench.effort))
    before, block = worker.block(1), worker.block(amount)
    worker.close()
    own = block.process - before.process - block.cpu
    table.figure("    collector thread, per sample", Estimate(own / 1e3 / (block.cpu / 1e9 * hz)), "us",
                 note=f"({100 * own / block.cpu:.2f} % of the program's CPU)")


def first_seconds(bench):
    """The dearest samples: a process' first ones, where every row is new and every page of memory is touched first."""
    programs = [("sample_work", ("--depth", 50), "50 frames")]
    if bench.has("service_work"):
        programs.append(("service_work", (), "service"))
    for name, arguments, text in programs:
        for at, (inside, empty) in enumerate(first_second(bench, name, arguments)):
            figure = inside.minus(empty)
            table.figure(f"{text}, 1000 Hz, {SLICES[at]}", figure.scaled(1e-3), "us",
                         bound=FIRST_BOUND, note=f"(the empty handler {empty.value / 1e3:.1f} more)")


def first_second(bench, name, arguments):
    """For each of SLICES: ns inside greenprof's handler, and inside the empty one. Processes in turns."""
    quiet = {"errors": subprocess.DEVNULL}
    probe = bench.plain(name, *arguments, **quiet)
    amount = amount_for(probe, 500)
    probe.close()
    found = [([], []) for _ in SLICES]
    for _ in range(bench.rounds(15)):
        for kind in (0, 1):
            worker = (bench.empty if kind else bench.run)(name, 1000, *arguments, **quiet,
                                                          **({} if kind else {"probed": True}))
            for of_slice in found:
                worker.block(amount)
                of_slice[kind].append(worker.gathered()[0])
            worker.close()
    return [(mean(inside), mean(empty)) for inside, empty in found]


def mean(values):
    return Estimate(statistics.fmean(values), statistics.stdev(values) / len(values) ** 0.5)
