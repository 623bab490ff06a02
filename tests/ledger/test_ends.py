# SPDX-License-Identifier: MIT
"""Coroutines that are over are not billed any more, and those that never started are ready: the ledger, the census and
the graph against a program (ends.c) that books each life itself. Then nothing runs for IDLE seconds: an end that is not
seen is that much too long."""
import collections
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import check

IDLE = 0.5
SLACK = 0.1  # seconds: a busy machine comes between two clocks


class Ends(check.Case):
    def run_mode(self, mode, idle=IDLE, **how):
        self.done = self.profile(["ends", mode, idle], options=("--clock", "wall"), **how)
        self.lives = {words[0]: tuple(map(float, words[1:])) for words in self.done.truth.values["LIFE"]}
        self.folded = self.done.folded("--clock", "wall")

    def rows(self):
        """What `report --by coroutine` has of each name: (rows, wall, ready, waiting, blocked, preempted)."""
        done = check.greenprof("report", self.done.output, "--by", "coroutine", "-n", "0", "--clock", "wall")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {}
        for line in done.stdout.decode().partition("longest  switches")[2].splitlines()[1:]:
            words = line.split()
            if words:
                wall, _, blocked, preempted, ready, _, waiting = (float(word) if word != "-" else 0 for word in words[:7])
                before, row = rows.get(words[-1], (0,) * 6), (1, wall, ready, waiting, blocked, preempted)
                rows[words[-1]] = tuple(a + b for a, b in zip(before, row))
        return rows

    def census(self):
        """Names of the live coroutines by state."""
        done = check.greenprof("coroutines", self.done.output, "-n", "0", "-m", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = re.findall(r"^ +\d+  (\w+) +[\d.]+ s  (\w+)  of \d+$", done.stdout.decode(), re.M)
        return sorted((name, state) for state, name in found)

    def check_census(self, expected):
        """Where the one sample of a run comes right inside a switch, that switch may be taken for another one."""
        found = self.census()
        self.assertLessEqual(collections.Counter(expected), collections.Counter(found))
        self.at_most(f"beside those that live: {found}", len(found), len(expected))

    def width(self, *frames):
        return sum(weight for stack, weight in self.folded.stacks if all(frame in stack for frame in frames))

    def check_lives(self):
        rows = self.rows()
        for name, (wall, waited) in self.lives.items():
            self.near(f"{name}: wall", rows[name][1], wall, 0.01, SLACK)
            self.near(f"{name}: waiting", rows[name][3], waited, 0.01, SLACK)
            self.near(f"{name}: in the graph", self.width(name), wall, 0.02, SLACK)
            self.near(f"{name}: waiting in the graph", self.width(name, "[waiting]"), waited, 0.02, SLACK)

    def test_ends_that_show_late(self):
        """Long enough for waits that go on to be in the capture when they turn out to have no end."""
        self.check_all(11)

    def test_every_end(self):
        self.check_all(IDLE)

    def check_all(self, idle):
        self.run_mode("all", idle)
        self.assertEqual(set(self.lives), {"returns", "leaves", "swaps_reused", "swaps_unmapped", "swaps_overwritten", "stays"})
        self.check_lives()
        # Only live coroutines are in the census; the one made twice on its stack is there once.
        self.check_census([("never", "new"), ("never", "new"), ("stays", "waiting")])
        # No wait without a function: what had not started is below its entry, with nothing else.
        bare = sum(weight for stack, weight in self.folded.stacks if stack[0].startswith("[waiting"))
        self.at_most("waits without a function", bare, 0, SLACK)
        self.assertEqual({tuple(stack) for stack, _ in self.folded.stacks if "never" in stack}, {("never", "[not started]")})
        seconds = float(self.done.truth.values["NEW"][0][1])
        count, wall, ready, waiting, *_ = self.rows()["never"]
        self.assertEqual((count, waiting), (2, 0))
        self.near("never: ready", ready, seconds, 0.01, SLACK)
        self.near("never: wall", wall, seconds, 0.01, SLACK)
        self.near("never: in the graph", self.width("never"), seconds, 0.01, SLACK)

    def test_halves_of_a_switch(self):
        """What leaves by setcontext() and comes back was parked meanwhile."""
        self.run_mode("back")
        self.check_lives()
        self.check_census([("halves", "waiting")])

    def test_asleep_at_the_end(self):
        """What its thread slept in a slice that never ended is blocked, not preempted: nothing took its processor."""
        self.run_mode("asleep", 2)
        self.check_lives()
        slept = float(self.done.truth.values["SLEPT"][0][1])
        *_, blocked, preempted = self.rows()["sleeps"]
        self.near("blocked", blocked, slept, 0.02, SLACK)
        self.at_most("preempted", preempted, 0, SLACK)
        self.near("blocked in the graph", self.width("sleeps", "[blocked]"), slept, 0.02, SLACK)

    def test_asleep_and_killed(self):
        """The same, of which the capture has at least all but the last quarter."""
        self.run_mode("killed", 3, status=-9, healthy=False)
        slept = float(self.done.truth.values["SLEPT"][0][1])
        *_, blocked, preempted = self.rows()["sleeps"]
        self.at_least("blocked", blocked, 0.7 * slept, SLACK)
        self.at_most("preempted", preempted, 0.1 * slept, SLACK)


if __name__ == "__main__":
    check.main(at_once=3)
