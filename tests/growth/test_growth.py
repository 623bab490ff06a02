# SPDX-License-Identifier: MIT
"""Nothing grows with events that are over. `run --full` has more of them, and prints what an event costs.

Counts and bytes alone are asserted. A bound is a fifth, or less, of what one record an event would come to.
"""
import os
import subprocess
import sys
import tempfile
import unittest

import growth

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
from capture import Capture  # noqa: E402

GREENPROF, GROW = (os.environ[name] for name in ("GREENPROF", "GROW"))
LIMIT_SECONDS = 200
END_FULL = 5  # enum gp_end_reason


class Growth(unittest.TestCase):
    def grow(self, command, **environment):
        done = subprocess.run(command, env=growth.environment(**environment), stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=LIMIT_SECONDS, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.said = done.stderr.decode()
        return growth.tenths(done.stdout.decode())

    def test_coroutines(self):
        """A record has 640 bytes: kept, those of the second half would be 64,000 KiB."""
        rows = self.grow([GROW, "coroutines", "200000"], GROW_PROFILE="1", GROW_SYNC="1000")
        self.assertLess(growth.second_half_kib(rows), 12000, rows)

    def test_threads(self):
        """A block has 21 KiB: kept, those of the second half would be 42,000 KiB."""
        rows = self.grow([GROW, "threads", "4000"], GROW_PROFILE="1", GROW_SYNC="100")
        self.assertLess(growth.second_half_kib(rows), 8000, rows)

    def test_threads_where_the_core_is_there_twice(self):
        """A program that is linked with libgreenprof, under `run`: a block of the inert core would be 4 mappings."""
        with tempfile.TemporaryDirectory() as directory:
            rows = self.grow([GREENPROF, "run", "-q", "-o", os.path.join(directory, "c.greenprof"), "--",
                              GROW, "threads", "2000"], GROW_SYNC="100")
        self.assertLess(rows[9].maps - rows[4].maps, 400, rows)

    def test_day(self):
        """All at once, for seconds: what greenprof has is within its limit. `soak` is the long form."""
        bare, _ = growth.soak([GROW, "day", "100000"])
        rows, did = growth.soak_recorded(GREENPROF, [GROW, "day", "1000000"], ())
        self.assertEqual(did, [1000000, 10000, 1000, 100])
        own = growth.own_kib(rows, bare)
        self.assertLess(max(own), 64 << 10, own)
        self.assertLess(rows[9].maps - rows[4].maps, 50, rows)

    def test_tables_are_begun_anew(self):
        """150,000 traces in a table of 2^16 places: it stays as small, and that is counted."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "c.greenprof")
            self.grow([GREENPROF, "run", "-q", "--memory-limit", "16M", "-o", path, "--", GROW, "coroutines", "150000"])
            done = subprocess.run([GREENPROF, "info", path], stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=LIMIT_SECONDS, check=False)
        self.assertRegex(done.stdout.decode(), r" +[1-9][0-9]* times that a full table of stacks or traces was begun anew")

    def test_capture_has_a_greatest_size(self):
        """Without --max-size it would have more than a MiB."""
        for kib in 64, 200:
            with self.subTest(kib=kib), tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, "c.greenprof")
                self.grow([GREENPROF, "run", "--max-size", f"{kib}K", "-o", path, "--", GROW, "coroutines", "100000"])
                self.assertIn(f"greenprof: {path}: not all of it is recorded: it has the size", self.said)
                self.assertLessEqual(os.path.getsize(path), kib << 10)
                capture = Capture(path)
                self.assertTrue(capture.whole)
                self.assertEqual(capture.end, END_FULL)
                self.assertGreater(len(capture.coros), 0)
                self.says(path)

    def says(self, path):
        for command in "report", "info":
            done = subprocess.run([GREENPROF, command, path], stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=LIMIT_SECONDS, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(b"the capture has the size that it was to have at most", done.stdout)

    def test_sizes(self):
        for size in "", "10", "64k", "1MB", "-1M", "K", "99999999999G":
            done = subprocess.run([GREENPROF, "run", "--max-size", size, "--", "true"], stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=LIMIT_SECONDS, check=False)
            self.assertEqual(done.returncode, 2, (size, done.stderr))
            self.assertIn(b"must be a size from 64K on", done.stderr)


if __name__ == "__main__":
    unittest.main()
