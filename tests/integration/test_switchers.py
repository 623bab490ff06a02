# SPDX-License-Identifier: MIT
"""1,000 requests on coroutines that migrate between 4 threads: each sample has the trace of its own. The environment variable
SWITCHES says how many switches there are."""
import json
import os
import re
import subprocess

import check

SWITCHES = int(os.environ.get("SWITCHES", 200000))
COROUTINES, WORKS = 1000, 8
CACHE = 7


def spans_of(run):
    done = subprocess.run([os.environ["LIST_SPANS"], run.output], capture_output=True, text=True, timeout=check.LIMIT_SECONDS)
    return [json.loads(line) for line in check.measured.check_status(done).stdout.splitlines()]


class Switchers(check.Case):
    def check_samples(self, folded):
        """Which trace a sample is to have, the functions on its stack tell."""
        seen = set()
        for stack, _ in folded.stacks:
            works = {frame for frame in stack if frame.startswith("work_")}
            if not works or "[switching]" in stack:
                continue
            self.assertRegex(stack[0], r"^\[trace [0-9a-f]{32}\]$", stack)
            i = int(stack[0][7:-1], 16) - 1
            self.assertIn(i, range(COROUTINES))
            self.assertEqual(works, {f"work_{i % WORKS}"}, stack)
            seen.add(i)
        self.assertGreater(len(seen), 0)

    def check_spans(self, spans, lost, expected):
        self.assertEqual(len(spans) + lost, expected)
        roots = {span["coroutine"]: span for span in spans if span["name"] == "outer"}
        for span in spans:
            self.assertEqual(span["flags"], 0)
            self.assertEqual(span["coroutine"], span["end_coroutine"])
            root = roots.get(span["coroutine"])
            if span["kind"] == CACHE and root is not None:  # else its record was lost
                self.assertEqual((span["parent_id"], span["trace"]), (root["id"], root["trace"]))
                self.assertTrue(root["start_ns"] <= span["start_ns"] <= span["end_ns"] <= root["end_ns"])
                self.assertLessEqual(span["switches"], root["switches"])
        self.assertEqual(len({root["trace"] for root in roots.values()}), len(roots))

    def test_each_has_its_trace(self):
        run = self.profile(["switchers", SWITCHES], hz=5000, healthy=False)  # others ask that, of fewer samples
        (expected,), = run.truth.values["SPANS"]
        info = check.measured.check_status(check.greenprof("info", run.output)).stdout.decode()
        lost = re.search(r"(\d+) spans lost", info)
        self.check_samples(run.folded("--by", "trace"))
        self.check_spans(spans_of(run), int(lost[1]) if lost else 0, int(expected))


if __name__ == "__main__":
    check.main()
