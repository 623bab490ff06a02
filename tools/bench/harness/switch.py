"""1. What a coroutine switch costs: greenprof absent, resting, sampling."""
from . import table
from .rounds import Estimate, amount_for, per_unit, take_turns

RESTING_BOUND = (1.0, "must hold <= 1 ns")
SWITCHES = 2  # of one unit of work: there and back


def run(bench):
    table.heading("1. switch: ns of CPU per switch")
    ucontext(bench)
    if bench.has("switch_asm"):
        assembly(bench)


def show(name, blocks, base, amount, resting):
    units = amount * SWITCHES
    cost, base_cost = per_unit(blocks, units), per_unit(base, units)
    extra = Estimate([(block.cpu - other.cpu) / units for block, other in zip(blocks, base)])
    table.figure(name, cost, "ns", ratio=cost.value / base_cost.value)
    if blocks is not base:
        table.figure("    beyond it", extra, "ns", bound=RESTING_BOUND if resting else None)


def measure(variants, milliseconds, rounds, base, resting):
    amount = amount_for(*unpack(variants[base], milliseconds))
    blocks = take_turns(variants, amount, rounds)
    for name in variants:
        show(name, blocks[name], blocks[base], amount, name in resting)


def unpack(variant, milliseconds):
    return variant[0], milliseconds, variant[1]


def ucontext(bench):
    variants = {
        "ucontext, greenprof absent": (bench.plain("switch_ucontext"), 0),
        "ucontext, linked, resting": (bench.plain("switch_ucontext_greenprof"), 0),
        "ucontext, preloaded, resting": (bench.plain("switch_ucontext", preload=[bench.core()]), 0),
        "ucontext, linked, sampling at 1000 Hz": (bench.plain("switch_ucontext_greenprof", "--sample", 1000), 0),
        "ucontext, greenprof run -F 1000": (bench.run("switch_ucontext", 1000), 0),
    }
    measure(variants, 4, bench.rounds(150), "ucontext, greenprof absent",
            {"ucontext, linked, resting", "ucontext, preloaded, resting"})
    close(variants)


def assembly(bench):
    linked = bench.plain("switch_asm_greenprof")
    preloaded = bench.plain("switch_asm_greenprof", preload=[bench.core()])
    sampling = bench.plain("switch_asm_greenprof", "--sample", 1000)
    variants = {
        "assembly, greenprof absent": (bench.plain("switch_asm"), 0),
        "assembly, linked, not announced": (linked, 0),
        "assembly, linked, announced, resting": (linked, 1),
        "assembly, preloaded as well, announced, resting": (preloaded, 1),
        "assembly, not announced, sampling at 1000 Hz": (sampling, 0),
        "assembly, announced, sampling at 1000 Hz": (sampling, 1),
    }
    measure(variants, 2, bench.rounds(200), "assembly, greenprof absent",
            {"assembly, linked, announced, resting", "assembly, preloaded as well, announced, resting"})
    close(variants)


def close(variants):
    for worker in {worker for worker, _ in variants.values()}:
        worker.close()
