# SPDX-License-Identifier: MIT
"""Native threads of a pool, forked children and other programs: each has its own frames, and each process its own capture."""
import glob
import os
import pstats
import tempfile
import unittest

import support
import measured

support.require("eventlet")


def rows_of(output):
    return [(int(pid), name, float(seconds)) for pid, name, seconds in map(str.split, output.splitlines())]


class Threads(measured.Case):
    def test_a_pools_threads_have_frames_of_their_own(self):
        run = support.Run("pool_threads.py")
        truth = {name: float(seconds) for name, seconds in map(str.split, run.output.splitlines())}
        seen = dict.fromkeys(truth, 0.0)
        for stack, seconds in run.folded("--by", "coroutine").stacks:
            kinds = set(seen) & set(stack)
            self.assertNotEqual(kinds, set(seen), stack)
            for kind in kinds:
                seen[kind] += seconds
            if "native" in kinds:
                self.assertRegex(stack[0], r"^\[coroutine \d+ native\]$")  # a call that waits for a worker is one
                self.assertEqual(stack[1:3], ["native", "burn"])
            if "green" in kinds:
                self.assertRegex(stack[0], r"^\[coroutine ")
                self.assertNotIn("tworker", stack)
        for kind, seconds in truth.items():  # times are exact but for what is not in these functions
            self.near(kind, seen[kind], seconds, 0.2)


class Processes(measured.Case):
    NAMES = {"parent", "first_child", "second_child"}

    def captures(self, run):
        """Process id: the names that its capture has, with their times."""
        found = {}
        for path in glob.glob(run.capture + "*"):
            times = support.Folded(support.command("export", path, "--format", "folded")).cumulative()
            found[path] = {name: times[name] for name in self.NAMES & set(times)}
        return found

    def check_captures(self, how):
        run = support.Run("processes.py", how, "-")
        truth = {name: (pid, seconds) for pid, name, seconds in rows_of(run.output)}
        self.assertEqual(set(truth), self.NAMES)
        found = self.captures(run)
        for name, (pid, seconds) in truth.items():
            path = run.capture if name == "parent" else f"{run.capture}.{pid}"
            self.assertEqual(set(found[path]), {name}, found)
            self.near(name, found[path][name], seconds, 0.1)

    def test_fork(self):
        self.check_captures("fork")

    def test_multiprocessing(self):
        self.check_captures("multiprocessing")
        self.check_captures("spawn")

    def test_subprocess(self):
        self.check_captures("subprocess")


class Profiles(measured.Case):
    def check(self, how):
        support.require_package()
        with tempfile.TemporaryDirectory() as directory:
            said = support.python("processes.py", how, directory)
            for _, name, seconds in rows_of(said):
                times = {key[2]: row[3] for key, row in pstats.Stats(os.path.join(directory, f"{name}.prof")).stats.items()}
                self.assertEqual(set(times) & Processes.NAMES, {name}, times)
                self.near(name, times[name], seconds, 0.1)

    def test_fork(self):
        self.check("fork")

    def test_multiprocessing(self):
        self.check("multiprocessing")


if __name__ == "__main__":
    unittest.main(verbosity=2)
