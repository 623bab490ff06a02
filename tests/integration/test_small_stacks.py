# SPDX-License-Identifier: MIT
"""16 KiB coroutine stacks with 13 KiB in use: greenprof leaves them alone at 5000 Hz."""
import os
import pstats

import check


class SmallStacks(check.Case):
    def test_deep(self):
        run = self.profile(["small_stack", "deep", 3.0], hz=5000)
        folded, capture = run.folded(), run.capture()
        self.check_functions(folded, run.truth, len(capture.samples))
        self.check_total(folded, run.truth)
        self.at_least("samples", len(capture.samples), 5000)
        self.at_most("walks that ended early", capture.counters["incomplete"] + capture.counters["outside"], 0.01 * len(capture.samples))
        for stack, weight in folded.stacks:
            if "work_deep" in stack and weight > 0.01:
                self.assertGreater(stack.count("descend"), 30, stack)

    def test_highest_rate(self):
        self.profile(["small_stack", "deep", 1.0], hz=20000)

    def test_api_calls(self):
        """prof_start, stop, resume, dump_stats and dump from such a coroutine, also while `greenprof run` samples."""
        for under_run in (False, True):
            with self.subTest(under_run=under_run):
                if under_run:
                    self.profile(["small_stack", "api", self.directory], hz=5000)
                else:
                    self.run_alone(["small_stack", "api", self.directory])
                for i in range(8):
                    path = os.path.join(self.directory, f"{i}.prof")
                    stats = pstats.Stats(path).stats
                    deep = [value for key, value in stats.items() if key[2] == "work_deep"]
                    self.assertEqual(len(deep), 1)
                    self.near(f"work_deep in {i}.prof", deep[0][3], 0.09, 0.03, 0.002)
                    os.remove(path)


if __name__ == "__main__":
    check.main()
