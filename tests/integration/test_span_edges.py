# SPDX-License-Identifier: MIT
"""The CPU time of spans beside a competitor on the same processor: what it took is in none of them, wherever the thread
was preempted."""
import os
import subprocess
import sys

import check

COUNT = 512
COMPETITOR = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(flush=True)
while True:
    pass
"""


class SpanEdges(check.Case):
    def compete(self):
        competitor = subprocess.Popen([sys.executable, "-c", COMPETITOR], stdout=subprocess.PIPE)
        self.addCleanup(competitor.wait)
        self.addCleanup(competitor.kill)
        self.addCleanup(competitor.stdout.close)
        competitor.stdout.readline()

    def errors(self, hz):
        """Of each span, and the time of all, us."""
        run = self.profile(["span_edges", COUNT], hz=hz)
        truth = [float(seconds) * 1e6 for seconds, in run.truth.values["WITHIN"]]
        spans = sorted((span for span in run.capture().spans if span.name == "within"), key=lambda span: span.start_ns)
        self.assertEqual(len(spans), len(truth))
        self.at_least("spans that were preempted", sum(span.end_ns - span.start_ns > 1.5 * span.cpu_ns for span in spans), 50)
        return sorted(abs(span.cpu_ns / 1e3 - us) for span, us in zip(spans, truth)), sum(truth)

    def test_beside_a_competitor(self):
        self.compete()
        for hz in (1000, 10):
            errors, together = self.errors(hz)
            self.at_most(f"error of the middle one at {hz} Hz, us", errors[COUNT // 2], 0, 20)
            self.at_most(f"error of all but a twentieth at {hz} Hz, us", errors[COUNT * 19 // 20], 0, 200)
            self.at_most(f"errors together at {hz} Hz, us", sum(errors), 0.02 * together)


if __name__ == "__main__":
    check.main()
