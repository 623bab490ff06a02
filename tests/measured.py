"""Tests whose figures chance and a busy machine have a part in.

A comparison of two numbers (assertLess and its kin, assertAlmostEqual) is a figure: where it lies outside its tolerance,
its test is run again from the start, ATTEMPTS times at most, and fails only where each of them fails; so is whatever stands
under `with self.sampled()`. All else a test says, a crash, a row of another request, a status, fails it at once.

A program that looks at its own figures ends with OUT_OF_TOLERANCE where one is off.
"""
import contextlib
import numbers
import unittest

ATTEMPTS = 3
OUT_OF_TOLERANCE = 99  # a program's exit status


class OutOfTolerance(AssertionError):
    """A figure is off."""


def check_figures(done):
    """done: a finished program; returned."""
    if done.returncode == OUT_OF_TOLERANCE:
        raise OutOfTolerance(done.stdout, done.stderr)
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

    def only_figures(self):
        return bool(self.found()) and all(issubclass(error[0], OutOfTolerance) for error in self.found())


def _report(name):
    def report(self, *arguments):
        self.reports.append((name, arguments))
    return report


for _name in ("addSuccess", "addError", "addFailure", "addSkip", "addExpectedFailure", "addUnexpectedSuccess", "addSubTest"):
    setattr(_Attempt, _name, _report(_name))


def _figure(name):
    original = getattr(unittest.TestCase, name)

    def check(self, first, second, *arguments, **options):
        try:
            original(self, first, second, *arguments, **options)
        except AssertionError as error:
            if isinstance(first, numbers.Number) and isinstance(second, numbers.Number):
                raise OutOfTolerance(*error.args) from None
            raise
    return check


class Case(unittest.TestCase):
    @contextlib.contextmanager
    def sampled(self):
        """What is checked inside is a figure: whether something was seen at all."""
        try:
            yield
        except AssertionError as error:
            raise OutOfTolerance(*error.args) from None

    def run(self, result=None):
        result = result if result is not None else self.defaultTestResult()
        result.startTest(self)
        for number in range(1, ATTEMPTS + 1):
            attempt = _Attempt(result)
            super().run(attempt)
            if number == ATTEMPTS or not attempt.only_figures():
                break
            for error in attempt.found():
                print(f"out of tolerance, measured again: {self.id()}: {error[1]}", flush=True)
            type(self).tearDownClass()
            type(self).setUpClass()  # the run that all its tests look at
        attempt.pass_on()
        result.stopTest(self)
        return result


for _name in ("assertLess", "assertLessEqual", "assertGreater", "assertGreaterEqual", "assertAlmostEqual"):
    setattr(Case, _name, _figure(_name))
