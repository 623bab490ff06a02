# SPDX-License-Identifier: MIT
"""8. The cost of the ledger to a switch: about five million switches a second, with work in between, and in a tight loop."""
from . import switch, table
from .rounds import Comparison

BASES = {
    "announced, sampling at 1000 Hz": "bare, sampling at 1000 Hz",
    "announced, resting": "bare, resting",
    "announced, tight loop, sampling": "bare, tight loop, sampling",
    "a hook that reads the counter": "bare, beside that hook",
    "a hook that reads the counter, tight loop": "bare, tight loop, beside that hook",
}
FLOORS = {
    "announced, sampling at 1000 Hz": "a hook that reads the counter",
    "announced, tight loop, sampling": "a hook that reads the counter, tight loop",
}


def run(bench):
    table.heading("8. ledger: ns of CPU per switch, ~190 ns of work before each")
    if bench.has("switch_asm"):
        switch.show(Comparison(lambda: variants(bench), 1, bench.rounds(400), warm_up_ms=5), BASES, FLOORS)


def variants(bench):
    """The whole hook: identity, CPU accounts and the ledger of waits share one read of the time-stamp counter."""
    resting = bench.plain("switch_asm_greenprof")
    sampling = bench.plain("switch_asm_greenprof", "--sample", 1000)
    counter = bench.plain("switch_asm_greenprof", preload=[bench.counter_hooks()])
    return {
        "bare, resting": (resting, 2),
        "announced, resting": (resting, 3),
        "bare, beside that hook": (counter, 2),
        "a hook that reads the counter": (counter, 3),
        "bare, sampling at 1000 Hz": (sampling, 2),
        "announced, sampling at 1000 Hz": (sampling, 3),
        "bare, tight loop, beside that hook": (counter, 0),
        "a hook that reads the counter, tight loop": (counter, 1),
        "bare, tight loop, sampling": (sampling, 0),
        "announced, tight loop, sampling": (sampling, 1),
    }
