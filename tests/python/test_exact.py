"""Exact mode: known counts, and cProfile's."""
import os
import subprocess
import tempfile
import unittest

import support
import measured

support.require_package()
support.require("eventlet")


class Exact(measured.Case):
    def check(self, *before):
        done = subprocess.run([*before, support.PYTHON, "-B", os.path.join(support.PROGRAMS, "exact.py")],
                              capture_output=True, text=True, timeout=support.LIMIT_SECONDS)
        self.assertEqual((done.returncode, done.stdout), (0, "all as expected\n"), done.stderr)

    def test_known_counts(self):
        self.check()

    def test_under_greenprof_run(self):
        with tempfile.TemporaryDirectory() as directory:
            self.check(support.GREENPROF, "run", "-F", "5000", "-o", os.path.join(directory, "c.greenprof"), "--")


if __name__ == "__main__":
    unittest.main(verbosity=2)
