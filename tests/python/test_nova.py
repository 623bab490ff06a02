# SPDX-License-Identifier: MIT
"""Nova's scheduler as its guide says to profile it: each of 12 overlapping requests has exactly its own calls."""
import json
import os
import pstats
import subprocess
import sys
import tempfile
import unittest

import support

support.require_package()
support.require("nova.tests.functional", "placement", "wsgi_intercept", "oslotest")
if not os.path.exists("/usr/share/nova-common/api-paste.ini"):  # python3-nova alone is not enough
    print("SKIP: nova-common is not installed")
    sys.exit(support.SKIPPED)

HOSTS, REQUESTS = 8, 12


class Scheduler(unittest.TestCase):
    def run_kind(self, kind, directory):
        done = subprocess.run([support.PYTHON, "-W", "ignore", "-B", os.path.join(support.PROGRAMS, "nova_scheduler.py"),
                               directory, kind], capture_output=True, text=True, timeout=support.LIMIT_SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return json.loads(done.stdout.splitlines()[-1])

    def calls(self, path):
        support.read_as_snakeviz(path)
        calls = {}
        for (file, _, name), (_, count, *_) in pstats.Stats(path).stats.items():
            if "/nova/scheduler/" in file:
                name = name.split(".")[-1]
                calls[name] = max(count, calls.get(name, 0))
        return calls

    def test_exact_counts(self):
        with tempfile.TemporaryDirectory() as directory:
            seen = self.run_kind("exact", directory)
            self.assertEqual(seen["raised"], [])
            self.assertEqual(len(os.listdir(directory)), REQUESTS)
            for name in os.listdir(directory):
                calls = self.calls(os.path.join(directory, name))
                self.assertEqual((calls["select_destinations"], calls["_schedule"], calls["_get_instance_info"]), (1, 1, HOSTS))

    def test_samples(self):
        with tempfile.TemporaryDirectory() as directory:
            seen = self.run_kind("sample", directory)
            self.assertEqual(seen["raised"], [])
            self.assertEqual(len(os.listdir(directory)), REQUESTS)
            for name in os.listdir(directory):
                self.assertGreater(self.calls(os.path.join(directory, name))["select_destinations"], 10)


if __name__ == "__main__":
    unittest.main(verbosity=2)
