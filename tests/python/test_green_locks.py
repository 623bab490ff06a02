# SPDX-License-Identifier: MIT
"""Waits of coroutines for locks: as those of threads (test_locks.py), of asyncio, eventlet and gevent, and of threading
under eventlet's patches."""
import json
import os
import re

import support
import measured

support.require("eventlet", "gevent")
support.require_package()

SHARE, SLACK = 0.03, 0.001  # of what the program measured, and seconds
NAMED = 0.95               # of the waited time, with its holder
KINDS = ("plain", "semaphore", "built")
with open(os.path.join(support.PROGRAMS, "green_locks.py")) as source:
    SOURCE = source.read().splitlines()


def made(kind, number):
    """The line that makes the lock of a kind, the first or a later one in the program."""
    return [i for i, text in enumerate(SOURCE, 1) if re.search(rf"\b{kind}=", text)][number]


class Green:
    """Of one library: what it is called in the program, and which one there makes a kind of lock."""
    is_named = False # coroutines have names of their own

    @classmethod
    def setUpClass(cls):
        cls.take(support.Run("green_locks.py", cls.library, options=("--clock", "wall")))

    @classmethod
    def take(cls, run):
        cls.run_ = run
        lines = [line.split() for line in cls.run_.output.splitlines()]
        cls.truth = {name: float(took) for _, name, took, _ in lines}
        cls.counts = {name: int(count) for _, name, _, count in lines}  # of waits that were long
        cls.names = {f"[trace {trace}]": name for trace, name in re.findall(r"([0-9a-f]{32}) task (\S+)$", cls.run_.report("--by", "request"), re.M)}
        cls.waits = [(stack, weight) for stack, weight in cls.run_.folded("--clock", "wall", "--by", "trace").stacks if stack[-1] == "[lock]"]

    def of(self, name):
        """Waits of a request; None: of no request."""
        return [(stack, weight) for stack, weight in self.waits if self.names.get(stack[0]) == name]

    def check(self, what, name, seconds):
        """One that gives up, after 0.1 s, may go on later than it could."""
        if name == "timed":
            self.at_least(f"{what} of {name}", seconds, 0.1 * (1 - SHARE), SLACK)
            self.at_most(f"{what} of {name}", seconds, self.truth[name] * (1 + SHARE), SLACK)
        else:
            self.near(f"{what} of {name}", seconds, self.truth[name], SHARE, SLACK)

    def test_sums(self):
        for name in [f"victim-{kind}" for kind in KINDS] + ["timed"]:
            self.check("samples", name, sum(weight for _, weight in self.of(name)))

    def test_ledger(self):
        lines = self.run_.report("--by", "request").splitlines()
        columns = next(line.split() for line in lines if re.match(" +latency .* lock ", line))
        for name in [f"victim-{kind}" for kind in KINDS] + ["timed"]:
            row = dict(zip(columns, next(line.split() for line in lines if line.endswith(f" task {name}"))))
            self.check("by request", name, float(row["lock"]) / 1e3)
            parts = sum(float(row.get(part, 0)) for part in ("cpu", "blocked", "preempt", "ready", "parked", "waiting", "gil", "lock") if row.get(part) != "-")
            self.near(f"parts of {name}", parts, float(row["latency"]), 0.01, 0.5)

    def test_path(self):
        folded = self.run_.folded("--by", "critical-path")
        for name in [f"victim-{kind}" for kind in KINDS] + ["timed"]:
            self.check("path", name, sum(weight for stack, weight in folded.stacks if name in stack[0] and stack[-1] == "[lock]"))

    def test_holders(self):
        for kind in KINDS:
            waits = self.of(f"victim-{kind}")
            total = sum(weight for _, weight in waits)
            held = sum(weight for stack, weight in waits if re.match(rf"\[in .*hold_{kind} \(green_locks.py:\d+\)\]", stack[-2]))
            self.at_least(f"code of {kind}", held, NAMED * total)
            named = sum(weight for stack, weight in waits if re.match(rf"\[held by coroutine {f'holder-{kind}' if self.is_named else '.*'}\]", stack[-3]))
            self.at_least(f"holder of {kind}", named, NAMED * total)

    def test_by_lock(self):
        rows = json.loads(self.run_.report("--by", "lock", "--json"))["rows"]
        for kind in KINDS:
            row = next(row for row in rows if row["function"].endswith(f"hold_{kind}"))
            self.assertEqual(row["victims"], 1)
            self.assertGreaterEqual(row["waits"], self.counts[f"victim-{kind}"])
            self.assertLessEqual(row["waits"], 12)
            self.near(f"total of {kind}", row["total_ns"] / 1e9, self.truth[f"victim-{kind}"], SHARE, SLACK)
            if kind in self.made:
                self.assertEqual(row["name"], f"green_locks.py:{made(kind, self.made[kind])}")

    def test_nothing_else_waits(self):
        long = {name for name in {*self.names.values(), None} for _, weight in self.of(name) if weight > 0.002}
        self.assertEqual(long, {f"victim-{kind}" for kind in KINDS} | {"timed"} | ({None} if self.library == "asyncio" else set())) # its links


class Asyncio(Green, measured.Case):
    library, is_named = "asyncio", True
    made = {"plain": 0, "semaphore": 0, "built": 0}

    def test_the_one_that_had_it_for_longest(self):
        """The lock goes from short to long to last: most of the last one's wait is for the second."""
        waits = [stack for stack, weight in self.run_.folded("--by", "coroutine", "--clock", "wall").stacks if stack[-1] == "[lock]" and weight > 0.1]
        self.assertIn("[held by coroutine link-long]", [stack[-3] for stack in waits if "link-last" in stack[0]])


class Eventlet(Green, measured.Case):
    library = "eventlet"
    made = {"plain": 1, "semaphore": 1, "built": 1}


class Patched(Green, measured.Case):
    library = "patched"
    made = {"plain": 2, "built": 2}  # a semaphore is called by its first waiter's place


class Gevent(Green, measured.Case):
    library = "gevent"
    made = {"plain": 3, "semaphore": 3, "built": 3}


if __name__ == "__main__":
    support.helpers.main(at_once=2)
