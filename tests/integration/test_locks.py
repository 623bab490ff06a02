# SPDX-License-Identifier: MIT
"""Waits for mutexes in C, of each kind, by looks from outside: how long, whose lock it was, and what it did meanwhile."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import helpers  # noqa: E402
import measured  # noqa: E402

GREENPROF, PROGRAM = os.environ["GREENPROF"], os.path.join(os.environ["PROGRAMS"], "locks")
KINDS = ("plain", "again", "adaptive", "checked", "inherit", "robust")
SHARE, SLACK = 0.03, 0.012  # a look each 5 ms: of ten waits both ends, as chance has it


def greenprof(*arguments):
    return helpers.run([GREENPROF, *arguments]).stdout


class Locks(measured.Case, helpers.InFolder):
    def record(self, *arguments, clock="wall"):
        path = self.path("x.greenprof")
        output = helpers.run([GREENPROF, "run", "-q", "--clock", clock, "-o", path, "--", PROGRAM, *arguments]).stdout
        return path, output

    def test_times_and_holders(self):
        path, output = self.record()
        truth = {kind: float(seconds) for _, kind, seconds in map(str.split, output.splitlines())}
        lines = greenprof("report", path, "--by", "coroutine", "--clock", "wall").splitlines()
        columns = next(line.split() for line in lines if re.match(" +wall .* lock ", line))
        rows = {row[-1].rstrip("]"): dict(zip(columns, row)) for row in map(str.split, lines) if row and row[-1].endswith("]")}
        waits = [(stack, weight) for stack, weight in helpers.Folded(greenprof("export", path, "-f", "folded", "--clock", "wall")).stacks
                 if stack[-1] == "[lock]"]
        for kind in KINDS:
            self.near(f"ledger of {kind}", float(rows[f"victim-{kind}"]["lock"]), truth[kind], SHARE, SLACK)
            named = sum(weight for stack, weight in waits if stack[-2] == f"[held by holder-{kind}]" and "want" in stack)
            self.near(f"held by its holder: {kind}", named, truth[kind], SHARE, SLACK)
        self.assertEqual(float(rows["others"]["lock"]), 0)
        table = [line for line in greenprof("report", path, "--by", "lock").splitlines() if re.match(r" +\d", line) and "locks.c:" in line]
        self.assertEqual(sorted(line.split()[-1] for line in table), sorted(f"holder-{kind}" for kind in KINDS))
        for line in table:
            self.assertRegex(line, r" locks\.c:\d+  (nap|hold) \(locks\.c:\d+\), [\d.]+ ms, on holder-")

    def finding(self, *arguments):
        text = " ".join(greenprof("explain", *arguments).split())  # lines fit the terminal
        return text if "deadlock" in text else None

    def test_deadlock(self):
        """A circle is named with its functions: in a capture, and while it goes on."""
        path, _ = self.record("deadlock", clock="cpu")
        said = self.finding(path)
        for part in ("[thread first] waits in take_right", "[thread second] waits in second", "they cannot be woken"):
            self.assertIn(part, said)
        process = subprocess.Popen([GREENPROF, "run", "-q", "--control", "-o", self.path("y.greenprof"), "--", PROGRAM, "deadlock", "60"],
                                   stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "waiting\n")
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            pid = (file.read().split() or [str(process.pid)])[0]
        self.addCleanup(subprocess.run, ["kill", "-9", pid])
        self.assertIn("they cannot be woken", self.finding(pid))
        self.assertRegex(greenprof("coroutines", pid), r"\[held by (first|second)\]")

    def test_twin(self):
        """One of the two gives up now and then: it goes on by itself."""
        path, _ = self.record("twin", clock="cpu")
        self.assertIsNone(self.finding(path))


if __name__ == "__main__":
    helpers.main(at_once=2)
