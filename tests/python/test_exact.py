# SPDX-License-Identifier: MIT
"""Exact mode: known counts, and cProfile's."""
import collections
import os
import pstats
import re
import subprocess
import tempfile
import unittest

import support
import measured

support.require_package()
support.require("eventlet")


class Exact(measured.Case):
    def check(self, *before, program="exact.py", arguments=(), says="all as expected\n"):
        done = subprocess.run([*before, support.PYTHON, "-B", os.path.join(support.PROGRAMS, program), *arguments],
                              capture_output=True, text=True, timeout=support.LIMIT_SECONDS)
        self.assertEqual((done.returncode, done.stdout), (0, says), done.stderr)

    def test_known_counts(self):
        self.check()

    def test_under_greenprof_run(self):
        with tempfile.TemporaryDirectory() as directory:
            self.check(support.GREENPROF, "run", "-F", "5000", "-o", os.path.join(directory, "c.greenprof"), "--")

    def test_finalizers_while_it_is_read(self):
        with tempfile.TemporaryDirectory() as directory:
            self.check(program="exact_finalizers.py", arguments=[directory], says="end\n")

    def test_callgrind_file(self):
        """callgrind_annotate says of every function what pstats says of the same profile."""
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([support.PYTHON, "-B", os.path.join(support.PROGRAMS, "exact_files.py"), directory], check=True,
                           timeout=support.LIMIT_SECONDS)
            stats = pstats.Stats(os.path.join(directory, "exact.prof")).stats
            annotated = subprocess.run(["callgrind_annotate", "--auto=no", "--threshold=100", "--inclusive=yes", "--tree=caller",
                                        os.path.join(directory, "exact.callgrind")], capture_output=True, text=True, cwd=directory)
        self.assertEqual((annotated.returncode, annotated.stderr), (0, ""))
        called, inclusive, waiting = collections.Counter(), {}, 0
        line = r"(?m)^ *([\d,]+)(?: +\([ \d.]+%\))? +([<*])  ?.*?:(.+?)(?: \(([\d,]+)x\) \[\])?$"
        for cost, mark, name, calls in re.findall(line, annotated.stdout):
            if mark == "<":
                waiting += int(calls.replace(",", ""))
            else:
                inclusive[name], called[name], waiting = int(cost.replace(",", "")), waiting, 0
        for (_, _, name), (_, calls, _, total, _) in stats.items():
            self.assertEqual(called[name], calls, name)
            if name not in ("even", "odd"):  # each is in the other's time
                self.assertAlmostEqual(inclusive[name], total * 1e9, delta=5, msg=name)
        self.assertAlmostEqual(inclusive["[root]"], sum(row[2] * 1e9 for row in stats.values()), delta=len(stats))


if __name__ == "__main__":
    unittest.main(verbosity=2)
