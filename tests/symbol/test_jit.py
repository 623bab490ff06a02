# SPDX-License-Identifier: MIT
"""Names of code that was made at run time, from perf-PID.map, in a capture and in the process's own dump.

usage: test_jit.py GREENPROF JIT JIT_DUMP
"""
import os, pstats, shutil, subprocess, sys, tempfile, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import measured  # noqa: E402

GREENPROF, JIT, JIT_DUMP = sys.argv[1:4]
NAME = "made:loop at run time"


class Jit(measured.Case):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def share(self, capture):
        """The share of the made code's time, by name, and of all."""
        out = subprocess.run([GREENPROF, "export", capture, "--format", "folded"], text=True, check=True,
                             capture_output=True).stdout
        lines = [line.rpartition(" ") for line in out.splitlines()]
        total = sum(int(weight) for _, _, weight in lines)
        return sum(int(weight) for stack, _, weight in lines if stack.endswith(NAME)) / total

    def test_capture(self):
        capture = self.path("jit.greenprof")
        out = subprocess.run([GREENPROF, "run", "--quiet", "-F", "1000", "-o", capture, "--", JIT, "0.3"], text=True, check=True,
                             capture_output=True).stdout
        there = out.strip()
        self.addCleanup(lambda: os.path.exists(there) and os.unlink(there))
        self.at_least("share of the made code", self.share(capture), 0.8)
        # The map may travel beside the capture; a map of an earlier process with this id is not used.
        shutil.copy(there, self.path(os.path.basename(there)))
        os.utime(there, (1e9, 1e9))
        self.at_least("share of the made code", self.share(capture), 0.8)
        os.unlink(self.path(os.path.basename(there)))
        self.assertEqual(self.share(capture), 0)

    def test_own_dump(self):
        out = subprocess.run([JIT_DUMP, "0.3", self.path("jit.prof")], text=True, check=True, capture_output=True).stdout
        self.addCleanup(os.unlink, out.strip())
        rows = pstats.Stats(self.path("jit.prof")).stats
        self.assertIn(("[jit]", 0, NAME), rows)
        self.at_least("made code", rows["[jit]", 0, NAME][2], 0.8 * sum(row[2] for row in rows.values()))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
