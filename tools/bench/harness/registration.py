"""5. What announcing a coroutine costs."""
from . import table
from .rounds import Estimate, amount_for, take_turns
from .switch import close

BATCH = 1 << 16
MILLION = 16 * BATCH  # what register_many.c has room for


def run(bench):
    table.heading("5. registration: ns of CPU per coroutine")
    contexts(bench)
    million(bench)


def contexts(bench):
    variants = {
        "makecontext, greenprof absent": (bench.plain("make_contexts"), 0),
        "makecontext, linked, resting": (bench.plain("make_contexts_greenprof"), 0),
        "makecontext, preloaded, resting": (bench.plain("make_contexts", preload=[bench.core()]), 0),
        "makecontext, greenprof run -F 1000": (bench.run("make_contexts", 1000), 0),
    }
    base = "makecontext, greenprof absent"
    amount = amount_for(variants[base][0], 2)
    blocks = take_turns(variants, amount, bench.rounds(60))
    close(variants)
    first = Estimate([block.cpu / amount for block in blocks[base]])
    for name in variants:
        cost = Estimate([block.cpu / amount for block in blocks[name]])
        table.figure(name, cost, "ns", digits=1, ratio=cost.value / first.value)


def million(bench):
    worker = bench.plain("register_many")
    idle = worker.block(0)
    create = [worker.block(BATCH) for _ in range(MILLION // BATCH)]
    again = [worker.block(BATCH, 2) for _ in range(4)]
    destroy = [worker.block(BATCH, 1) for _ in range(MILLION // BATCH)]
    pooled = [worker.block(BATCH) for _ in range(4)]
    worker.close()
    for label, blocks in ((f"prof_coro_create, the first {BATCH}", create[:1]),
                          (f"prof_coro_create, the last {BATCH} of a million", create[-1:]),
                          ("prof_coro_create in place of another, a million live", again),
                          ("prof_coro_destroy, a million down to none", destroy),
                          ("prof_coro_create, records known", pooled)):
        table.figure(label, Estimate([block.cpu / BATCH for block in blocks]), "ns", digits=1)
    memory = (create[-1].figures[1] - idle.figures[1]) * 1024 / MILLION
    table.line(f"  memory per live coroutine: {memory:.0f} bytes")
