# SPDX-License-Identifier: MIT
"""Every way to end: status and signal are the program's own, and what was sampled more than a second before is there."""
import concurrent.futures
import os
import signal
import subprocess

import check

SECONDS = 1.6
LOST_SECONDS = 1.0  # what a sudden death may cost, besides what the machine adds

SUDDEN = {"term": -signal.SIGTERM, "segv": -signal.SIGSEGV, "kill": -signal.SIGKILL, "abort": -signal.SIGABRT}
ORDERLY = {"return": 0, "exit": 11, "_exit": 13, "quick_exit": 14, "thread": 12, "pthread_exit": 12}


class Exits(check.Case):
    def run_both(self, ways, check_one):
        """Two at a time: there are at least two processors, and truth is CPU time."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            runs = {way: pool.submit(self.profile, ["exits", way, SECONDS], status=status, healthy=False,
                                     output=way + ".greenprof")
                    for way, status in ways.items()}
        for way, run in runs.items():
            with self.subTest(way):
                alone = subprocess.run([check.program("exits"), way, "0.01"], capture_output=True,
                                       timeout=check.LIMIT_SECONDS)
                self.assertEqual(alone.returncode, ways[way])
                check_one(way, run.result())

    def test_orderly(self):
        def check_one(way, run):
            capture = run.capture()
            self.check_health(capture)
            self.assertEqual(capture.end, 0, way)
            self.near(way, run.folded().inclusive()["work_last"], run.truth.functions["work_last"], 0.005, 0.005)
        self.run_both(ORDERLY, check_one)

    def test_sudden(self):
        def check_one(way, run):
            capture = run.capture()
            self.check_health(capture, ended=False)
            seconds = capture.sampled_ns / 1e9
            self.at_least(f"{way}: in the capture", seconds, run.truth.total - LOST_SECONDS)
            self.at_most(f"{way}: in the capture", seconds, run.truth.total * 1.005, 0.005)
            self.near(way, run.folded().inclusive()["work_last"], seconds, 0.03)
        self.run_both(SUDDEN, check_one)

    def test_beside_threads(self):
        run = self.profile(["exits", "beside_threads", 0.5], status=15, healthy=False)
        self.check_health(run.capture())
        self.assertEqual(run.capture().end, 0)
        folded = run.folded()
        self.near("work_last of all", folded.inclusive()["work_last"], folded.total, 0.03)


if __name__ == "__main__":
    check.main()
