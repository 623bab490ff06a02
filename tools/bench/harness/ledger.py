# SPDX-License-Identifier: MIT
"""8. What the ledger costs a switch: about five million of them a second, with work in between, and in a tight loop."""
from . import switch, table
from .rounds import Comparison

BASES = {
    "announced, sampling at 1000 Hz": "bare, sampling at 1000 Hz",
    "announced, resting": "bare, resting",
    "announced, tight loop, sampling": "bare, tight loop, sampling",
}


def run(bench):
    table.heading("8. ledger: ns of CPU per switch, ~190 ns of work before each")
    if bench.has("switch_asm"):
        switch.show(Comparison(lambda: variants(bench), 1, bench.rounds(400), warm_up_ms=5), BASES)


def variants(bench):
    """The whole hook: identity, CPU accounts and the ledger of waits share one read of the time-stamp counter."""
    resting = bench.plain("switch_asm_greenprof")
    sampling = bench.plain("switch_asm_greenprof", "--sample", 1000)
    return {
        "bare, resting": (resting, 2),
        "announced, resting": (resting, 3),
        "bare, sampling at 1000 Hz": (sampling, 2),
        "announced, sampling at 1000 Hz": (sampling, 3),
        "bare, tight loop, sampling": (sampling, 0),
        "announced, tight loop, sampling": (sampling, 1),
    }
