# SPDX-License-Identifier: MIT
"""Names of code that was made at run time, from perf-PID.map, in a capture and in the process's own dump.

usage: test_jit.py GREENPROF JIT JIT_DUMP
"""
import os, pstats, re, shutil, subprocess, sys, tempfile, unittest

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

    def share(self, capture, *options):
        """The share of the made code's time, by name, and of all."""
        out = subprocess.run([GREENPROF, "export", capture, "--format", "folded", *options], text=True, check=True,
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

    def test_below_a_root(self):
        """Of a container, whose processes have numbers of their own: those are in its captures, and in the names of its maps."""
        root, image, capture = self.path("root"), self.path("image"), self.path("jit.greenprof")
        for directory in (root, image):
            os.makedirs(os.path.join(directory, "tmp"))
        built = os.path.commonpath([os.path.realpath(GREENPROF), os.path.realpath(JIT)])  # may be below /tmp, as this directory is
        inside = ["bwrap", "--bind", "/", "/", "--bind", self.directory.name, "/mnt", "--bind", os.path.join(root, "tmp"), "/tmp",
                  "--ro-bind", built, built, "--proc", "/proc", "--dev", "/dev", "--unshare-pid"]
        if shutil.which("bwrap") is None or subprocess.run([*inside, "true"], capture_output=True).returncode != 0:
            self.skipTest("bubblewrap cannot make a container here")
        out = subprocess.run([*inside, GREENPROF, "run", "--quiet", "-F", "1000", "-o", "/mnt/jit.greenprof", "--", JIT, "0.3"],
                             text=True, check=True, capture_output=True).stdout
        there = root + out.strip()
        self.assertLess(int(re.search("[0-9]+", os.path.basename(there))[0]), 100)
        self.assertEqual(self.share(capture), 0)
        self.at_least("share of the made code", self.share(capture, "--symfs", root), 0.8)
        # An image that was unpacked later has copies.
        copy = shutil.copy(there, os.path.join(image, "tmp"))
        self.at_least("share of the made code", self.share(capture, "--symfs", image), 0.8)
        os.utime(copy, (1e9, 1e9))
        self.assertEqual(self.share(capture, "--symfs", image), 0)

    def test_own_dump(self):
        out = subprocess.run([JIT_DUMP, "0.3", self.path("jit.prof")], text=True, check=True, capture_output=True).stdout
        self.addCleanup(os.unlink, out.strip())
        rows = pstats.Stats(self.path("jit.prof")).stats
        self.assertIn(("[jit]", 0, NAME), rows)
        self.at_least("made code", rows["[jit]", 0, NAME][2], 0.8 * sum(row[2] for row in rows.values()))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
