#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Exact mode: every count in every file equals what the program kept itself, read by Python's pstats."""
import cProfile
import json
import os
import pstats
import random
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import measured  # noqa: E402
import check  # noqa: E402

PROGRAMS = os.environ["PROGRAMS"]
GREENPROF = os.environ["GREENPROF"]


class Case(measured.Case):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="greenprof-exact-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def run_program(self, *command):
        done = subprocess.run(command, cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=120, check=False)
        measured.check_status(done)
        return done.stdout

    def path(self, name):
        return os.path.join(self.directory, name)

    def program(self, name):
        path = os.path.join(PROGRAMS, name)
        if not os.path.exists(path):
            self.skipTest(f"{name} was not built")
        return path

    def check_truth(self, at_least):
        calls = 0
        for profile in check.truth(self.path("truth.json")):
            if not profile["edges"]:
                continue
            want = check.expected(profile["edges"])
            self.assertEqual(check.counts(check.load(self.path(profile["file"]))), want, profile["file"])
            calls += sum(total for _, total, _ in want.values())
        self.assertGreater(calls, at_least)


class Counts(Case):
    """Random call trees (calls.c) as built in different ways."""

    BUILDS = ("calls_c", "calls_c_O0", "calls_c_O3", "calls_c_fp", "calls_c_clang", "calls_cxx", "calls_cxx_O0",
              "calls_by_hand", "calls_by_hand_O0", "calls_cxx_by_hand")

    maxDiff = None

    def each_build(self, at_least, *arguments):
        for build in self.BUILDS:
            with self.subTest(build=build, arguments=arguments):
                self.run_program(self.program(build), *arguments)
                self.check_truth(at_least)

    def test_profiles_that_overlap(self):
        for seed in (1, 5):
            self.each_build(300, "mix", str(seed))

    def test_deep_recursion(self):
        self.each_build(20000, "deep", "1")

    def test_some_coroutines_on_threads(self):
        self.each_build(10000, "crowd", "100", "3")

    def test_thousand_coroutines(self):
        self.run_program(self.program("calls_c"), "crowd", "1000", "4")
        self.check_truth(100000)

    def test_like_cprofile(self):
        """A trace replayed by Python functions under cProfile has the same counts."""
        self.run_program(self.program("calls_c"), "crowd", "1", "9")
        mine = check.counts(check.load(self.path("own0.prof")))
        self.assertEqual(sum(calls for _, calls, _ in mine.values()), sum(
            row[2] for row in check.truth(self.path("truth.json"))[0]["edges"]))
        self.check_model_against_cprofile()

    def check_model_against_cprofile(self):
        rng = random.Random(3)
        stack, edges, budget = [], {}, [2000]

        def note(function):
            caller = stack[-1] if stack else check.NO_CALLER
            above = [(stack[i - 1] if i else check.NO_CALLER, f) for i, f in enumerate(stack)]
            row = edges.setdefault((caller, function), [0, 0, 0])
            row[0] += 1
            row[1] += function in stack
            row[2] += (caller, function) in above

        functions = {}
        source = """
def f{0}():
    note({0})
    stack.append({0})
    budget[0] -= 1
    while budget[0] > 0 and len(stack) < 12 and rng.random() < 0.6:
        functions[rng.randrange(6)]()
    stack.pop()
functions[{0}] = f{0}
"""
        for number in range(6):
            exec(source.format(number), locals())  # pylint: disable=exec-used
        profile = cProfile.Profile(builtins=False)
        while budget[0] > 0:
            profile.runcall(functions[0])
        want = check.expected([caller, callee, *row] for (caller, callee), row in edges.items())
        got = {}
        for name, value in check.counts(pstats.Stats(profile).stats).items():
            if name.startswith("f"):
                got[name] = value
        self.assertEqual(got, want)


class Signals(Case):
    def check_signals(self, *arguments):
        printed = {"": {}, "child": {}}
        for line in self.run_program(self.program("exact_signals"), *arguments).splitlines():
            *process, name, calls = line.split()
            printed[process[0] if process else ""][name] = int(calls)
        for process, file in (("", "parent.prof"), ("child", "child.prof")):
            counts = check.counts(check.load(self.path(file)))
            self.assertEqual({name: calls for name, (_, calls, _) in counts.items()}, printed[process])
            self.at_least("runs of the handler", printed[process]["handler"], 21)
            self.assertEqual(counts["work"][:2], (printed[process]["work"],) * 2)
            self.assertEqual(counts["leaf"][2]["work"][0], 2 * printed[process]["work"])
            self.assertEqual(counts["handler_leaf"][2], {"handler": (printed[process]["handler"],) * 2})

    def test_on_the_stack(self):
        self.check_signals()

    def test_on_an_alternate_stack(self):
        self.check_signals("alternate")


class Times(Case):
    def test_cpu_and_waiting(self):
        lines = self.run_program(self.program("exact_times")).splitlines()
        with open(self.path("times.json"), encoding="utf-8") as file:
            report = json.load(file)
        found = {}
        for call in report["calls"]:
            entry = found.setdefault(report["frames"][call["callee"]]["function"], [0, 0])
            entry[0] += call["cpu_ns"]
            entry[1] += call["wait_ns"]
        for line in lines:
            name, cpu, wait = line.split()
            # 2 ms: clocks are read a moment before and after; a busy machine preempts in between.
            self.near(f"{name} cpu", found[name][0], int(cpu), 0.03, 2e6)
            self.near(f"{name} wait", found[name][1], int(wait), 0.03, 5e6)
        own = sum(call["self_cpu_ns"] for call in report["calls"])
        self.near("total", own, report["total_ns"], 0.02, 1e6)


class Capture(Case):
    def test_run_exact(self):
        self.run_program(GREENPROF, "run", "--quiet", "--exact", "-o", "calls.greenprof", "--", self.program("calls_c"), "run", "7")
        self.run_program(GREENPROF, "export", "calls.greenprof", "--format", "pstats", "-o", "run.prof")
        self.check_truth(5000)
        table = self.run_program(GREENPROF, "report", "calls.greenprof", "-n", "0")
        calls = sum(row[2] for row in check.truth(self.path("truth.json"))[0]["edges"])
        self.assertIn(f"{calls} function calls (", table)

    def test_without_a_hook(self):
        self.run_program(GREENPROF, "run", "--quiet", "--exact", "-o", "true.greenprof", "--", "/bin/true")
        self.assertIn("samples in", self.run_program(GREENPROF, "report", "true.greenprof"))

    def test_callgrind(self):
        self.run_program(GREENPROF, "run", "--quiet", "--exact", "-o", "calls.greenprof", "--", self.program("calls_c"), "run", "8")
        self.run_program(GREENPROF, "export", "calls.greenprof", "--format", "callgrind", "-o", "calls.callgrind")
        calls, name = {}, {}
        with open(self.path("calls.callgrind"), encoding="utf-8") as file:
            for line in file:
                key, _, value = line.strip().partition("=")
                if key in ("fn", "cfn"):
                    number, _, text = value.partition(" ")
                    name.setdefault(number, text)
                    callee = name[number]
                elif key == "calls":
                    calls[callee] = calls.get(callee, 0) + int(value.split()[0])
        want = check.expected(check.truth(self.path("truth.json"))[0]["edges"])
        self.assertEqual({function: calls.get(function) for function in want},
                         {function: total for function, (_, total, _) in want.items()})


if __name__ == "__main__":
    unittest.main()
