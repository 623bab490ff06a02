# SPDX-License-Identifier: MIT
"""7. The cost of exact mode to a call of an instrumented function: enter and exit together."""
from . import table
from .rounds import Comparison

BOUND = (36.0, "must hold <= 36 ns")
KINDS = {"a tree of calls": (0, 1973), "one function in a loop": (1, 2000)}  # which, calls of one unit of work
EMPTY, COUNTER, RESTING = "empty hooks", "hooks that read the time-stamp counter only", "linked, resting"
EXACT, RUN = "linked, exact profile", "greenprof run --exact"


def run(bench):
    table.heading("7. exact: ns of CPU per call (enter and exit), instrumented with -finstrument-functions")
    for kind, (which, calls) in KINDS.items():
        table.line(f"  {kind}")
        show(Comparison(lambda which=which: variants(bench, which), 1, bench.rounds(400), warm_up_ms=5), calls)


def variants(bench, which):
    return {
        EMPTY: (bench.plain("exact_calls"), which),
        COUNTER: (bench.plain("exact_calls", preload=[bench.counter_hooks()]), which),
        RESTING: (bench.plain("exact_calls_greenprof"), which),
        EXACT: (bench.plain("exact_calls_greenprof", "--exact", 1), which),
        RUN: (bench.run("exact_calls", 1000, exact=True), which),
    }


def show(comparison, calls):
    first = comparison.cpu_ns(EMPTY).value
    for name in comparison.names:
        cost = comparison.cpu_ns(name)
        table.figure(name, cost.scaled(1 / calls), "ns", ratio=cost.value / first)
        if name != EMPTY:
            bound = BOUND if name in (EXACT, RUN) else None
            table.figure("    beyond empty hooks", comparison.extra_ns(name, EMPTY).scaled(1 / calls), "ns", bound=bound)
        if name in (EXACT, RUN):
            table.figure("    beyond hooks that read the counter", comparison.extra_ns(name, COUNTER).scaled(1 / calls), "ns")
