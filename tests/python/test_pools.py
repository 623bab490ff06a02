# SPDX-License-Identifier: MIT
"""Full pools of threads: how long each request's call was in the queue, in every place that tells, and who was at work meanwhile."""
import atexit
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import support
import measured

support.require_package()

SHARE, SLACK = 0.03, 0.001  # of what the program measured, and seconds
REQUESTS, SIZE = 8, 2


class Pool(measured.Case):
    """Of a program that says what it measured."""
    how, size, requests_with_calls = "futures", SIZE, REQUESTS

    @classmethod
    def run_program(cls):
        return support.Run("pools.py", cls.size, cls.how, options=("--clock", "wall"))

    @classmethod
    def setUpClass(cls):
        cls.take(cls.run_program())

    @classmethod
    def take(cls, run):
        cls.run_ = run
        lines = [line.split() for line in cls.run_.output.splitlines()]
        cls.truth = {f"GET /{i}": tuple(map(float, numbers)) for what, i, *numbers in lines if what == "POOL"}
        cls.queue_most = next(tuple(map(int, numbers)) for what, *numbers in lines if what == "MOST")
        assert len(cls.truth) == REQUESTS, cls.run_.output

    def check_queued(self, what, seconds, least, most, slack=SLACK):
        """What lies between the two, which the program measured on both sides of the moment of handing over."""
        self.at_least(what, seconds, (1 - SHARE) * least, slack)
        self.at_most(what, seconds, (1 + SHARE) * most, slack)

    def is_between(self, seconds, least, most):
        slack = SLACK * self.noise.stretch()
        return (1 - SHARE) * least - slack <= seconds <= (1 + SHARE) * most + slack

    def requests(self):
        """{name: {column: milliseconds}} of the table by request."""
        lines = self.run_.report("--by", "request").splitlines()
        columns = next(line.split() for line in lines if re.match(" +latency .* queued ", line))
        rows = [line.split() for line in lines if re.match(r" +\d.* ok .* GET /\d$", line)]
        return {" ".join(row[-2:]): dict(zip(columns, map(float, row[:columns.index("coroutines")]))) for row in rows}

    def test_ledger(self):
        requests = self.requests()
        self.assertEqual(set(requests), set(self.truth))
        for name, (_, _, least, most, *_) in self.truth.items():
            self.check_queued(f"queued of {name}", requests[name]["queued"] / 1e3, least, most)
            self.assertEqual(requests[name]["ready"], 0 if self.how == "futures" else requests[name]["ready"])

    def test_path(self):
        """Of one request in eight the path may stay with the thread: a known fault, where its wait ends in two steps."""
        stacks = self.run_.folded("--by", "critical-path").stacks
        outside = {}
        for name, (shortest, longest, least, most, least_at_work, worked) in self.truth.items():
            of_request = [(stack, weight) for stack, weight in stacks if name in stack[0]]
            in_queue = sum(weight for stack, weight in of_request if "[queued]" in stack)
            at_work = sum(weight for stack, weight in of_request if "[coroutine query]" in stack and "[queued]" not in stack)
            self.at_least(f"path of {name}", sum(weight for _, weight in of_request), 0.98 * shortest, SLACK)
            self.at_most(f"path of {name}", sum(weight for _, weight in of_request), 1.02 * longest, SLACK)
            if not self.is_between(in_queue, least, most) or not self.is_between(at_work, least_at_work, worked):
                outside[name] = (in_queue, least, most, at_work, least_at_work, worked)
        self.at_most(f"requests whose path is not that of their jobs: {outside}", len(outside), 1)

    def test_graph(self):
        least, most = (sum(truth[i] for truth in self.truth.values()) for i in (2, 3))
        stacks = [(stack, weight) for stack, weight in self.run_.folded("--clock", "wall").stacks if stack[-1] == "[queued]"]
        self.assertEqual({tuple(stack) for stack, _ in stacks}, {("query", f"[pool db of {self.size}]", "[queued]")})
        self.check_queued("queued in the graph", sum(weight for _, weight in stacks), least, most, SLACK * REQUESTS)


    def test_pools(self):
        """The pool's own row, and the function that held its workers."""
        text = self.run_.report("--by", "pool")
        row = re.search(r"^ +(\d+) +([\d.]+) +[\d.]+ +(\d+) +(\d+) +([\d.]+) +(\d+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +(\d+) db$", text, re.M)
        size, use, most, calls, length, longest, p50, p99, last, waited, requests = map(float, row.groups())
        least, most_queued = (sorted(truth[i] for truth in self.truth.values()) for i in (2, 3))
        self.assertEqual((size, most, calls, requests), (self.size, self.size, REQUESTS, self.requests_with_calls))
        self.assertIn(longest, range(self.queue_most[0], self.queue_most[1] + 1))
        self.check_queued("median", p50 / 1e3, least[REQUESTS // 2 - 1], most_queued[REQUESTS // 2 - 1])
        self.check_queued("p99", p99 / 1e3, least[-1], most_queued[-1])
        self.check_queued("all waits", waited / 1e3, sum(least), sum(most_queued), SLACK * REQUESTS)
        worked = sum(truth[-1] for truth in self.truth.values())
        held = re.search(r"^ +([\d.]+) +100\.0 +8 +[\d.]+  db: query \(.*/pools\.py:(\d+)\)$", text, re.M)
        self.near("held", float(held[1]) / 1e3, worked, SHARE, SLACK * REQUESTS)
        pool, = json.loads(self.run_.report("--by", "pool", "--json"))["rows"]
        self.assertEqual((pool["name"], pool["size"], pool["calls"], pool["queue_most"], pool["requests"]), ("db", size, calls, longest, requests))
        for key, shown in ("waited_ns", waited), ("p50_ns", p50), ("p99_ns", p99), ("max_ns", last):
            self.near(key, pool[key] / 1e6, shown, 0, 0.001)
        self.assertEqual([(holder["function"], holder["line"]) for holder in pool["holders"]], [("query", int(held[2]))])

    def test_explain(self):
        findings = json.loads(support.command("explain", self.run_.capture, "--json"))["findings"]
        pools = [finding for finding in findings if finding["kind"] == "full-pool"]
        self.assertEqual([(finding["function"], finding["rank"]) for finding in pools], [("query", "finding")])
        self.assertEqual(pools[0]["command"].split()[-2:], ["--by", "pool"])
        self.assertRegex(pools[0]["hurt"], f"^{REQUESTS} requests")
        self.assertNotIn("blocking-call", {finding["kind"] for finding in findings})  # a worker is no loop


class Loop(Pool):
    how = "to_thread"


class Plain(Pool):
    """A program without a request, and without greenprof's package."""
    how, requests_with_calls = "plain", 0
    test_ledger = test_path = test_explain = None


class Later(Plain):
    """Recorded from `greenprof start` on, when its pool is there."""
    how = "later"

    @classmethod
    def run_program(cls):
        run, directory = object.__new__(support.Run), tempfile.mkdtemp(prefix="greenprof-python-")
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        run.capture = os.path.join(directory, "capture.greenprof")
        program = [support.PYTHON, "-B", os.path.join(support.PROGRAMS, "pools.py"), str(cls.size), cls.how]
        with subprocess.Popen([support.GREENPROF, "run", "--quiet", "--stopped", "-o", run.capture, "--", *program],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            support.command("start", process.stdout.readline().strip())
            run.output, _ = process.communicate("\n", timeout=support.LIMIT_SECONDS)
        return run


class Roomy(unittest.TestCase):
    def test_a_pool_with_room_is_no_finding(self):
        run = support.Run("pools.py", REQUESTS, "futures")
        findings = json.loads(support.command("explain", run.capture, "--json"))["findings"]
        self.assertNotIn("full-pool", {finding["kind"] for finding in findings})

    def test_a_part_of_the_time_has_no_pools(self):
        run = support.Run("pools.py", SIZE, "futures")
        done = support.helpers.run([support.GREENPROF, "report", run.capture, "--by", "pool", "--from", "0.1"], status=2)
        self.assertIn("--by pool: --from 0.1 chooses no pools", done.stderr)


if __name__ == "__main__":
    support.helpers.main(at_once=2)
