"""Tests of live profiles: chance and a busy machine have a part in what is sampled.

A test in which a check fails is run again from the start, ATTEMPTS times at most, and fails only where each attempt does; each
is printed, and tools/test lists them at its end. What no chance excuses fails at once: a crash, a hang, and what stands under
`with self.firm()`, a row of another request above all.
"""
import contextlib
import unittest

ATTEMPTS = 3
CHANCE = (AssertionError, LookupError, ValueError)  # what a check ends with, also where it looks for what was not sampled


class Firm(AssertionError):
    """What no chance excuses."""


def check_status(done, status=0):
    """done: a finished program; returned. One that a signal ended crashed."""
    if done.returncode != status:
        raise (Firm if done.returncode < 0 else AssertionError)(f"status {done.returncode}, not {status}", done.stdout, done.stderr)
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

    def may_be_chance(self):
        kinds = [error[0] for error in self.found()]
        return bool(kinds) and all(issubclass(kind, CHANCE) and not issubclass(kind, Firm) for kind in kinds)


def _report(name):
    def report(self, *arguments):
        self.reports.append((name, arguments))
    return report


for _name in ("addSuccess", "addError", "addFailure", "addSkip", "addExpectedFailure", "addUnexpectedSuccess", "addSubTest"):
    setattr(_Attempt, _name, _report(_name))


class Case(unittest.TestCase):
    @contextlib.contextmanager
    def firm(self):
        """What is checked inside fails its test at once."""
        try:
            yield
        except AssertionError as error:
            raise Firm(*error.args) from None

    def run(self, result=None):
        result = result if result is not None else self.defaultTestResult()
        result.startTest(self)
        for number in range(1, ATTEMPTS + 1):
            attempt = _Attempt(result)
            super().run(attempt)
            if number == ATTEMPTS or not attempt.may_be_chance():
                break
            for error in attempt.found():
                print(f"measured again: {self.id()}: {error[1]!r}", flush=True)
            type(self).tearDownClass()
            type(self).setUpClass()  # the run that all its tests look at
        attempt.pass_on()
        result.stopTest(self)
        return result
