# SPDX-License-Identifier: MIT
"""Greenlets are coroutines: shares, names and stacks of eventlet's and gevent's, and no crash in storms of them."""
import os
import re
import subprocess
import unittest
import unittest.mock

import support
import measured

support.require("greenlet", "eventlet", "gevent")


def seeing(how):
    """greenprof's choice: switches seen in greenlet's own functions (see), by settrace (trace), or read at each sample."""
    return unittest.mock.patch.dict(os.environ, {"GREENPROF_GREENLETS": how})


class Shares(measured.Case):
    def check(self, kind):
        run = support.Run("shares.py", kind, hz=2000)
        truth = {name: int(ns) for name, ns in map(str.split, run.output.splitlines())}
        folded = run.folded("--by", "coroutine")
        workers, owners = {}, {}
        for stack, weight in folded.stacks:
            name = re.fullmatch(r"\[coroutine \d+ (w\d)\]", stack[0])
            for frame in set(stack[1:]) & set(truth):
                owners.setdefault(frame, {}).setdefault(stack[0], []).append(weight)
            if name:
                workers[name[1]] = workers.get(name[1], 0) + weight
        self.assertEqual(sorted(workers), sorted(truth))
        for frame, roots in owners.items():  # no other stack is charged to a coroutine,
            own = max(map(sum, roots.values()))  # but for the ~20 ns in which greenlet changes the two
            self.at_most(f"{frame} on another coroutine", sum(map(sum, roots.values())) - own, 0.005 * folded.total)
        for name, ns in truth.items():
            share, true = workers[name] / sum(workers.values()), ns / sum(truth.values())
            self.near(f"share of {name}", share, true, 0.01, samples=run.samples())
        hub = {name for stack, _ in folded.stacks for name in stack[:1] if "[hub]" in name}
        self.assertLessEqual(len(hub), 1)  # it runs for a thousandth of the time: it may have no sample

    def test_eventlet(self):
        self.check("eventlet")

    def test_gevent(self):
        self.check("gevent")

    def test_by_trace_callable(self):
        with seeing("trace"):
            self.check("eventlet")

    def test_read_at_each_sample(self):
        with seeing("read"):
            self.check("gevent")

    def test_odd_switches(self):
        for how, tolerance in (("see", 0.1), ("trace", 0.1), ("read", 0.2)):
            with self.subTest(how), seeing(how):
                run = support.Run("odd_switches.py", hz=5000)
                folded = run.folded("--by", "coroutine")
                for function, owner in map(str.split, run.output.splitlines()):
                    mine = {stack[0]: 0 for stack, _ in folded.stacks if function in stack}
                    for stack, weight in folded.stacks:
                        if function in stack:
                            mine[stack[0]] += weight
                    most = max(mine, key=mine.get)
                    self.assertRegex(most, r"^\[thread " if owner == "main" else rf"^\[coroutine \d+ {owner}\]$", (function, mine))
                    self.near(function, mine[most], 0.1, tolerance, 0.001)
                rows = [line.split() for line in run.report("--by", "coroutine").splitlines()]
                exact = {row[-1]: float(row[0]) for row in rows if row and row[-1] in ("one", "three")}
                self.near("one", exact["one"], 0.4, tolerance)
                self.near("three", exact["three"], 0.1, tolerance)


class Waits(measured.Case):
    def test_waiting_is_charged_to_the_place_where_it_happens(self):
        run = support.Run("waits.py", options=["--clock", "wall"])
        truth = {name: float(seconds) for name, seconds in map(str.split, run.output.splitlines())}
        times = run.folded("--clock", "wall").cumulative()
        for name, seconds in truth.items():
            self.near(name, times[name], seconds, 0.1)

    def test_green_threads_that_are_over_when_they_are_looked_at_have_names(self):
        rows = support.Run("naps.py").report("--by", "coroutine", "--clock", "wall").splitlines()
        names = [row.split()[-1] for row in rows if re.match(r" +\d+\.\d+ ", row)]
        self.assertEqual(sorted(name for name in names if not re.fullmatch(r"\[hub\]|python3[.0-9]*\]", name)), ["naps"] * 20)


class Ready(measured.Case):
    def check(self, kind):
        run = support.Run("ready.py", kind, options=["--clock", "wall"])
        folded, total = run.folded("--clock", "wall"), 0
        for line in run.output.splitlines():
            name, ready, parked = line.split()
            total += float(ready)
            for leaf, true in (("[ready]", float(ready)), ("[parked]", float(parked))):
                seconds = sum(weight for stack, weight in folded.stacks if name in stack and stack[-1] == leaf)
                self.near(f"{name} {leaf}", seconds, true, 0.1, 0.01)
        kept_by = support.Folded(support.command("export", run.capture, "--format", "folded", "--by", "victim-time"))
        self.at_least("blocks", kept_by.cumulative()["blocks"], 0.7 * total)

    def test_eventlet_tells(self):
        self.check("eventlet")

    def test_gevent_tells(self):
        self.check("gevent")


class Replies(measured.Case):
    """What a loop was kept from looking for may have been there for as long: then it is not known when the coroutine became
    ready, and the slice that kept the loop is what it may have waited for."""

    def check(self, kind):
        run = support.Run("replies.py", kind)
        truth = {name: tuple(map(float, seconds)) for name, *seconds in map(str.split, run.output.splitlines())}
        waits = ("ready", "parked", "waiting")
        rows = [line.split() for line in run.report("--by", "coroutine", "--clock", "wall").splitlines()]
        columns = next(row for row in rows if row[:2] == ["wall", "cpu"])
        exact = {row[-1]: {name: float(row[columns.index(name)]) for name in waits} for row in rows if row and row[-1] in truth}
        for name, (waited, late) in truth.items():
            self.near(f"{name} in all", sum(exact[name].values()), waited + late, 0.05, 0.01)
        self.near("quick: parked", exact["quick"]["parked"], truth["quick"][0], 0.05, 0.01)
        waited, late = truth["late_one"]
        self.at_most("late_one: parked", exact["late_one"]["parked"], waited)
        self.at_most("late_one: ready", exact["late_one"]["ready"], late)
        self.near("late_one: waiting", exact["late_one"]["waiting"], 1.5, 0.1)
        folded = run.folded("--clock", "wall", "--by", "coroutine")
        for leaf in ("parked", "waiting"):
            sampled = sum(weight for stack, weight in folded.stacks if "late_one" in stack[0] and stack[-1] == f"[{leaf}]")
            self.near(f"late_one [{leaf}]", sampled, exact["late_one"][leaf], 0.1, 0.01)
        text = run.report("--by", "victim-time")
        kept_by = support.Folded(support.command("export", run.capture, "--format", "folded", "--by", "victim-time"))
        self.near("kept by blocks", kept_by.cumulative()["blocks"], 1.5, 0.1)
        at_most = re.search(r"of it +(\S+) s at most", text)
        self.near("of it at most", float(at_most[1]), 1.5, 0.1)

    def test_eventlet(self):
        self.check("eventlet")

    def test_eventlet_patched(self):
        self.check("patched")

    def test_asyncio(self):
        self.check("asyncio")


class Programs(measured.Case):
    def test_storm(self):
        run = support.Run("storm.py", 4, hz=10000)
        self.assertEqual(run.output, "survived\n")
        allowed = {"body": {"nest", "numbers", "<module>"}, "nest": {"nest", "pause"}}
        for caller, callee in run.folded().pairs():
            if caller in allowed and not re.search(r"[^a-z]", callee):
                self.assertIn(callee, allowed[caller] | {"pause"}, (caller, callee))

    def test_there_is_one_hub(self):
        """Nothing that is sampled as it ends, or amid a switch from the hub or to it, is taken for the hub, or for another one."""
        for kind in ("eventlet", "gevent"):
            with self.subTest(kind):
                folded = support.Run("short_lives.py", kind, hz=20000).folded("--by", "coroutine")
                self.assertEqual(len({stack[0] for stack, _ in folded.stacks if "[hub]" in stack[0]}), 1)

    def test_a_tracer_of_the_programs_own_sees_what_it_would_alone(self):
        alone = subprocess.run([support.PYTHON, os.path.join(support.PROGRAMS, "tracers.py")], capture_output=True,
                               text=True)
        self.assertEqual(alone.returncode, 0, alone.stderr)
        self.assertEqual(support.Run("tracers.py").output, alone.stdout)

    def test_switches_are_seen_in_greenlets_own_functions(self):
        support.require_package()
        done = subprocess.run([support.PYTHON, "-B", os.path.join(support.PROGRAMS, "switches_seen.py")], capture_output=True,
                              text=True)
        self.assertEqual((done.stdout, done.stderr), ("replaced: 0\nreplaced: 2\nreplaced: 0\nreplaced: 2\n", ""))

    def test_native_stacks_end_where_the_greenlet_begins(self):
        run = support.Run("shares.py", "gevent", hz=5000)
        folded = run.folded("--by", "coroutine")
        foreign = sum(weight for stack, weight in folded.stacks
                      if stack[0].startswith("[coroutine") and "Py_BytesMain" in stack)
        self.at_most("below where a greenlet begins", foreign, 0.005 * folded.total)


class Names(measured.Case):
    """greenprof.set_name(): the last name is shown, those before are found."""

    def check(self, kind):
        support.require_package()
        run = support.Run("names.py", kind)
        roots = lambda *arguments: {stack[0].split(" ", 2)[-1] for stack, _ in run.folded("--by", "coroutine", *arguments).stacks}
        self.assertLessEqual({"request 4]", "request 5]"}, roots())
        self.assertFalse(any("keeps its own" in root for root in roots()), roots())
        for request, worker in enumerate(("request 4]", "request 5]") * 3):
            self.assertEqual(roots("--name", f"request {request}"), {worker})

    def test_eventlet(self):
        self.check("eventlet")

    def test_gevent(self):
        self.check("gevent")


if __name__ == "__main__":
    support.helpers.main(partial=0, at_once=2)
