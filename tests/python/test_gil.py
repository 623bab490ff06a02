# SPDX-License-Identifier: MIT
"""Waits for the interpreter's lock: how long each request waited, on its path and in the graph, and who had the lock."""
import re

import support
import measured

support.require_package()

SHARE, SLACK = 0.03, 0.001  # of what the program measured, and seconds
NAMED = 0.95                # of the napper's waits, with a thread that computes


class Gil(measured.Case):
    def setUp(self):
        self.run_ = support.Run("gil.py", options=("--clock", "wall"))
        self.truth = {name: list(map(float, numbers)) for _, name, *numbers in map(str.split, self.run_.output.splitlines())}
        self.assertEqual(set(self.truth), {"burner-0", "burner-1", "napper"})

    def check_waited(self, what, name, seconds):
        """What is no sleep, and no computing; of what the kernel calls a wait for a processor, some or all is in it."""
        wall, cpu, slept, delay = self.truth[name]
        self.at_least(f"{what} of {name}", seconds, (1 - SHARE) * (wall - cpu - slept - delay), SLACK)
        self.at_most(f"{what} of {name}", seconds, (1 + SHARE) * (wall - cpu - slept), SLACK)

    def rows(self, *options):
        """The lines of a table as {name at their end: {column: text}}."""
        lines = self.run_.report(*options).splitlines()
        columns = next(line.split() for line in lines if re.match(" +(latency|wall) .* gil ", line))
        rows = [line.split() for line in lines if re.match(r" +\d.* (ok .* task|\[thread) (burner-\d|napper)\]?$", line)]
        self.assertEqual(len(rows), len(self.truth))
        return {row[-1].rstrip("]"): dict(zip(columns, row)) for row in rows}

    def test_ledger(self):
        for name, row in self.rows("--by", "request").items():
            self.check_waited("by request", name, float(row["gil"]) / 1e3)
            parts = sum(float(row[part]) for part in ("cpu", "blocked", "preempt", "gil"))
            self.near(f"parts of {name}", parts, float(row["latency"]), 0.01, 0.5)

    def test_threads(self):
        rows = self.rows("--by", "coroutine", "--clock", "wall")
        for name in self.truth:
            wall, cpu, slept, delay = self.truth[name]
            self.at_least(f"by coroutine of {name}", float(rows[name]["gil"]), (1 - SHARE) * (wall - cpu - slept - delay), 0.002)

    def test_path(self):
        text = self.run_.report("--by", "critical-path")
        self.assertIn(" gil ", text)
        folded = self.run_.folded("--by", "critical-path")
        for name in self.truth:
            waited = sum(weight for stack, weight in folded.stacks if name in stack[0] and stack[-1] == "[gil]")
            self.check_waited("path", name, waited)

    def test_holders(self):
        waits = [(stack, weight) for stack, weight in self.run_.folded("--clock", "wall").stacks
                 if stack[-1] == "[gil]" and "nap" in stack]
        named = sum(weight for stack, weight in waits if re.match(r"\[held by burner-\d\]$", stack[-2]))
        self.at_least("held by what computes", named, NAMED * sum(weight for _, weight in waits))


if __name__ == "__main__":
    support.helpers.main(at_once=2)
