# SPDX-License-Identifier: MIT
"""Comparisons of measured numbers, and the only tests that may run again.

What a live profile measures lies within a tolerance of the truth, and now and then outside it: near(), at_least() and
at_most() compare such numbers and raise Chance. A test with no failure but Chance runs again from the start,
ATTEMPTS times at most. Everything else fails at once: a wrong owner, a phantom frame, a missing row, an exit status, an
exception, a hang.

Where MEASURED_LOG names a file, each test that compared measured numbers and each one that ran again appends a line:
tools/test counts them.
"""
import os
import sys
import unittest

ATTEMPTS = 3


class Chance(AssertionError):
    """A measured number lies outside its tolerance."""


def note(word, test):
    """Append one line to the log of the whole run."""
    path = os.environ.get("MEASURED_LOG")
    if path:
        with open(path, "a", encoding="utf-8") as log:
            log.write(f"{word} {os.path.basename(sys.argv[0])} {test.id()}\n")


def check_status(done, status=0):
    """done: a finished program; returned."""
    if done.returncode != status:
        raise AssertionError(f"status {done.returncode}, not {status}", done.stdout, done.stderr)
    return done


class _Attempt(unittest.TestResult):
    """Keeps what a test reports until it is known whether that counts."""

    def __init__(self, result):
        super().__init__()
        self.reports, self.result = [], result

    def pass_on(self):
        for name, arguments in self.reports:
            getattr(self.result, name)(*arguments)

    def found(self):
        return [arguments[-1] for name, arguments in self.reports
                if name in ("addError", "addFailure", "addSubTest") and arguments[-1] is not None]

    def is_chance(self):
        kinds = [error[0] for error in self.found()]
        return bool(kinds) and all(issubclass(kind, Chance) for kind in kinds)


def _report(name):
    def report(self, *arguments):
        self.reports.append((name, arguments))
    return report


for _name in ("addSuccess", "addError", "addFailure", "addSkip", "addExpectedFailure", "addUnexpectedSuccess", "addSubTest"):
    setattr(_Attempt, _name, _report(_name))


class Case(unittest.TestCase):
    has_measured = False  # has this test compared a measured number?

    def near(self, what, got, expected, tolerance, slack=0.0):
        """`got` lies within a share `tolerance` of `expected`, and `slack` in its unit."""
        error = (got - expected) / expected if expected else 0.0
        self._compare(abs(got - expected) <= tolerance * abs(expected) + slack, what, got,
                      f"of {expected:.4f} ({error:+.2%}, bar {tolerance:.2%}{f' + {slack:.4f}' if slack else ''})")

    def at_least(self, what, got, bar):
        self._compare(got >= bar, what, got, f"(bar: at least {bar:.4f})")

    def at_most(self, what, got, bar):
        self._compare(got <= bar, what, got, f"(bar: at most {bar:.4f})")

    def _compare(self, fine, what, got, bar):
        self.has_measured = True
        figure = f"{what}: {got:.4f} {bar}"
        print(f"{self.id().split('.', 1)[-1]}: {figure}", flush=True)
        if not fine:
            raise Chance(figure)

    def run(self, result=None):
        result = result if result is not None else self.defaultTestResult()
        result.startTest(self)
        for number in range(1, ATTEMPTS + 1):
            attempt = _Attempt(result)
            super().run(attempt)
            if number == ATTEMPTS or not attempt.is_chance():
                break
            for error in attempt.found():
                print(f"measured again: {self.id()}: {error[1]!r}", flush=True)
            note("again", self)
            type(self).tearDownClass()
            type(self).setUpClass()  # the run that all its tests look at
        if self.has_measured:
            note("measured", self)
        attempt.pass_on()
        result.stopTest(self)
        return result
