# SPDX-License-Identifier: MIT
"""Comparisons of measured numbers, and the only tests that may run again.

What a live profile measures lies within a tolerance of the truth, and now and then outside it: near(), at_least() and
at_most() compare such numbers and raise Chance. A test with no failure but Chance runs again from the start,
ATTEMPTS times at most. Everything else fails at once: a wrong owner, a phantom frame, a missing row, an exit status, an
exception, a hang.

A tolerance has three parts, each with a reason of its own: `tolerance` is what the method may be off by, a share of the
truth; what chance adds follows from how many samples there are (`samples`, ERRORS standard errors); `slack` is what may
pass between two looks at a clock, and grows with what waits for a processor meanwhile (Noise.stretch).

Where MEASURED_LOG names a file, each test that compared measured numbers and each one that ran again appends a line:
tools/test counts them.
"""
import os
import resource
import sys
import unittest

ATTEMPTS = 3


STRETCH_MOST = 5
ERRORS = 4  # one comparison in 16,000 is off by more of them, and then runs again


def share_error(share, samples):
    """The standard error of a share of so many samples."""
    return (max(share * (1 - share), 0) / samples) ** 0.5 if samples else 0.0


def effective(weights):
    """So many samples of equal weight say as much as these."""
    weights = list(weights)
    return sum(weights) ** 2 / sum(weight * weight for weight in weights) if any(weights) else 0


class Noise:
    """What the machine did beside a test, from its begin to now."""

    def __init__(self):
        self.load, (self.steal, self.jiffies) = self.load_now(), self.jiffies_now()
        self.switches = self.switches_now()

    @staticmethod
    def load_now():
        """Runnable per processor: the mean of the last minute, or now, whichever is more."""
        with open("/proc/loadavg", encoding="ascii") as file:
            minute, _, _, now, _ = file.read().split()
        return max(float(minute), int(now.partition("/")[0]) - 1) / (os.cpu_count() or 1)

    @staticmethod
    def jiffies_now():
        with open("/proc/stat", encoding="ascii") as file:
            numbers = [int(word) for word in file.readline().split()[1:9]]
        return numbers[7], sum(numbers)

    @staticmethod
    def switches_now():
        return sum(resource.getrusage(who).ru_nivcsw for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

    def steal_share(self):
        steal, jiffies = self.jiffies_now()
        return (steal - self.steal) / max(jiffies - self.jiffies, 1)

    def stretch(self):
        """By how much what takes a moment may take longer, as against a machine with nothing else to do."""
        return min(max(1.0, self.load, self.load_now()) / max(1 - self.steal_share(), 0.1), STRETCH_MOST)

    def __str__(self):
        return (f"load {max(self.load, self.load_now()):.1f} a processor, {self.steal_share():.1%} stolen, "
                f"{self.switches_now() - self.switches} involuntary switches")


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

    def near(self, what, got, expected, tolerance, slack=0.0, samples=0, whole=1.0, count=0):
        """`got` lies within a share `tolerance` of `expected`, and `slack` in its unit, and what chance makes of a part
        `expected` of `whole` that is known by so many samples. count: slack that no load makes larger."""
        chance = ERRORS * share_error(min(abs(expected / whole), 1.0), samples) * whole
        slack = slack * self.noise.stretch() + count
        error = (got - expected) / expected if expected else 0.0
        bar = f"{tolerance:.2%}{f' + {slack:.4f}' if slack else ''}{f' + {chance:.4f}, n = {samples:.0f}' if samples else ''}"
        self._compare(abs(got - expected) <= tolerance * abs(expected) + slack + chance, what, got,
                      f"of {expected:.4f} ({error:+.2%}, bar {bar})")

    def at_least(self, what, got, bar, slack=0.0):
        """slack: as near()'s. None where the bar is a count, or far from what a sound build gives."""
        bar -= slack * self.noise.stretch()
        self._compare(got >= bar, what, got, f"(bar: at least {bar:.4f})")

    def at_most(self, what, got, bar, slack=0.0):
        bar += slack * self.noise.stretch()
        self._compare(got <= bar, what, got, f"(bar: at most {bar:.4f})")

    def _compare(self, fine, what, got, bar):
        self.has_measured = True
        figure = f"{what}: {got:.4f} {bar}"
        print(f"{self.id().split('.', 1)[-1]}: {figure}", flush=True)
        if not fine:
            raise Chance(f"{figure}; {self.noise}")

    def run(self, result=None):
        result = result if result is not None else self.defaultTestResult()
        result.startTest(self)
        for number in range(1, ATTEMPTS + 1):
            attempt = _Attempt(result)
            self.noise = Noise()
            super().run(attempt)
            if number == ATTEMPTS or not attempt.is_chance():
                break
            for error in attempt.found():
                print(f"measured again: {self.id()}: {error[1]!r}", flush=True)
            note("again", self)
            type(self).tearDownClass()
            type(self).setUpClass()  # the run that all its tests look at
        if self.has_measured:
            print(f"{self.id().split('.', 1)[-1]}: {self.noise}", flush=True)
            note("measured", self)
        attempt.pass_on()
        result.stopTest(self)
        return result
