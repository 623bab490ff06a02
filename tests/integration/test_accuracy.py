# SPDX-License-Identifier: MIT
"""Coroutines of known truth at every rate and with every engine; work in lock-step with the timer."""
import os
import subprocess
import sys

import check


class Coroutines(check.Case):
    def check(self, program="coroutines", seconds=2.0, rounds=500, hz=1000, options=(), tolerance=0.03, slack=0.003):
        run = self.profile([program, seconds, rounds], hz=hz, options=options)
        capture = run.capture()
        folded, by_coroutine = run.folded(), run.folded("--by", "coroutine")
        self.check_functions(folded, run.truth, len(capture.samples), tolerance)
        self.check_total(folded, run.truth, slack=slack)
        self.check_ledger(run, slack=max(slack, 0.002))
        self.check_roots(by_coroutine, run.truth, len(capture.samples))
        self.check_weights(capture, slack=3.0 / hz)
        return run

    def check_roots(self, folded, truth, samples):
        """Exactly one root a coroutine, and each holds its own function and no other."""
        roots = [root for root in folded.roots() if not root.startswith("[thread")]
        names = [root.rstrip("]").split()[-1] for root in roots]
        self.assertLessEqual(set(names), set(truth.coroutines))
        self.assertEqual(len(names), len(set(names)), roots)
        for name in ("alpha", "beta", "gamma"):
            root = roots[names.index("entry_" + name)]
            own = folded.under(root)
            inclusive = own.inclusive()
            others = sum(seconds for function, seconds in inclusive.items()
                         if function.startswith("work_") and function != "work_" + name)
            self.assertEqual(others, 0, f"{root} holds another's work")
            self.at_least(f"work on {root}", inclusive["work_" + name], 0.8 * own.total)  # the rest: switches, the loop

    def test_100_hz(self):
        self.check(seconds=6.0, hz=100)

    def test_1000_hz(self):
        self.check(seconds=3.0)

    def test_10000_hz(self):
        self.check(hz=10000)

    def test_20000_hz(self):
        self.check(seconds=1.0, hz=20000, tolerance=0.06, slack=0.04)  # every other microsecond is the sampler's

    # Slices as short as a few runs of the handler: on a busy machine what it delays shows in the shares.
    def test_short_slices(self):
        """Slices of 9, 18 and 60 us: far shorter than the sampling period, and than a read of the CPU clock is worth."""
        self.check(rounds=20000, tolerance=0.1)

    def test_short_slices_lock(self):
        """A cycle of half the period, moved by the handler's own time: samples must not get stuck at one phase."""
        self.check(seconds=1.5, rounds=15000, hz=5000, tolerance=0.15)  # each switch has its share of 5,000 signals a second

    def test_o3(self):
        self.check("coroutines_o3")

    def test_cpu_engine(self):
        self.check(seconds=3.0, options=["--engine", "cpu"], hz=250)

    def test_cpu_engine_beyond_the_tick(self):
        """More is asked for than the kernel's tick delivers: weights are the time that passed, not the period."""
        self.check(seconds=3.0, options=["--engine", "cpu"], hz=2000)

    def test_monotonic_engine(self):
        self.check(options=["--engine", "monotonic"])


class LateSamples(check.Case):
    """Where there is no perf event, a sample comes with a tick of the kernel that meets the thread at work."""

    SECONDS = 0.06  # three times what is overdue

    def check(self):
        alone = subprocess.run([check.program("between_ticks"), "0"], capture_output=True, timeout=check.LIMIT_SECONDS)
        check.need(alone.returncode != 3, "the timers of this kernel do not wait for its ticks")
        run = self.profile(["between_ticks", self.SECONDS], options=["--engine", "cpu"])
        truth, folded, capture = run.truth, run.folded(), run.capture()
        hidden = float(truth.values["HIDDEN"][0][0])
        self.at_least("after the last tick", hidden, self.SECONDS)
        self.at_least("after the last sample", capture.counters["pending_ns"] / 1e9, hidden)
        self.near("prof_total_ns()", float(truth.values["PROFILE"][0][0]), truth.total, check.TOTAL_TOLERANCE, 0.003)
        self.near("total", folded.total, float(truth.values["ALL"][0][0]), check.TOTAL_TOLERANCE, 0.003)
        self.assertEqual(capture.counters["unsampled_ns"], 0)
        self.check_weights(capture, slack=0.003)

    def test_no_tick_meets_the_work(self):
        self.check()

    def test_busy_processors(self):
        """Several programs beside others that take all of the processors."""
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * os.cpu_count())]
        try:
            for _ in range(2):
                self.check()
        finally:
            for process in busy:
                process.kill()
                process.wait()


class LockStep(check.Case):
    def check(self, slice_us, hz, seconds=2.0):
        run = self.profile(["lockstep", seconds, slice_us], hz=hz)
        folded = run.folded()
        self.check_functions(folded, run.truth, len(run.capture().samples))
        self.check_total(folded, run.truth)

    def test_one_period(self):
        self.check(1000, 1000)

    def test_two_periods(self):
        self.check(2000, 1000)

    def test_half_a_period(self):
        self.check(500, 1000)

    def test_ten_milliseconds(self):
        self.check(10000, 1000)

    def test_slow_timer(self):
        self.check(10000, 100, seconds=5.0)

    def test_fast_timer(self):
        self.check(100, 10000, seconds=1.5)


if __name__ == "__main__":
    check.main()
