# SPDX-License-Identifier: MIT
"""Requests and their critical paths: captures of which all is known.

usage: test_requests.py GREENPROF MAKE_CAPTURE RECORDER.so WORK-DIRECTORY
"""
import json, re, unittest

from schedule import UNIT, Schedule
from support import Command, main

HEAD = """
header frequency=1000
meta exe /opt/app/server
module 1 /opt/app/server 0102 0x1000 0x9000 0x0
thread 1 10 1 0 main
thread 2 11 9 0 pool
coro 1 0 - 0x1000 0x1000 1 1 -
coro 2 1 1:40 0x3000 0x1000 2 0 handler
coro 3 2 1:50 0x5000 0x1000 2 0 child
coro 4 1 1:60 0x7000 0x1000 2 0 hog
coro 5 1 1:70 0x8000 0x1000 2 0 worker
trace 1 4bf92f3577b34da6a3ce929d0e0e4736
trace 2 00000000000000000000000000000002
stack 1 0 1:10 1:20
stack 2 0 1:11 1:20
stack 3 0 1:30 1:31
stack 4 0 1:12 1:20
"""
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"

# A handler runs for 2 ms, waits for its child, and computes for 5 ms more. The child is ready behind a hog for 4 ms
# and computes for 10; when it is done, the hog keeps the thread once more.
CHILD = HEAD + """
sample 1000000 1000000 2 1 1 1
sample 2000000 1000000 2 1 2 1
sample 20000000 10000000 2 1 4 1 2
activity 2 0 2000000 20000000 2000000 16000000 3 1 1 0
activity 3 1500000 1500000 6000000 0 1500000 2 1 1 0
activity 3 6000000 16000000 30000000 10000000 0 0 1 1 1
activity 4 2000000 6000000 16000000 4000000 6000000 1 0 1 0
activity 4 16000000 20000000 20000000 4000000 0 0 0 1 1
sample 7000000 1000000 3 1 3 1
sample 15000000 9000000 3 1 3 1
sample 16000000 1000000 3 1 3 1
activity 2 20000000 25000000 25000000 5000000 0 0 1 1 0
activity 2 25000000 26000000 26000000 1000000 0 0 0 1 1
sample 24000000 4000000 2 1 1 1
ledger 2 1 7000000 2 25000000 7000000 0 4000000 14000000 0 5000000
ledger 3 1 10000000 2 30000000 10000000 0 4500000 0 14000000 10000000
span 77 0 2 2 0 25000000 1 3 0 GET /x
end 30000000 0
"""


def on_the_cpu(script):
    """The activities with their times: all of the slices on the CPU."""
    return re.sub(r"(?m)^activity .*$", r"\g<0> 0 0", script)


class Requests(Command):
    def make(self, name, script):
        return super().make(name, on_the_cpu(script))

    def folded(self, capture, *arguments):
        """{stack without the coroutine's number: ns}"""
        lines = self.succeed("export", capture, "-f", "folded", "--by", "critical-path", *arguments).splitlines()
        return {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) * 1000 for line in lines}

    def segments(self, capture, trace):
        """[(from, to, coroutine, state)] as the report shows them, microseconds."""
        text = self.succeed("report", capture, "--by", "critical-path", "--trace", trace, "-n", "0")
        found = []
        for line in text[text.index("The path in the order"):].splitlines():
            match = re.match(r" *([0-9.]+) +([0-9.]+) +[0-9.]+ (\w+) +\[coroutine (\d+) ", line)
            if match:
                at, length = (round(float(match[number]) * 1000) for number in (1, 2))
                found.append((at, at + length, int(match[4]), match[3]))
        return found

    def table(self, capture, *arguments):
        """Rows of the table by request."""
        lines = self.succeed("report", capture, "--by", "request", *arguments).splitlines()
        start = next(number for number, line in enumerate(lines) if line.startswith("   latency "))
        return [line.split() for line in lines[start + 1:lines.index("", start)]]

    def test_child(self):
        capture = self.make("child.greenprof", CHILD)
        self.assertEqual(self.folded(capture), {
            "[coroutine 2 handler];server+0x20;server+0x10": 6000000,
            "[coroutine 2 handler];server+0x20;server+0x11": 1000000,
            "[coroutine 3 child];server+0x50;[not sampled];[ready];[behind coroutine 4 hog]": 4000000,
            "[coroutine 3 child];server+0x31;server+0x30": 10000000,
            "[coroutine 2 handler];server+0x20;server+0x12;[ready];[behind coroutine 4 hog]": 4000000})
        self.assertEqual(self.segments(capture, TRACE), [
            (0, 1000, 2, "running"), (1000, 2000, 2, "running"), (2000, 6000, 3, "ready"), (6000, 16000, 3, "running"),
            (16000, 20000, 2, "ready"), (20000, 25000, 2, "running")])
        text = self.succeed("report", capture, "--by", "critical-path")
        self.assertIn("behind [coroutine 4 hog] for 4.000 ms", text)
        self.assertIn("latency    0.025 s, the critical path of 1 request\n", text)

    def test_table(self):
        capture = self.make("child.greenprof", CHILD)
        self.assertEqual(self.table(capture), [
            ["25.000", "17.000", "0.000", "0.000", "8.500", "14.000", "9.000", "2", "0.000", "ok", TRACE, "rest_dispatch",
             "GET", "/x"]])

    def test_what_is_after_the_end_is_in_no_trace(self):
        capture = self.make("child.greenprof", CHILD)
        report = json.loads(self.succeed("export", capture, "-f", "json", "--trace", TRACE, "--clock", "wall"))
        # Two coroutines of 25 ms: the child was born at 1.5 ms.
        self.assertEqual(report["total_ns"], 25000000 + 23500000 + 0)
        rows = [line.split() for line in self.succeed("report", capture, "--by", "trace", "--clock", "wall").splitlines()
                if TRACE in line or "no trace" in line]
        self.assertEqual(rows[0][9:12], ["0.025", "2", TRACE])
        self.assertEqual(rows[1][0], "0.005")
        self.assertEqual(rows[1][9], "-")

    def test_sampled_waits_end_with_the_request(self):
        capture = self.make("wait.greenprof", HEAD + """
activity 2 0 1000000 90000000 1000000 80000000 0 1 1 0
sample 90000000 79000000 2 1 4 1 2
sample 90000000 10000000 2 1 4 1 3
sample 95000000 1000000 2 1 1 1
sample 500000 1000000 2 1 1 1
ledger 2 1 2000000 2 96000000 2000000 0 10000000 79000000 0 5000000
activity 2 90000000 91000000 91000000 1000000 0 0 1 1 1
span 9 0 2 3 0 41000000 1 1 0
end 96000000 0
""")
        report = json.loads(self.succeed("export", capture, "-f", "json", "--trace", TRACE, "--clock", "wall"))
        self.assertEqual(report["total_ns"], 41000000)
        self.assertEqual(sum(row["weight_ns"] for row in report["rows"]), 41000000)
        report = json.loads(self.succeed("export", capture, "-f", "json", "--trace", TRACE))
        self.assertEqual((report["total_ns"], report["samples"]), (1000000, 1))

    def test_worker(self):
        """A job waits in a queue, and is done by a worker; what the worker did before is no part of it."""
        capture = self.make("worker.greenprof", HEAD + """
activity 2 0 1000000 9000000 1000000 8000000 5 1 1 0
sample 9000000 8000000 2 1 4 1 2
activity 2 9000000 10000000 10000000 1000000 0 0 1 1 1
activity 5 0 3000000 3000000 3000000 0 0 2 2 0
activity 5 3000000 5000000 7000000 2000000 6500000 1 1 2 0
activity 5 7000000 7800000 7800000 800000 0 0 1 2 0
activity 5 7800000 9500000 9500000 1700000 0 0 0 2 1
span 9 0 2 2 0 10000000 1 3 0 GET /
end 10000000 0
""")
        self.assertEqual(self.segments(capture, TRACE), [
            (0, 1000, 2, "running"), (1000, 3000, 2, "parked"), (3000, 5000, 5, "running"), (5000, 6500, 5, "parked"),
            (6500, 7000, 5, "ready"), (7000, 8000, 5, "running"), (8000, 9000, 2, "ready"), (9000, 10000, 2, "running")])
        self.assertEqual(self.folded(capture, "--trace", TRACE)["[coroutine 2 handler];server+0x20;server+0x12;[parked]"],
                         2000000)

    def test_before_it_was_read(self):
        """A request that arrived while its coroutine was at another one, and before there was that coroutine."""
        script = HEAD + """
activity 2 4000000 6000000 6000000 2000000 0 0 2 1 0
activity 2 6000000 6500000 7000000 500000 6800000 1 0 1 0
activity 2 7000000 8000000 8000000 1000000 0 0 0 1 0
activity 2 8000000 10000000 10000000 2000000 0 0 1 1 1
span 8 0 2 2 4000000 6000000 2 3 0 GET /
span 9 5 2 2 1000000 10000000 1 3 1 GET /
end 10000000 0
"""
        capture = self.make("before.greenprof", script)
        self.assertEqual(self.segments(capture, TRACE), [
            (0, 3000, 2, "unknown"), (3000, 5000, 2, "ready"), (5000, 5500, 2, "running"), (5500, 5800, 2, "parked"),
            (5800, 6000, 2, "ready"), (6000, 9000, 2, "running")])
        self.assertEqual(self.folded(capture, "--trace", TRACE)["[coroutine 2 handler];[at another request]"], 2000000)

    def test_short_waits_are_divided(self):
        capture = self.make("short.greenprof", HEAD + """
activity 2 0 10000000 10000000 7500000 0 0 1 1 1
sample 2000000 1000000 2 1 1 1
sample 4000000 1000000 2 1 2 1
sample 6000000 1000000 2 1 4 1 2
sample 10000000 1000000 2 1 1 1
span 9 0 2 2 0 10000000 1 3 0 GET /
end 10000000 0
""")
        folded = self.folded(capture)
        self.assertEqual(sum(folded.values()), 10000000)
        self.assertEqual(folded["[coroutine 2 handler];server+0x20;server+0x12;[parked]"], 2500000)
        self.assertEqual(folded["[coroutine 2 handler];server+0x20;server+0x11"], 1500000)
        self.assertIn("divided    0.010 s (100.0 %)", self.succeed("report", capture, "--by", "critical-path"))

    def test_running_without_a_sample(self):
        """The sample that comes next tells the stack if it is near; else nothing does."""
        for next_ns, stack in ((11500000, "server+0x20;server+0x10"), (12500000, "server+0x40;[not sampled]")):
            capture = self.make("next.greenprof", HEAD + f"""
activity 2 10000000 11000000 11100000 1000000 0 0 1 1 0
activity 2 11100000 14000000 14000000 2900000 0 0 1 1 1
sample {next_ns} 1000000 2 1 1 1
span 9 0 2 2 10500000 11000000 1 3 0 GET /
end 14000000 0
""")
            self.assertEqual(self.folded(capture), {f"[coroutine 2 handler];{stack}": 500000}, next_ns)

    def test_off_the_cpu(self):
        capture = super().make("off.greenprof", HEAD + """
activity 2 0 10000000 10000000 10000000 0 0 1 1 1
sample 2000000 2000000 2 1 1 1
sample 8000000 5000000 2 1 2 1 5
sample 10000000 2000000 2 1 1 1
sample 10000000 1000000 2 1 1 1 1
span 9 0 2 2 0 10000000 1 3 0 GET /
end 10000000 0
""")
        self.assertEqual(self.folded(capture), {
            "[coroutine 2 handler];server+0x20;server+0x10": 4000000,
            "[coroutine 2 handler];server+0x20;server+0x11;[blocked]": 5000000,
            "[coroutine 2 handler];server+0x20;server+0x10;[preempted]": 1000000})

    def test_no_spans(self):
        """A capture of a version without spans: from when it first ran to when it last did, without the wait at the end."""
        capture = self.make("old.greenprof", CHILD.replace("span 77", "# span"))
        self.assertEqual(self.table(capture)[0][:1] + self.table(capture)[0][9:11], ["25.000", "about", TRACE])
        self.assertEqual(sum(self.folded(capture).values()), 25000000)
        text = self.succeed("report", capture, "--by", "critical-path")
        self.assertIn("0.025 s about, the critical path of 1 request", text)
        self.assertRegex(self.succeed("report", capture, "--by", "trace"), r" ~0\.025 +2 " + TRACE)

    def test_open_implicit(self):
        """prof_trace_set() that nothing took back: what it was for was over when its coroutines last ran."""
        capture = self.make("open.greenprof", CHILD.replace("span 77 0 2 2 0 25000000 1 3 0 GET /x",
                                                            "span 77 0 2 2 0 30000000 1 1 10 "))
        self.assertEqual(self.table(capture)[0][:1] + self.table(capture)[0][9:11], ["25.000", "about", TRACE])

    def test_undivided_wait(self):
        """It is not known when it became ready; but what ran on its thread meanwhile is."""
        capture = self.make("undivided.greenprof", HEAD + """
activity 2 1000000 2000000 9000000 1000000 0 0 1 1 0
activity 2 9000000 10000000 10000000 1000000 0 0 1 1 1
activity 4 3000000 7000000 7500000 4000000 0 0 0 1 1
span 9 0 2 2 1000000 10000000 1 3 0 GET /
end 10000000 0
""")
        self.assertEqual(self.segments(capture, TRACE), [(0, 1000, 2, "running"), (1000, 8000, 2, "waiting"),
                                                         (8000, 9000, 2, "running")])
        self.assertIn("meanwhile [coroutine 4 hog] for 4.000 ms", self.succeed("report", capture, "--by", "critical-path"))

    def test_child_of_an_undivided_wait(self):
        """The runtime does not say what ended a wait; a child that ended meanwhile is taken to be what it was for."""
        capture = self.make("joined.greenprof", HEAD + """
activity 2 1000000 2000000 9000000 1000000 0 0 1 1 0
activity 2 9000000 10000000 10000000 1000000 0 0 1 1 1
activity 3 1500000 1500000 3000000 0 1500000 0 1 1 0
activity 3 3000000 7000000 7010000 4000000 0 0 1 1 1
span 9 0 2 2 1000000 10000000 1 3 0 GET /
end 11000000 0
""")
        self.assertEqual(self.segments(capture, TRACE), [
            (0, 1000, 2, "running"), (1000, 2000, 3, "ready"), (2000, 6000, 3, "running"), (6000, 8000, 2, "waiting"),
            (8000, 9000, 2, "running")])
        self.assertIn("inferred   0.005 s (55.6 %)", self.succeed("report", capture, "--by", "critical-path"))

    def test_call_on_another_thread(self):
        """A call that is handed to a thread of a pool is a child; the loop wakes its caller right after it."""
        script = HEAD + """
activity 2 1000000 2000000 9000000 1000000 8500000 1 1 1 0
activity 2 9000000 10000000 10000000 1000000 0 0 1 1 1
activity 3 1500000 1500000 3000000 0 1500000 0 1 2 0
activity 3 3000000 8000000 8000000 5000000 0 0 1 2 1
span 9 0 2 2 1000000 10000000 1 3 0 GET /
end 11000000 0
"""
        self.assertEqual(self.segments(self.make("call.greenprof", script), TRACE), [
            (0, 1000, 2, "running"), (1000, 2000, 3, "ready"), (2000, 7000, 3, "running"), (7000, 7500, 2, "parked"),
            (7500, 8000, 2, "ready"), (8000, 9000, 2, "running")])
        long_before = script.replace("3000000 8000000 8000000", "3000000 5000000 5000000")
        self.assertEqual(self.segments(self.make("timer.greenprof", long_before), TRACE), [
            (0, 1000, 2, "running"), (1000, 7500, 2, "parked"), (7500, 8000, 2, "ready"), (8000, 9000, 2, "running")])

    def test_a_request_is_of_its_endpoint(self):
        """What an endpoint's requests take on average, beside other endpoints."""
        capture = self.make("two.greenprof", HEAD + """
activity 2 1000000 2000000 2000000 1000000 0 0 1 1 0
activity 2 2000000 5000000 5000000 3000000 0 0 1 1 0
activity 3 5000000 11000000 11000000 6000000 0 0 2 1 1
span 1 0 2 2 1000000 2000000 1 3 0 GET /a
span 2 0 2 2 2000000 5000000 1 3 0 GET /a
span 3 0 3 3 5000000 11000000 2 3 0 GET /b
end 11000000 0
""")
        text = self.succeed("report", capture, "--by", "critical-path")
        self.assertRegex(text, r"  6\.000 +6\.000 +60\.0 running +\[coroutine child\] of \[rest_dispatch GET /b\]")
        self.assertRegex(text, r"  4\.000 +2\.000 +40\.0 running +\[coroutine handler\] of \[rest_dispatch GET /a\]")
        gains = text[text.index("   Where a millisecond less"):]
        self.assertRegex(gains, r"  6\.000  100\.0 +1 of 1 +running +.* of \[rest_dispatch GET /b\]\n +2\.000  100\.0 +2 of 2 +running +.* of \[rest_dispatch GET /a\]\n")

    def test_endpoints(self):
        spans = "\n".join(f"span {n} 0 2 2 {n * 1000000} {n * 2000000} {n} 3 {16 if n == 7 else 0} GET /{n % 2}"
                          for n in range(1, 101))
        traces = "\n".join(f"trace {n} {n:032x}" for n in range(1, 101))
        capture = self.make("endpoints.greenprof", HEAD + traces + "\n" + spans + "\nend 300000000 0\n")
        lines = self.succeed("report", capture, "--by", "request", "-n", "3").splitlines()
        start = next(number for number, line in enumerate(lines) if line.startswith("  requests "))
        self.assertEqual([line.split() for line in lines[start + 1:start + 3]], [
            ["50", "0", "50.000", "90.000", "100.000", "100.000", "rest_dispatch", "GET", "/0"],
            ["50", "1", "49.000", "89.000", "99.000", "99.000", "rest_dispatch", "GET", "/1"]])
        self.assertEqual([row[0] for row in self.table(capture, "-n", "3")], ["100.000", "99.000", "98.000"])
        self.assertEqual([row[0] for row in self.table(capture, "-r", "/1$", "-n", "2")], ["99.000", "97.000"])
        self.assertEqual([row[9] for row in self.table(capture, "--trace", f"{7:032x}")], ["failed"])
        self.assertEqual([row[0] for row in self.table(capture, "--from", "0.09", "--to", "0.199", "-n", "0")],
                         [f"{n}.000" for n in range(99, 89, -1)])

    def test_other_formats(self):
        capture = self.make("child.greenprof", CHILD)
        report = json.loads(self.succeed("export", capture, "-f", "json", "--by", "critical-path"))
        self.assertEqual((report["total_ns"], report["measure"]), (25000000, "latency"))
        for name in ("pstats", "pprof", "speedscope", "callgrind", "otlp"):
            self.succeed("export", capture, "-f", name, "--by", "critical-path", "-o", self.path("out"))
        self.assertIn("[behind coroutine 4 hog]", self.succeed("flamegraph", capture, "--by", "critical-path"))
        part = self.folded(capture, "--focus", "x30$")
        self.assertEqual(part, {"[coroutine 3 child];server+0x31;server+0x30": 10000000})

    def test_bad_use(self):
        capture = self.make("child.greenprof", CHILD)
        for by in ("critical-path", "request"):
            self.expect(2, f"--by {by}: --thread chooses no requests", "report", capture, "--by", by, "--thread", "main")
            self.expect(1, "nothing|no whole request is left by --trace", "report", capture, "--by", by, "--trace",
                        "00000000000000000000000000000002")
            self.expect(1, "has no requests: prof_span_begin", "report", self.make("none.greenprof", HEAD + "end 1 0\n"), "--by", by)
            python = self.make("python.greenprof", HEAD + "function 1 10 main /srv/app.py\nend 1 0\n")
            self.expect(1, r"has no requests: greenprof\.span\(\) and greenprof\.wsgi\.Tracing", "report", python, "--by", by)
        self.expect(2, "this format has a timeline", "export", capture, "-f", "chrome", "--by", "critical-path")

    def test_random_schedules(self):
        """Random requests, and a reference that goes microsecond by microsecond: the same coroutines in the same states."""
        paths = 0
        for seed in range(40):
            schedule = Schedule(seed).play()
            capture = self.make("random.greenprof", schedule.script())
            for request in schedule.requests[:4]:
                trace, _, start, end = request
                expected = [(at - start, to - start, number, state) for at, to, number, state in schedule.path(request)]
                found = []
                for at, to, number, state in self.segments(capture, f"{trace:032x}"):
                    self.assertEqual(at, found[-1][1] if found else 0, (seed, trace))  # back to back
                    state = "ready" if state == "unknown" else state
                    if found and found[-1][2:] == (number, state):
                        found[-1] = (found[-1][0], to, number, state)
                    else:
                        found.append((at, to, number, state))
                self.assertEqual(found, expected, (seed, trace))
                paths += 1
            latencies = sum(end - start for _, _, start, end in schedule.requests)
            self.assertEqual(sum(self.folded(capture).values()), latencies * UNIT, seed)
        self.assertGreater(paths, 80)


if __name__ == "__main__":
    main()
