# SPDX-License-Identifier: MIT
"""Exact mode: known counts, and cProfile's."""
import collections
import json
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
            self.check(support.GREENPROF, "run", "--quiet", "-F", "5000", "-o", os.path.join(directory, "c.greenprof"), "--")

    def test_callback_of_a_thread_with_greenlets(self):
        self.check(program="exact_greenlets.py")

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
        column = r" *([\d,]+)(?: +\([ \d.]+%\))?"
        line = rf"(?m)^{column} {column} +([<*])  ?.*?:(.+?)(?: \(([\d,]+)x\))? \[.*\]$"
        for cost, _, mark, name, calls in re.findall(line, annotated.stdout):
            if mark == "<":
                waiting += int(calls.replace(",", ""))
            else:
                inclusive[name], called[name], waiting = int(cost.replace(",", "")), waiting, 0
        for (_, _, name), (_, calls, _, total, _) in stats.items():
            self.assertEqual(called[name], calls, name)
            if name not in ("even", "odd"):  # each is in the other's time
                self.assertAlmostEqual(inclusive[name], total * 1e9, delta=5, msg=name)
        self.assertAlmostEqual(inclusive["[root]"], sum(row[2] * 1e9 for row in stats.values()), delta=len(stats))

    def test_stacks(self):
        """Folded stacks hold the whole paths of calls, and the same own times as pstats."""
        with tempfile.TemporaryDirectory() as directory:
            subprocess.run([support.PYTHON, "-B", os.path.join(support.PROGRAMS, "exact_files.py"), directory], check=True,
                           timeout=support.LIMIT_SECONDS)
            stats = pstats.Stats(os.path.join(directory, "exact.prof")).stats
            with open(os.path.join(directory, "exact.folded"), encoding="utf-8") as file:
                weights = {tuple(path.split(";")): int(us) for path, us in (line.rsplit(" ", 1) for line in file)}
            with open(os.path.join(directory, "exact.json"), encoding="utf-8") as file:
                report = json.load(file)
            with open(os.path.join(directory, "exact.svg"), encoding="utf-8") as file:
                self.assertIn(f"{sum(row[1] for row in stats.values())} calls", file.read())
        self.assertTrue({("second", "first") + ("fib",) * depth for depth in range(1, 12)} <= set(weights), weights)
        self.assertFalse([path for path in weights if path[0] not in ("first", "second", "<built-in method "
                                                                      "_hashlib.openssl_sha256>")])
        for (_, _, name), (_, _, own, _, _) in stats.items():
            got = [us for path, us in weights.items() if path[-1] == name]
            self.assertAlmostEqual(sum(got), own * 1e6, delta=len(got) + 1, msg=name)
        rows = {}
        for row in report["rows"]:
            name = report["frames"][row["stack"][-1]]["function"]
            rows[name] = rows.get(name, 0) + row["samples"]
        self.assertEqual(rows, {name: row[1] for (_, _, name), row in stats.items()})

    def test_capture(self):
        """`greenprof run --exact` counts the calls of an unchanged program from its first line on."""
        with tempfile.TemporaryDirectory() as directory:
            capture, profile = os.path.join(directory, "c.greenprof"), os.path.join(directory, "c.prof")
            self.check(support.GREENPROF, "run", "--quiet", "--exact", "-o", capture, "--", program="exact_counted.py", says="")
            subprocess.run([support.GREENPROF, "export", capture, "--format", "pstats", "-o", profile], check=True)
            table = subprocess.run([support.GREENPROF, "report", capture, "-n", "0"], check=True, capture_output=True,
                                   text=True).stdout
            rows = {key[2]: row for key, row in pstats.Stats(profile).stats.items()}
        leaves = 3 * 100 + 10 + 20 + 30 + 40
        self.assertEqual(rows["work"][:2], (7, 7))
        self.assertEqual(rows["leaf"][:2], (leaves + 7 * 3,) * 2)
        self.assertEqual({caller[2]: calls[:2] for caller, calls in rows["leaf"][4].items()},
                         {"work": (leaves,) * 2, "numbers": (7 * 3,) * 2})
        self.assertEqual(rows["numbers"][1], 7 * 4)
        self.assertRegex(table, r"(?m)^ +421 .*\(leaf\)$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
