# SPDX-License-Identifier: MIT
"""Requests, critical paths, delays and cores of a fleet, asked of a store, beside what the captures say."""
import collections
import json
import re
import unittest

from captures import MAKE_CAPTURE, NOW_S, Capture, make_capture
from shipping import ShipTest, Store, greenprof

MS = 1_000_000


def run(*arguments, status=0):
    return greenprof(*arguments, status=status)[1 if status else 0]


class Questions(Store, ShipTest):
    def setUp(self):
        super().setUp()
        self.files = [Capture(self.path(f"{seed}.greenprof"), seed, metas=(("OTEL_SERVICE_NAME", f"service-{seed}"),)).finish()
                      for seed in (1, 2)]
        self.make_hogs()
        self.ship("--to", self.store.url())

    def make_hogs(self):
        """A long slice with two stacks, and two coroutines that waited for it; another that one waited for twice."""
        lines = [f"header frequency=1000 pid=3 realtime={NOW_S}000000000", "meta exe /usr/bin/service", "meta OTEL_SERVICE_NAME hogs",
                 "meta hostname host9", "function 1 1 serve a.py", "function 2 2 parse a.py", "function 3 3 pack a.py", "thread 1 7 1 0 main",
                 "coro 1 0 - 0 0 1 1 main", "coro 2 1 - 0 0 2 0 greedy", "coro 3 1 - 0 0 2 0 patient", "coro 4 1 - 0 0 2 0 meek",
                 "trace 1 000000000000000000000000000000aa", "stack 1 0 function:2:2 function:1:1", "stack 2 0 function:3:3 function:1:1",
                 "chunk", f"sample {50 * MS} {40 * MS} 2 1 1 1 0", "chunk",
                 f"hog 1 2 0 1 {10 * MS} {40 * MS} 1:{30 * MS} 2:{10 * MS}", f"hog 2 2 0 1 {70 * MS} {20 * MS} 1:{20 * MS}", "chunk",
                 f"delay 1 3 1 {20 * MS + 1}", f"delay 1 4 0 {8 * MS}", f"delay 2 3 1 {5 * MS}", f"delay 2 3 0 {4 * MS}", f"end {100 * MS} 0"]
        make_capture(MAKE_CAPTURE, self.path("hogs.greenprof"), "\n".join(lines) + "\n")

    def folded(self, operand, *arguments):
        text = run("export", operand, "--format", "folded", *arguments)
        return collections.Counter({path: int(weight) for path, weight in (line.rsplit(" ", 1) for line in text.splitlines())})

    def test_victim_time(self):
        """Delays are those of the capture, by stack and by victim; those of another tenant are not seen."""
        capture, url = self.path("hogs.greenprof"), self.store.url("?service=hogs")
        for arguments in ((), ("--name", "patient"), ("--name", "meek"), ("--trace", "000000000000000000000000000000aa")):
            of_store = self.folded(url, "--by", "victim-time", *arguments)
            self.assertEqual(of_store, self.folded(capture, "--by", "victim-time", *arguments), arguments)
        self.assertEqual(sum(of_store.values()), 25000)
        self.assertEqual(self.store.number("SELECT sum(weight_ns) FROM greenprof_samples WHERE measure = 2"), 37 * MS + 1)
        text = run("report", url, "--by", "victim-time")
        self.assertIn("delayed    4 times", text)
        self.assertRegex(text, r"25\.000 +2 greedy of hogs kept patient\b|greedy of hogs kept patient")
        self.assertIn("no delays", run("report", self.store.url("?tenant=other"), "--by", "victim-time", status=1))
        self.assertEqual(sum(self.folded(self.store.url("?service=service-1")).values()) > 0, True)  # no delay is among its samples

    def test_critical_path(self):
        """Paths add up to the latencies, by endpoint; what a ready coroutine was behind is in captures alone."""
        def bare(rows):
            kept = collections.Counter()
            for path, weight in rows.items():
                kept[re.sub(r";\[behind [^;]*\]$", "", path)] += weight
            return kept

        for seed in (1, 2):
            url = self.store.url(f"?service=service-{seed}")
            latency = sum(ns for _, ns in self.files[seed - 1].requests.values())
            found = bare(self.folded(url, "--by", "critical-path"))
            self.assertAlmostEqual(sum(found.values()), latency / 1000, delta=len(found))
            # Requests that only traces say something about have no row of their own.
            truth = bare(self.folded(self.path(f"{seed}.greenprof"), "--by", "critical-path"))
            self.assertLessEqual({path.partition(";")[0] for path in found}, {path.partition(";")[0] for path in truth})
            self.assertEqual(json.loads(run("export", url, "--by", "critical-path", "--format", "json"))["total_ns"], latency)
        text = run("report", self.store.url(), "--by", "critical-path")
        self.assertIn("critical paths", text)
        self.assertIn("of [rest_dispatch GET /servers]", text)
        self.assertIn("no critical paths", run("report", self.store.url("?tenant=other"), "--by", "critical-path", status=1))

    def test_requests(self):
        """The slowest of all services first, each with its trace and its path; percentiles of endpoints."""
        text = run("report", self.store.url(), "--by", "request", "-n", "0")
        rows = re.findall(r"^ *([\d.]+)(?: +[\d.]+){6} +(.*?) +(\d{4}-\S+Z) (?:ok|failed) +([0-9a-f]{32}) (\S+) (\S+) (\S+) (.*)$", text, re.M)
        truth = sorted(((ns, trace, f"service-{capture.pid - 1000}") for capture in self.files for trace, ns in capture.requests.values()),
                       reverse=True)
        self.assertEqual(sorted(((row[0], row[3], row[4]) for row in rows), reverse=True),
                         sorted(((f"{ns / 1e6:.3f}", trace, service) for ns, trace, service in truth), reverse=True))
        self.assertEqual([float(row[0]) for row in rows], sorted((float(row[0]) for row in rows), reverse=True))
        self.assertTrue(all("%" in row[1] for row in rows), rows)
        self.assertEqual({row[7] for row in rows}, {"rest_dispatch GET /servers"})
        said = json.loads(run("report", self.store.url(), "--by", "request", "-n", "0", "--json"))
        shown = sorted(((row["latency_ns"], row["trace"], row["service"]) for row in said["rows"]), reverse=True)
        self.assertEqual((said["version"], said["by"], shown), (1, "request", truth))
        self.assertTrue(all(sum(row["path"].values()) > 0 for row in said["rows"]), said["rows"])
        self.assertEqual(sum(one["requests"] for one in said["endpoints"]), len(truth))
        few = run("report", self.store.url(), "--by", "request", "-n", "3", "--service", "service-2")
        self.assertIn("The first 3 requests", few)
        self.assertNotIn("service-1", few)
        self.assertRegex(few, rf"(?m)^ +{len(self.files[1].requests)} +0 .*service-2 rest_dispatch GET /servers$")
        self.assertIn("no requests", run("report", self.store.url("?tenant=other"), "--by", "request", status=1))

    def test_cores(self):
        """CPU time by the seconds of the chosen time: of the fleet, and of each function and service."""
        url = self.store.url(f"?from={NOW_S}&to={NOW_S + 100}")
        cpu_ns = sum(ns for capture in self.files for (_, _, state, _), ns in capture.samples.items() if state == 0) + 40 * MS
        text = run("report", url, "--clock", "cpu")
        cores, hosts = re.search(r"cores +([\d.]+) .* of (\d+) hosts", text).groups()
        self.assertAlmostEqual(float(cores), cpu_ns / 1e9 / 100, delta=0.0006)
        self.assertEqual(hosts, "3")
        by_service = {name: cores for cores, name in re.findall(r"^ *([\d.]+) +[-\d].* (service-\d|hogs)$",
                                                                run("report", url, "--clock", "cpu", "--by", "service"), re.M)}
        self.assertEqual(set(by_service), {"service-1", "service-2", "hogs"})
        for capture in self.files:
            own = sum(ns for (_, _, state, _), ns in capture.samples.items() if state == 0)
            self.assertAlmostEqual(float(by_service[f"service-{capture.pid - 1000}"]), own / 1e9 / 100, delta=0.0006)


if __name__ == "__main__":
    unittest.main()
