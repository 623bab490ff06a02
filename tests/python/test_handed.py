# SPDX-License-Identifier: MIT
"""Calls that a request hands to another thread are the request's."""
import subprocess
import unittest

import support
import measured

support.require_package()
support.require("eventlet", "gevent")
COUNT = 4


class Calls(measured.Case):
    def check(self, pool, modes=("sample", "exact")):
        for mode in modes:
            with self.subTest(mode=mode):
                said = support.python("handed.py", pool, mode, COUNT)
                rows = [line.split() for line in said.splitlines()]
                self.assertEqual(len(rows), COUNT, said)
                for trace, truth, total in rows:
                    self.at_least(f"total of {trace}", float(total), 0.97 * float(truth), 0.003)

    def test_futures(self):
        self.check("futures")

    def test_futures_on_green_threads(self):
        self.check("green futures")

    def test_eventlet_tpool(self):
        self.check("eventlet.tpool")

    def test_gevent_threadpool(self):
        self.check("gevent")

    def test_asyncio(self):
        self.check("to_thread")
        self.check("run_in_executor", ["exact"])


class Traces(measured.Case):
    """Under greenprof run, the capture knows the trace of each call."""

    def check(self, pool):
        run = support.Run("handed.py", pool, "sample", COUNT)
        rows = [line.split() for line in run.output.splitlines()]
        self.assertEqual(len(rows), COUNT, run.output)
        for trace, truth, _ in rows:
            folded = run.folded("--trace", trace)
            self.at_least(f"total of {trace}", folded.total, 0.97 * float(truth), 0.003)
            self.at_least(f"own of {trace}", folded.cumulative()["own"], 0.5 * float(truth))

    def test_futures(self):
        self.check("futures")

    def test_eventlet_tpool(self):
        self.check("eventlet.tpool")


class Price(unittest.TestCase):
    def test_nothing_is_replaced_before_the_first_profile(self):
        code = """
import concurrent.futures.thread as futures
before = futures._WorkItem.__init__
import greenprof
assert futures._WorkItem.__init__ is before
with greenprof.Profile():
    assert futures._WorkItem.__init__ is not before
"""
        done = subprocess.run([support.PYTHON, "-c", code], capture_output=True, text=True)
        measured.check_status(done)


if __name__ == "__main__":
    unittest.main(verbosity=2)
