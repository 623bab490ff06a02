# SPDX-License-Identifier: MIT
"""`run` without a rate: what a signal costs is measured, and the rate follows from it, within 2 % of the program's CPU
time, as greenprof measures it; weights stay right, and a rate that is asked for is obeyed.

Counts and CPU times of one and the same capture are compared, no wall-clock time.
"""
import os
import re
import subprocess

import check
from capture import Capture

LAST = r"took (\d+(?:\.\d)?) % of its CPU; a signal costs (\d+) us here(?:, so (\d+) Hz)?"
MOST_HZ, LATE = 1000, 1.35


class DefaultRate(check.Case):
    def run_it(self, seconds, options=(), frequency=None):
        output = os.path.join(self.directory, "c.greenprof")
        environment = {name: value for name, value in os.environ.items() if name != "GREENPROF_FREQUENCY"}
        environment["XDG_RUNTIME_DIR"] = self.directory  # no price of another test's process
        if frequency:
            environment["GREENPROF_FREQUENCY"] = str(frequency)
        done = subprocess.run([check.GREENPROF, "run", *options, "-o", output, "--", check.program("coroutines"), str(seconds),
                               str(seconds * 500)], capture_output=True, text=True, timeout=check.LIMIT_SECONDS, env=environment,
                              check=True)
        return Capture(output), done.stderr, check.greenprof("info", output).stdout.decode()

    def said(self, line):
        found = re.search(LAST, line)
        self.assertIsNotNone(found, line)
        return float(found[1]), float(found[2]), int(found[3] or 0)

    def test_within_two_percent(self):
        """What signals take is; where a busy machine makes greenprof's own threads dear, the whole of so short a run may not be."""
        capture, line, info = self.run_it(6)
        percent, price_us, hz = self.said(line)
        cpu_s, own_s = capture.process_cpu_ns / 1e9, capture.counters["signals"] * price_us / 1e6
        self.assertLess(own_s, 0.02 * cpu_s * LATE)
        self.near("sampled", capture.sampled_ns / 1e9, cpu_s, 0.03, 0.2)
        if price_us > 40:
            self.assertTrue(0 < hz < 500, line)
            self.assertLess(capture.counters["samples"], 500 * cpu_s)
        self.assertRegex(info, rf"budget +2% of the program's CPU time; greenprof took \d+\.\d+%")
        self.assertRegex(info, r"signals 0\.\d+ s \(\d+\.\d us each")
        took = float(re.search(r"own cost +(\d+\.\d+) %", info)[1])
        self.near("told twice", took, percent, 0, 0.06)

    def test_what_is_chosen_is_obeyed(self):
        """By the option and by the environment; what it takes is told all the same."""
        for options, frequency in ((("-F", "1000"), None), ((), 1000)):
            capture, line, info = self.run_it(2, options, frequency)
            _, _, hz = self.said(line)
            self.assertEqual(hz, 0)
            self.assertNotIn("budget ", info)
            self.near("signals", capture.counters["signals"] * 1000 / MOST_HZ / 1e3, capture.process_cpu_ns / 1e9, 0.1, 0.1)

    def test_too_short_to_tell(self):
        """A price that was not measured is not told."""
        _, line, info = self.run_it(0.05)
        self.assertNotIn("a signal costs", line)
        self.assertIn("without what signals take to arrive, which was not measured", info)


if __name__ == "__main__":
    check.main()
