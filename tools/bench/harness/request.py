# SPDX-License-Identifier: MIT
"""4. The cost of a profile per request, in a program where the sampler already runs."""
from . import table
from .rounds import Estimate

OTHERS = (0, 1000)


def run(bench):
    table.heading("4. request: us of wall time per profile, sampler running at 1000 Hz (caller's CPU in brackets)")
    for others in OTHERS:
        one(bench, others)


def phase(label, blocks, index):
    table.figure(label, Estimate.of_values([block.figures[index] for block in blocks]), "us", digits=1)


def one(bench, others):
    worker = bench.plain("request_cost", "--sample", 1000, "--others", others)
    beside = f", beside {others} others" if others else ""
    cold = worker.block(1, 1)
    short = [worker.block(200, 0) for _ in range(bench.rounds(40))]
    resumed = [worker.block(200, 2) for _ in range(bench.rounds(20))]
    dumped = [worker.block(10, 1) for _ in range(bench.rounds(20))]
    worker.close()
    cpu = Estimate.of_values([block.cpu / 200e3 for block in short])
    wall = Estimate.of_values([block.wall / 200e3 for block in short])
    table.keep(f"start + stop + free{beside}, CPU", cpu)
    table.figure("start + stop + free" + beside, wall, "us", digits=1, note=f"(CPU {cpu.value:.1f} us)")
    for label, index in (("    start", 0), ("    stop", 1), ("    free", 3)):
        phase(label, short, index)
    table.figure("resume + stop" + beside, Estimate.of_values([block.wall / 200e3 for block in resumed]), "us", digits=1)
    phase("dump_stats, symbols known" + beside, dumped, 2)
    table.line(f"  the first one, which reads the symbols: {cold.figures[2] / 1e3:.1f} ms")
