"""7. What an interposed runtime's switch costs: Boost.Context's assembly."""
from . import table
from .rounds import Comparison

BOUNDS = {"resting": (1.0, "must hold <= 1 ns"), "1000": (12.0, "must hold <= 12 ns")}
SWITCHES = 2  # of one unit of work: there and back


def run(bench):
    table.heading("7. hooks: ns of CPU per switch of an interposed runtime")
    if not bench.has("hooks_boost"):
        table.line("  Boost.Context is not installed (Debian: libboost-context-dev)")
        return
    comparison = Comparison(lambda: boost(bench), 1, bench.rounds(400), warm_up_ms=5)
    first = comparison.cpu_ns(comparison.names[0]).value
    for name in comparison.names:
        cost = comparison.cpu_ns(name)
        table.figure(name, cost.scaled(1 / SWITCHES), "ns", ratio=cost.value / first)
        if name in BASES:
            extra = comparison.extra_ns(name, BASES[name]).scaled(1 / SWITCHES)
            table.figure("    beyond Boost's own in the same process", extra, "ns", bound=BOUNDS[name.split()[-1]])


BASES = {
    "jump_fcontext, preloaded, resting": "jump_fcontext, preloaded, Boost's own",
    "jump_fcontext, greenprof run -F 1000": "jump_fcontext, greenprof run, Boost's own",
}


def boost(bench):
    preloaded = bench.plain("hooks_boost", preload=[bench.core()])
    sampled = bench.run("hooks_boost", 1000)
    return {
        "jump_fcontext, greenprof absent": (bench.plain("hooks_boost"), 0),
        "jump_fcontext, preloaded, Boost's own": (preloaded, 1),
        "jump_fcontext, preloaded, resting": (preloaded, 0),
        "jump_fcontext, greenprof run, Boost's own": (sampled, 1),
        "jump_fcontext, greenprof run -F 1000": (sampled, 0),
    }
