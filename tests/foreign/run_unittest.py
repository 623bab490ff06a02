# SPDX-License-Identifier: MIT
"""Runs one module of tests of Python's unittest; writes a result and a name a line to the file that RESULTS names.

usage: run_unittest.py MODULE [-x NAME]...     NAME: a part of the names of tests that are left out
"""
import os
import sys
import unittest

out = open(os.environ["RESULTS"], "a", buffering=1)
in_charge = os.getpid()


class Result(unittest.TextTestResult):
    """A test that fails twice (its subtests, its clean-up) has one line."""
    seen = {}

    def note(self, test, word):
        self.seen[test.id()] = word if self.seen.get(test.id(), word) == word else "failed"

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.note(test, "failed")

    def stopTest(self, test):
        super().stopTest(test)
        if os.getpid() == in_charge and test.id() in self.seen:
            out.write(f"{self.seen.pop(test.id())} {test.id()}\n")


def noting(method, word):
    def add(self, test, *details):
        getattr(super(Result, self), method)(test, *details)
        self.note(test, word)
    return add


for method, word in {"addSuccess": "ok", "addError": "failed", "addFailure": "failed", "addSkip": "skipped",
                     "addExpectedFailure": "expected", "addUnexpectedSuccess": "unexpected"}.items():
    setattr(Result, method, noting(method, word))


def flat(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


def main():
    module = sys.argv[1]
    left_out = sys.argv[3::2]
    if module.startswith("test."):
        from test import support
        support.use_resources = []  # no network, no sound, nothing that takes a gigabyte
    suite = unittest.defaultTestLoader.loadTestsFromName(module)
    if not any(isinstance(test, unittest.loader._FailedTest) for test in flat(suite)):
        # The order of the classes, so that what setUpClass() does is done once.
        suite = unittest.TestSuite(filtered(suite, left_out))
    result = unittest.TextTestRunner(resultclass=Result, verbosity=2).run(suite)
    for test, _ in result.errors:
        if not isinstance(test, unittest.TestCase):  # setUpClass, setUpModule
            out.write(f"failed {test.id()}\n")
    out.flush()
    sys.exit(not result.wasSuccessful())


def filtered(suite, left_out):
    """The same suites without the tests that are left out."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield unittest.TestSuite(filtered(test, left_out))
        elif not any(part in test.id() for part in left_out):
            yield test


if __name__ == "__main__":
    main()
