# SPDX-License-Identifier: MIT
"""asyncio's tasks are coroutines: shares, names, awaits, waits and requests, and nothing changes for the program."""
import os
import pstats
import re
import tempfile
import unittest

import support
import measured


def numbers(text):
    return {name: float(value) for name, value in map(str.split, text.splitlines())}


class Shares(measured.Case):
    PROGRAM = ("task_shares.py",)

    def test_each_task_has_its_own_time_and_awaits(self):
        run = support.Run(*self.PROGRAM, hz=2000)
        truth = numbers(run.output)
        workers, chains = {}, set()
        for stack, weight in run.folded("--by", "coroutine").stacks:
            name = re.fullmatch(r"\[coroutine \d+ (w\d)\]", stack[0])
            if name is None:
                self.assertNotIn("burn", stack)
                continue
            workers[name[1]] = workers.get(name[1], 0) + weight
            if stack[-1] == "burn":
                chains.add((name[1], *stack[1:-1]))
            self.assertNotIn("BaseEventLoop._run_once", stack)  # the caller of the steps is not the task's
        self.assertEqual(chains, {("w0", "w0", "work"), *((name, "named", "middle", "work") for name in ("w1", "w2", "w3"))})
        for name, ns in truth.items():
            share, true = workers[name] / sum(workers.values()), ns / sum(truth.values())
            self.near(f"share of {name}", share, true, 0.01, samples=run.samples())


class SharesOfPythonTasks(Shares):
    PROGRAM = ("python_tasks.py", "task_shares.py")


class Waits(measured.Case):
    PROGRAM = ("task_waits.py",)

    @classmethod
    def setUpClass(cls):
        cls.run_ = support.Run(*cls.PROGRAM, options=["--clock", "wall"])
        cls.truth = numbers(cls.run_.output)
        cls.folded = cls.run_.folded("--clock", "wall", "--by", "coroutine")

    def test_waiting_is_charged_to_the_await_where_it_happens(self):
        times = self.folded.cumulative()
        for name in ("short_waits", "long_waits", "produces", "event_wait"):
            seconds = self.truth[name]
            self.near(name, times[name], seconds, 0.1)
        places = {tuple(stack[1:-1]) for stack, weight in self.folded.stacks if stack[-1] == "[parked]" and weight > 0.1}
        self.assertEqual(places, {("main",), ("run", "short_waits", "sleep"), ("run", "long_waits", "sleep"),
                                  ("generated", "produces", "long_waits", "sleep"), ("waiter", "event_wait", "Event.wait")})

    def test_ready_time_and_who_took_it(self):
        ready = sum(weight for stack, weight in self.folded.stacks if "victim" in stack and stack[-1] == "[ready]")
        self.near("ready", ready, self.truth["ready"], 0.1, slack=0.005)
        waited_for = support.Folded(support.command("export", self.run_.capture, "--format", "folded", "--by", "victim-time"))
        self.at_least("blocks", waited_for.cumulative()["blocks"], 0.8 * self.truth["ready"])


class WaitsOfPythonTasks(Waits):
    PROGRAM = ("python_tasks.py", "task_waits.py")


class Requests(measured.Case):
    COUNT = 12
    PROGRAM = ("task_requests.py",)

    def check(self, mode):
        with tempfile.TemporaryDirectory() as directory:
            for line in support.python(*self.PROGRAM, self.COUNT, directory, mode).splitlines():
                number, truth, total = line.split()
                self.check_request(directory, number, float(truth), float(total), mode)

    def check_request(self, directory, number, truth, total, mode):
        stats = pstats.Stats(os.path.join(directory, f"{number}.prof"))
        files = {key[0] for key in stats.stats}
        self.assertLessEqual({file for file in files if file.startswith("request_")}, {f"request_{number}"})
        names = {key[2]: value for key, value in stats.stats.items()}
        self.assertNotIn("BaseEventLoop._run_once", names)
        if mode == "exact":
            self.assertEqual(names[f"own_{number}"][:2], (20, 20))
            return  # its times include what the thread was kept from running
        # Its own work is known; the cost of spawning, sleeping and starting to profile is not: 3 % and 3 ms.
        self.at_least(f"total of {number}", total, 0.97 * truth, 0.003)
        self.at_most(f"total of {number}", total, 1.03 * truth, 0.003)
        own = names[f"own_{number}"][3]
        self.near(f"own_{number}", own, truth, 0.05)
        with open(os.path.join(directory, f"{number}.folded")) as file:
            pairs = support.Folded(file.read()).pairs()
        self.assertIn((f"child_{number}", f"own_{number}"), pairs)
        self.assertIn((f"outer_{number}", f"inner_{number}"), pairs)

    def test_overlapping_requests_sampled(self):
        support.require_package()
        self.check("sample")

    def test_overlapping_requests_exact(self):
        support.require_package()
        self.check("exact")


class RequestsOfPythonTasks(Requests):
    PROGRAM = ("python_tasks.py", "task_requests.py")


class Programs(measured.Case):
    def test_greenlets_within_tasks(self):
        support.require("greenlet")
        times = {}
        for stack, weight in support.Run("task_greenlets.py", hz=2000).folded("--by", "coroutine").stacks:
            if stack[-1] == "burn":
                times[stack[0], tuple(stack[1:-1])] = times.get((stack[0], tuple(stack[1:-1])), 0) + weight
        mine = {key: seconds for key, seconds in times.items() if seconds > 0.001}
        self.assertEqual(sorted(stack for _, stack in mine), [("run", "in_task")] * 3 + [("sync", "in_green")] * 3)
        self.assertEqual(len({coroutine for coroutine, _ in mine}), 6)
        for key, seconds in mine.items():
            self.near(f"{key}", seconds, 0.05, 0.1)

    def test_nothing_changes_for_the_program(self):
        run = support.Run("task_life.py", hz=10000, options=["--clock", "wall"])
        self.assertEqual(run.output, support.python("task_life.py"))
        report = run.report("--by", "coroutine", "-n", "1000000")
        for name in ("long sleep", "all done", "Named", "Initialized", "fails", "in_thread.<locals>.add"):
            self.assertRegex(report, rf"- +{re.escape(name)}\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
