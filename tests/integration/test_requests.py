# SPDX-License-Identifier: MIT
"""64 concurrent requests: each profile holds that request's work, its children's, and no other."""
import os
import pstats

import check


class Requests(check.Case):
    def check_dumps(self, truth):
        for name, seconds in truth.functions.items():
            if name == "work_between":
                continue
            number = name.rpartition("_")[2]
            with open(os.path.join(self.directory, number + ".folded")) as file:
                folded = check.Folded(file.read())
            works = {frame for frame in folded.inclusive() if frame.startswith("work_")}
            self.assertEqual(works, {name})
            self.near(f"total of {name}", folded.total, seconds, 0.03)
            stats = pstats.Stats(os.path.join(self.directory, number + ".prof"))
            self.assertAlmostEqual(stats.total_tt, folded.total, delta=0.001)
            functions = {key[2] for key in stats.stats if key[2].startswith("work_")}
            self.assertEqual(functions, {name})
        self.assertEqual(len([entry for entry in os.listdir(self.directory) if entry.endswith(".prof")]), 64)

    def test_one_thread(self):
        self.check_dumps(self.run_alone(["requests", self.directory]))

    def test_four_threads(self):
        self.check_dumps(self.run_alone(["requests", self.directory, 4]))

    def test_under_run(self):
        """The host profiles its requests while `greenprof run` records the whole process."""
        run = self.profile(["requests", self.directory, 2])
        self.check_dumps(run.truth)
        found = run.folded().inclusive()
        ours = sum(found[name] for name in run.truth.functions)
        self.near("all requests in the capture", ours, sum(run.truth.functions.values()), 0.01)


if __name__ == "__main__":
    check.main()
