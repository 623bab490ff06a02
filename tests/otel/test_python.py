# SPDX-License-Identifier: MIT
"""Contexts follow asyncio's tasks and gevent's greenlets: what a thread shows is of the one that runs."""
import importlib.util
import os
import subprocess
import sys
import unittest

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "green_threads.py")
THREADS, LOOKS = 60, 22


class GreenThreads(unittest.TestCase):
    def check(self, kind, *command):
        environment = {**os.environ, "GREENPROF_OTEL_CONTEXT": "1"}
        result = subprocess.run([*command, sys.executable, "-B", PROGRAM, kind], capture_output=True, text=True, timeout=120,
                                env=environment)
        self.assertEqual((result.stdout, result.returncode), (f"{THREADS * LOOKS} 0\n", 0), result.stderr)

    def test_asyncio(self):
        self.check("asyncio")

    @unittest.skipUnless(importlib.util.find_spec("gevent"), "gevent is not installed")
    def test_gevent(self):
        self.check("gevent")

    def test_under_run(self):
        capture = f"otel-python-{os.getpid()}.greenprof"
        self.addCleanup(lambda: os.path.exists(capture) and os.unlink(capture))
        self.check("asyncio", os.environ["GREENPROF"], "run", "--quiet", "-o", capture, "--")


if __name__ == "__main__":
    try:
        import greenprof  # noqa: F401
    except ImportError as why:
        print(f"SKIP: {why}")
        sys.exit(77)
    unittest.main()
