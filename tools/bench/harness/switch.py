# SPDX-License-Identifier: MIT
"""1. The cost of a coroutine switch: greenprof absent, resting, sampling."""
from . import table
from .rounds import Comparison

RESTING_BOUND = (1.0, "must hold <= 1 ns")
COUNTER_BOUND = (5.0, "must hold <= 5 ns")
SWITCHES = 2  # of one unit of work: there and back


def run(bench):
    table.heading("1. switch: ns of CPU per switch")
    show(Comparison(lambda: ucontext(bench), 1, bench.rounds(400), warm_up_ms=5), UCONTEXT_BASES)
    if bench.has("switch_asm"):
        show(Comparison(lambda: assembly(bench), 1, bench.rounds(400), warm_up_ms=5), ASSEMBLY_BASES,
             {"assembly, linked, sampling at 1000 Hz": "assembly, a hook that reads the counter"})


def show(comparison, bases, floors=None):
    """bases: variant -> the bare switch in its process. floors: variant -> one whose hook reads the counter only."""
    first = comparison.cpu_ns(comparison.names[0]).value
    for name in comparison.names:
        cost = comparison.cpu_ns(name)
        table.figure(name, cost.scaled(1 / SWITCHES), "ns", ratio=cost.value / first)
        if name in bases:
            bound = RESTING_BOUND if name.endswith("resting") else None
            extra = comparison.extra_ns(name, bases[name]).scaled(1 / SWITCHES)
            table.figure("    beyond the bare switch in the same process", extra, "ns", bound=bound)
        if name in (floors or {}):
            floor = floors[name]
            own = comparison.extra_beyond_ns(name, bases[name], floor, bases[floor]).scaled(1 / SWITCHES)
            table.figure("    beyond a hook that reads the counter", own, "ns", bound=COUNTER_BOUND)


# Bases of comparison: glibc's own function, called past the interposed one in the same process.
UCONTEXT_BASES = {
    "ucontext, linked, resting": "ucontext, linked, glibc's own",
    "ucontext, preloaded, resting": "ucontext, preloaded, glibc's own",
    "ucontext, linked, sampling at 1000 Hz": "ucontext, linked, glibc's own",
    "ucontext, greenprof run -F 1000": "ucontext, linked, glibc's own",
}


def ucontext(bench):
    linked = bench.plain("switch_ucontext_greenprof")
    preloaded = bench.plain("switch_ucontext", preload=[bench.core()])
    return {
        "ucontext, greenprof absent": (bench.plain("switch_ucontext"), 0),
        "ucontext, linked, glibc's own": (linked, 1),
        "ucontext, linked, resting": (linked, 0),
        "ucontext, preloaded, glibc's own": (preloaded, 1),
        "ucontext, preloaded, resting": (preloaded, 0),
        "ucontext, linked, sampling at 1000 Hz": (bench.plain("switch_ucontext_greenprof", "--sample", 1000), 0),
        "ucontext, greenprof run -F 1000": (bench.run("switch_ucontext", 1000), 0),
    }


ASSEMBLY_BASES = {
    "assembly, a hook that reads the counter": "assembly, not announced, beside that hook",
    "assembly, linked, resting": "assembly, linked, not announced",
    "assembly, preloaded too, resting": "assembly, preloaded too, not announced",
    "assembly, linked, sampling at 1000 Hz": "assembly, linked, not announced, sampling",
    "assembly, linked, contexts shown": "assembly, linked, not announced, contexts shown",
}


def assembly(bench):
    linked = bench.plain("switch_asm_greenprof")
    preloaded = bench.plain("switch_asm_greenprof", preload=[bench.core()])
    sampling = bench.plain("switch_asm_greenprof", "--sample", 1000)
    counter = bench.plain("switch_asm_greenprof", preload=[bench.counter_hooks()])
    showing = bench.plain("switch_asm_greenprof", env={"GREENPROF_OTEL_CONTEXT": "1"})
    return {
        "assembly, greenprof absent": (bench.plain("switch_asm"), 0),
        "assembly, linked, not announced": (linked, 0),
        "assembly, linked, resting": (linked, 1),
        "assembly, preloaded too, not announced": (preloaded, 0),
        "assembly, preloaded too, resting": (preloaded, 1),
        "assembly, not announced, beside that hook": (counter, 0),
        "assembly, a hook that reads the counter": (counter, 1),
        "assembly, linked, not announced, sampling": (sampling, 0),
        "assembly, linked, sampling at 1000 Hz": (sampling, 1),
        "assembly, linked, not announced, contexts shown": (showing, 0),
        "assembly, linked, contexts shown": (showing, 1),
    }
