# SPDX-License-Identifier: MIT
"""10. The cost of a span to the thread that begins and ends it."""
from . import table
from .rounds import Estimate

KINDS = (("nothing records spans", 0, (20, "<= 20 ns")), ("within a request that is not recorded", 1, (20, "<= 20 ns")),
         ("within a request", 2, (200, "<= 200 ns")), ("    with two fields", 3, None),
         ("    while another thread does the same", 5, None), ("    that is too short to be one", 6, None),
         ("a request, with its trace", 4, None))


def run(bench):
    table.heading("10. spans: ns of CPU for a begin and an end")
    worker = bench.plain("span_cost")
    for label, kind, bound in KINDS:
        worker.block(50, kind)
        blocks = [worker.block(50, kind) for _ in range(bench.rounds(40))]
        table.figure(label, Estimate.of_values([block.figures[0] for block in blocks]), "ns", digits=1, bound=bound)
    worker.close()
