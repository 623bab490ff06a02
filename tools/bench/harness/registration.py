# SPDX-License-Identifier: MIT
"""5. The cost of announcing a coroutine."""
from . import table
from .rounds import Comparison, Estimate

BATCH = 1 << 16
MEMORY = 6  # of register_many's kinds
MILLION = 16 * BATCH  # register_many.c has room for as many


def run(bench):
    table.heading("5. registration: ns of CPU per coroutine")
    contexts(bench)
    million(bench)


def start(bench):
    return {
        "makecontext, greenprof absent": (bench.plain("make_contexts"), 0),
        "makecontext, linked, resting": (bench.plain("make_contexts_greenprof"), 0),
        "makecontext, preloaded, resting": (bench.plain("make_contexts", preload=[bench.core()]), 0),
        "makecontext, greenprof run -F 1000": (bench.run("make_contexts", 1000), 0),
    }


def contexts(bench):
    comparison = Comparison(lambda: start(bench), 2, bench.rounds(100), warm_up_ms=5)
    base = comparison.cpu_ns(comparison.names[0])
    for name in comparison.names:
        cost = comparison.cpu_ns(name)
        table.figure(name, cost, "ns", digits=1, ratio=cost.value / base.value)


def million(bench):
    worker = bench.plain("register_many")
    idle = worker.block(0, MEMORY).figures[1]
    create = [worker.block(BATCH) for _ in range(MILLION // BATCH)]
    created = worker.block(0, MEMORY).figures[1]
    again = [worker.block(BATCH, 2) for _ in range(4)]
    destroy = [worker.block(BATCH, 1) for _ in range(MILLION // BATCH)]
    pooled = [worker.block(BATCH) for _ in range(4)]
    worker.close()
    for label, blocks in ((f"prof_coro_create, the first {BATCH}", create[:1]),
                          (f"prof_coro_create, the last {BATCH} of a million", create[-1:]),
                          ("prof_coro_create in place of another, a million live", again),
                          ("prof_coro_destroy, a million down to none", destroy),
                          ("prof_coro_create, records known", pooled)):
        table.figure(label, Estimate.of_values([block.cpu / BATCH for block in blocks]), "ns", digits=1)
    table.line(f"  memory per live coroutine: {(created - idle) / MILLION:.0f} bytes")
