# SPDX-License-Identifier: MIT
"""Waits for locks: how long each thread waited, in the ledger, on its path and in the graph, who had the lock and in
which function; and what is no wait for a lock."""
import json
import os
import re

import support
import measured

support.require_package()

SHARE, SLACK = 0.03, 0.001  # of what the program measured, and seconds
NAMED = 0.95               # of the waited time, with its holder
ROUNDS = 12  # of the program
KINDS = ("plain", "again", "condition", "semaphore")


class Locks(measured.Case):
    @classmethod
    def setUpClass(cls):
        cls.take(support.Run("locks.py", options=("--clock", "wall")))

    @classmethod
    def take(cls, run):
        cls.run_ = run
        lines = [line.split() for line in cls.run_.output.splitlines()]
        cls.truth = {name: float(took) for _, name, took, _ in lines}
        cls.counts = {name: int(count) for _, name, _, count in lines}  # of waits that were long
        cls.waits = [(stack, weight) for stack, weight in cls.run_.folded("--clock", "wall").stacks if stack[-1] == "[lock]"]

    def rows(self, *options):
        """The lines of a table as {name at their end: {column: text}}."""
        lines = self.run_.report(*options).splitlines()
        columns = next(line.split() for line in lines if re.match(" +(latency|wall) .* lock ", line))
        rows = [line.split() for line in lines if re.match(r" +\d.* (ok .* task|\[thread) ([a-z]+-[a-z]+|others)\]?$", line)]
        return {row[-1].rstrip("]"): dict(zip(columns, row)) for row in rows}

    def check(self, what, name, seconds):
        """The wait is within what the program saw: that has the wait for the interpreter's lock behind it as well."""
        self.near(f"{what} of {name}", seconds, self.truth[name], SHARE, SLACK)

    def test_ledger(self):
        rows = self.rows("--by", "request")
        for kind in KINDS:
            row = rows[f"victim-{kind}"]
            self.check("by request", f"victim-{kind}", (float(row["lock"]) + float(row["gil"]) if "gil" in row else float(row["lock"])) / 1e3)
            parts = sum(float(row.get(part, 0)) for part in ("cpu", "blocked", "preempt", "gil", "lock"))
            self.near(f"parts of {kind}", parts, float(row["latency"]), 0.01, 0.5)
        # The threading module has locks of its own, which are waited for where the machine is busy.
        self.at_most("no lock's", float(rows["others"]["lock"]), 20, 1)

    def test_path(self):
        folded = self.run_.folded("--by", "critical-path")
        self.assertIn(" lock ", self.run_.report("--by", "critical-path"))
        for kind in KINDS:
            waited = sum(weight for stack, weight in folded.stacks if f"victim-{kind}" in stack[0] and stack[-1] == "[lock]")
            self.check("path", f"victim-{kind}", waited)

    def test_holders(self):
        for kind in KINDS:
            waits = [(stack, weight) for stack, weight in self.waits if f"want_{kind}" in stack]
            named = sum(weight for stack, weight in waits if f"[held by holder-{kind}]" in stack)
            self.at_least(f"holder of {kind}", named, NAMED * sum(weight for _, weight in waits))
            if kind != "semaphore": # which is known by who gave it alone
                held = sum(weight for stack, weight in waits if re.match(rf"\[in hold_{kind} \(locks.py:\d+\)\]", stack[-2]))
                self.at_least(f"code of {kind}", held, NAMED * sum(weight for _, weight in waits))

    def test_by_lock(self):
        """A lock is called by its creator's place; a semaphore, by its first waiter's."""
        rows = [line.split() for line in self.run_.report("--by", "lock").splitlines() if re.match(r" +\d.* locks.py:\d+  hold_", line)]
        with open(os.path.join(support.PROGRAMS, "locks.py")) as file:
            source = file.read().splitlines()
        for kind in KINDS:
            waits, total, median, p99, longest, victims, lock = next(row for row in rows if f"hold_{kind}" in row)[:7]
            first = f"def want_{kind}" if kind == "semaphore" else f"{kind} = "
            line = next(i for i, text in enumerate(source, 1) if text.startswith(first)) + (kind == "semaphore")
            self.assertEqual(lock, f"locks.py:{line}")
            self.assertIn(int(victims), (1, 2)) # a victim without a processor keeps its holder waiting
            self.assertGreaterEqual(int(waits), self.counts[f"victim-{kind}"])
            self.assertLessEqual(int(waits), 2 * ROUNDS)
            self.near(f"total of {kind}", float(total) / 1e3, self.truth[f"victim-{kind}"], SHARE, SLACK)
            self.assertLessEqual(float(median), float(p99))
            self.assertLessEqual(float(p99), float(longest))
            said = next(row for row in json.loads(self.run_.report("--by", "lock", "--json"))["rows"] if row["name"] == lock)
            self.assertEqual((said["waits"], said["victims"], said["function"]), (int(waits), int(victims), f"hold_{kind}"))
            self.near(f"total_ns of {kind}", said["total_ns"] / 1e6, float(total), 0, 0.001)

    def test_nothing_else_waits(self):
        others = {"others", "main", "idle", "_shutdown", "faulthandler_thread"}
        lost = [stack for stack, weight in self.waits if weight > 0.002 and (others & set(stack) or stack[0].startswith("["))
                and not any(frame.startswith("[lock 0x") for frame in stack)] # a mutex of C, the interpreter's own
        self.assertEqual(lost, [])


if __name__ == "__main__":
    support.helpers.main(at_once=2)
