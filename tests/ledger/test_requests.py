# SPDX-License-Identifier: MIT
"""Requests of known latency: each moment of them goes to the coroutine and the state that it was spent in."""
import collections
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import check

STATES = ("ready", "parked", "waiting")
SLACK = 0.0005  # the program and greenprof read the clock a moment apart


class Threads(check.Case):
    """Requests on ordinary threads: each has, on its critical path, the CPU time that it used, and no more."""
    STATES = ("blocked", "preempted", "waiting", "not known", "not recorded", "ready")

    def states(self, run, trace):
        sums = collections.Counter()
        for stack, weight in run.folded("--by", "critical-path", "--trace", trace).stacks:
            leaf = "[blocked]" if stack[-1] == "[lock]" else stack[-1]  # a sleep, whose cause is known
            sums[next((state for state in self.STATES if leaf == f"[{state}]"), "running")] += weight
        return sums

    def check_requests(self, *options):
        run = self.profile(["threaded"], options=options)
        self.assertEqual(len(run.truth.values["REQUEST"]), 5)
        for name, trace, *seconds in run.truth.values["REQUEST"]:
            wall, cpu, asleep = map(float, seconds)
            states = self.states(run, trace)
            self.near(f"{name} latency", sum(states.values()), wall, 0.001, SLACK)
            self.near(f"{name} running", states["running"], cpu, 0.02, 0.01 * wall + SLACK)
            # A thread that slept and was preempted between two looks at its clock counts as asleep all the while.
            self.at_least(f"{name} blocked", states["blocked"], 0.97 * asleep, SLACK)
            self.at_most(f"{name} blocked", states["blocked"], wall - cpu + 0.01 * wall, SLACK)
            self.assertEqual(sum(states[state] for state in self.STATES[2:]), 0, states)

    def test_by_the_wall_clock(self):
        self.check_requests("--clock", "wall")

    def test_by_the_cpu_clock(self):
        self.check_requests()


class Requests(check.Case):
    def paths(self, run, trace):
        """{(coroutine, state): seconds}, and which functions ran: {(coroutine, name)}."""
        sums, functions = collections.Counter(), set()
        for stack, weight in run.folded("--by", "critical-path", "--trace", trace).stacks:
            frames = list(stack)
            coroutine = frames[0].rstrip("]").split()[-1]
            state = next((state for state in STATES if f"[{state}]" in frames), "running")
            sums[coroutine, state] += weight
            functions |= {(coroutine, frame) for frame in frames if frame.startswith("compute_")}
        return sums, functions

    def test_critical_path(self):
        run = self.profile(["served", 4])
        latencies, paths = {}, collections.defaultdict(dict)
        for trace, seconds in run.truth.values["REQUEST"]:
            latencies[trace] = float(seconds)
        for trace, coroutine, state, seconds in run.truth.values["PATH"]:
            paths[trace][coroutine, state] = float(seconds)
        self.assertEqual(len(latencies), 4)
        seen, agreeing = set(), 0
        for trace, latency in latencies.items():
            sums, functions = self.paths(run, trace)
            self.near(f"{trace[-2:]} latency", sum(sums.values()), latency, 0.001, SLACK)
            wrong = {part: (sums[part], seconds) for part, seconds in paths[trace].items()
                     if abs(sums[part] - seconds) > 0.01 * seconds + SLACK}
            print(trace[-2:], "differs in", wrong)
            agreeing += not wrong
            seen |= functions
        # The program may lose the CPU between a look at the clock and what it books.
        self.at_least("requests that agree in each part", agreeing, 2)
        self.assertLessEqual(seen, {("child", "compute_query"), ("child", "compute_answer"), ("handler", "compute_parse"),
                                    ("handler", "compute_render")})
        self.assertGreater(len(seen), 0)

    def test_nothing_beyond_the_lifetime(self):
        """No more wall time than coroutines had: two, while the request lived; not what they did before, after or idle."""
        run = self.profile(["served", 4])
        for trace, latency in run.truth.values["REQUEST"]:
            done = check.greenprof("export", run.output, "-f", "json", "--clock", "wall", "--trace", trace)
            self.assertEqual(done.returncode, 0, done.stderr)
            wall = json.loads(done.stdout)["total_ns"] * 1e-9
            self.at_most(f"wall of {trace[-2:]}", wall, 2 * float(latency), SLACK)
            self.at_least(f"wall of {trace[-2:]}", wall, 1.5 * float(latency))
        done = check.greenprof("report", run.output, "--by", "trace", "--clock", "wall")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_table(self):
        run = self.profile(["served", 3])
        done = check.greenprof("report", run.output, "--by", "request")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {line.split()[10]: line.split() for line in done.stdout.decode().splitlines()
                if " ok " in line and line.endswith("rest_dispatch GET /known")}
        self.assertEqual(set(rows), {trace for trace, _ in run.truth.values["REQUEST"]})
        for trace, latency in run.truth.values["REQUEST"]:
            self.near(f"latency of {trace[-2:]}", float(rows[trace][0]) / 1000, float(latency), 0.001, SLACK)
            self.assertEqual(rows[trace][7], "2")

    def test_what_outlives_it_is_not_billed(self):
        """A child that waits on: of a process that was killed, and once that is recovered."""
        run = self.profile(["outlived"], status=-9, healthy=False)
        whole = f"{run.output}.whole"
        self.assertEqual(check.greenprof("recover", run.output, "-o", whole).returncode, 0)
        (trace, latency), = run.truth.values["REQUEST"]
        for path in (run.output, whole):
            text = check.greenprof("report", path, "--by", "request").stdout.decode()
            row, = (line.split() for line in text.splitlines() if trace in line)
            self.assertEqual(row[7], "2")  # coroutines: itself and the child, for no longer than it lived
            self.at_most("what they have of it, ms", sum(map(float, row[1:7])), 2000 * float(latency), 1)
            self.at_least("what they have of it, ms", sum(map(float, row[1:7])), 1500 * float(latency))


if __name__ == "__main__":
    check.main()
