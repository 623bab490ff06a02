# SPDX-License-Identifier: MIT
"""Calls that wait: greenprof ends none of them, and keeps none from being ended by the program's own signals."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import check  # noqa: E402

CALLS = 36


class Waits(check.Case):
    """At 10,000 Hz, beside threads that compute; what went wrong is a line BAD. One call in some thousand may end EARLY by the
    kernel's doing: a socket's timeout is counted in ticks, and a virtual machine's may come late."""

    def check(self, *command, calls=CALLS, engine="perf", clock="cpu"):
        alone = self.run_alone(["waits", *command])
        run = self.profile(["waits", *command], hz=10000, options=["--engine", engine, "--clock", clock])
        for truth in (alone, run.truth):
            self.assertEqual(truth.values["BAD"], [])
            self.assertEqual(truth.values["CALLS"], [[str(calls)]])
        for truth in (alone, run.truth):
            self.at_most(f"calls that ended early: {truth.values['EARLY']}", len(truth.values["EARLY"]), 0)
        self.at_least(f"samples by {engine}, {clock}", len(run.capture().samples), 500 if engine == "perf" else 20)

    def test_none_ends_early(self):
        self.check("length", 150)

    def test_none_ends_early_by_ticks(self):
        self.check("length", 100, engine="cpu")

    def test_none_ends_early_by_the_wall_clock(self):
        self.check("length", 100, clock="wall")

    def test_none_ends_early_by_the_pacer(self):
        self.check("length", 100, engine="monotonic")

    def test_own_signals_end_them(self):
        """A signal of the program's that comes while a thread sleeps ends the call, also where a sample is taken the
        moment before or after."""
        self.check("kicked", 60, calls=CALLS - 1)
        self.check("kicked", 30, calls=CALLS - 1, clock="wall")

    def test_own_signals_end_them_by_the_pacer(self):
        self.check("kicked", 30, calls=CALLS - 1, engine="monotonic")

    def test_own_signals_end_them_by_ticks(self):
        self.check("kicked", 30, calls=CALLS - 1, engine="cpu")

    def test_kernel_makes_calls_again(self):
        """After handlers with SA_RESTART, as without greenprof."""
        self.check_restarted(self.run_alone(["restarted", 100]))
        for engine, clock in (("perf", "cpu"), ("perf", "wall"), ("cpu", "cpu"), ("monotonic", "cpu")):
            self.check_restarted(self.profile(["restarted", 100], hz=10000, options=["--engine", engine, "--clock", clock]).truth)

    def test_transfers_are_whole(self):
        """Large transfers, which the kernel cuts short for a signal; and those that are short by themselves."""
        self.assertEqual(self.run_alone(["transfers", 1]).values["BAD"], [])
        for engine in ("perf", "cpu", "monotonic"):
            run = self.profile(["transfers", 2], hz=10000, options=["--engine", engine])
            self.assertEqual(run.truth.values["BAD"], [], engine)
            self.assertEqual(run.truth.values["DONE"], [[]], engine)

    def check_restarted(self, truth):
        self.assertEqual(truth.values["BAD"], [])
        self.at_most("signals that came as one", len(truth.values["MERGED"]), 0)  # each was to end a call


if __name__ == "__main__":
    check.main(at_once=2)
