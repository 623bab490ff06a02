# SPDX-License-Identifier: MIT
"""merge and info: what belongs together is united, what does not stays apart, nothing is lost.

usage: test_merge.py GREENPROF MAKE_CAPTURE RECORDER.so WORK-DIRECTORY
"""
import collections, json, os, re, struct, subprocess, sys, unittest

from support import GREENPROF, Command, main, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
from capture import Capture

TRACE_1, TRACE_2 = "4bf92f3577b34da6a3ce929d0e0e4736", 31 * "0" + "2"
# Two processes: the same numbers for different things, different numbers for the same things.
FIRST = f"""
header realtime=1790000000000000000 pid=100
meta exe /opt/app/server
meta hostname host
module 1 /opt/app/server 0102 0x1000 0x9000 0x0
module 2 /usr/lib/libz.so - 0x10000 0x19000 0x0
thread 1 100 1 2100000 main
coro 1 0 - 0x1000 0x1000 1 1 -
coro 2 1 1:40 0x3000 0x1000 2 0 first
trace 1 {TRACE_1}
stack 1 0 1:10 1:20
stack 2 0 2:30 1:20
sample 1000000 1000000 1 1 1 0
sample 2000000 1000000 2 1 2 1
ledger 1 0 1100000 7 2000000
ledger 2 1 1000000 3 2000000
counters 2000000 2100000 10000 5 2 3 0 0 0 0
end 3000000 0
"""
SECOND = f"""
header realtime=1790000001000000000 pid=200
meta exe /opt/app/server
meta hostname host
module 1 /usr/lib/libz.so - 0x30000 0x39000 0x20000
module 2 /srv/copy/server 0102 0x41000 0x49000 0x40000
module 3 /usr/lib/other.so 0304 0x51000 0x59000 0x50000
thread 1 200 1 1200000 main
thread 2 201 4 2300000 pool
coro 1 0 - 0x1000 0x1000 1 1 -
coro 2 1 2:40 0x3000 0x1000 2 0 second
coro 4 0 - 0x7000 0x1000 1 2 -
trace 1 {TRACE_2}
trace 2 {TRACE_1}
stack 1 0 1:30 2:20
stack 2 0 3:50 2:20
sample 1000000 1000000 2 1 1 2
sample 2000000 1500000 2 2 2 1
sample 5000000 1000000 4 2 2 0
ledger 2 2 1200000 4 5000000
ledger 2 1 1300000 4 5000000
ledger 4 0 1000000 9 5000000
counters 5000000 3500000 20000 7 3 4 0 0 0 0
end 6000000 0
"""


class Merge(Command):
    def setUp(self):
        super().setUp()
        self.first, self.second = self.make("first", FIRST), self.make("second", SECOND)

    def merge(self, *inputs, name="merged"):
        self.assertEqual(self.succeed("merge", "-o", self.path(name), *inputs), "")
        return self.path(name)

    def folded(self, *arguments):
        return collections.Counter({line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1])
                                    for line in self.succeed("export", "-f", "folded", *arguments).splitlines()})

    def assert_same(self, folded, expected):
        self.assertEqual(set(folded), set(expected))
        for stack, weight in expected.items():
            self.assertAlmostEqual(folded[stack], weight, delta=1)  # whole microseconds

    def test_nothing_is_lost(self):
        merged = Capture(self.merge(self.first, self.second))
        one, two = Capture(self.first), Capture(self.second)
        self.assertTrue(merged.whole)
        self.assertEqual(len(merged.samples), 5)
        self.assertEqual(merged.process_cpu_ns, one.process_cpu_ns + two.process_cpu_ns)
        self.assertEqual(merged.own_cpu_ns, 30000)
        for name in ("signals", "samples", "ring_full"):
            self.assertEqual(merged.counters[name], one.counters[name] + two.counters[name])
        self.assertEqual(sum(cpu for cpu, _ in merged.ledger.values()), sum(cpu for cpu, _ in (*one.ledger.values(), *two.ledger.values())))
        self.assertEqual(merged.end, 0)

    def test_stays_apart(self):
        merged = Capture(self.merge(self.first, self.second))
        self.assertEqual({coro.name: coro.id for coro in merged.coros.values() if coro.name}, {"first": 2, "second": 4})
        self.assertEqual(sorted(merged.coros), [1, 2, 3, 4, 6])
        self.assertEqual(merged.coros[4].parent, 3)
        self.assertEqual({index: (thread.tid, thread.coro) for index, thread in merged.threads.items()}, {1: (100, 1), 2: (200, 3), 3: (201, 6)})
        self.assertEqual(merged.coros[6].thread, 3)
        self.assertEqual([(sample.coro, sample.thread) for sample in merged.samples], [(1, 1), (2, 1), (4, 2), (4, 3), (6, 3)])

    def test_on_one_clock(self):
        merged = Capture(self.merge(self.second, self.first))  # the later one first
        self.assertEqual(merged.start_realtime_ns, 1790000000000000000)
        self.assertEqual(sorted(sample.time_ns for sample in merged.samples), [1000000, 2000000, 1001000000, 1002000000, 1005000000])
        self.assertIn("duration   1.006 s", self.succeed("info", self.path("merged")))

    def test_monotonic_clock_within_a_boot(self):
        """The time of day may have been set in between; the monotonic clock was not."""
        for name, boot_apart, expected in (("same", 300000000, 500000000), ("other", 5000000000, 1000000000)):
            for path, realtime, monotonic in ((self.first, 1790000000000000000, 7000000000),
                                              (self.second, 1790000001000000000, 8000000000 - (500000000 if name == "same" else boot_apart))):
                with open(path, "r+b") as file:
                    file.seek(24)
                    file.write(struct.pack("<QQ", realtime, monotonic))
            merged = Capture(self.merge(self.first, self.second))
            self.assertEqual(max(sample.time_ns for sample in merged.samples), 5000000 + expected, name)

    def test_is_united(self):
        merged = self.merge(self.first, self.second)
        report = json.loads(self.succeed("export", merged, "-f", "json"))
        # A build-id is one module, under its first path; so is one path where there is no build-id.
        self.assertEqual(sorted(mapping["path"] for mapping in report["mappings"]), ["/opt/app/server", "/usr/lib/libz.so", "/usr/lib/other.so"])
        # 5.6 ms over samples of 1, 2 and 2.5 ms.
        self.assert_same(self.folded(merged), {"server+0x20;server+0x10": 1018, "server+0x20;libz.so+0x30": 2036, "server+0x20;other.so+0x50": 2545})
        traces = {line.split(";")[0]: 0 for line in self.folded(merged, "--by", "trace")}
        self.assertEqual(set(traces), {"[no trace]", f"[trace {TRACE_1}]", f"[trace {TRACE_2}]"})
        self.assertEqual(sum(self.folded(merged, "--trace", TRACE_1).values()), 1000 + 1200)
        self.assertIn("3 stacks", self.succeed("info", merged))

    def test_functions_of_languages(self):
        """Python's functions are told by name, file and line, also where a stack comes before what it refers to."""
        one = """header pid=1
function 1 10 main /srv/app.py
function 2 20 work /srv/app.py
stack 1 0 function:2:21 function:1:11
sample 1000000 1000000 1 1 1 0
"""
        two = """header pid=2
stack 1 0 function:7:21 function:9:12
stack 2 0 function:7:21 function:8:31
function 9 10 main /srv/app.py
function 8 30 main /srv/app.py
function 7 20 work /srv/app.py
stack 3 0 function:7:21 function:9:11
sample 1000000 1000000 1 1 1 0
sample 2000000 1000000 1 1 2 0
sample 3000000 2000000 1 1 3 0
"""
        merged = self.merge(self.make("one", one), self.make("two", two))
        rows = collections.Counter()
        report = json.loads(self.succeed("export", merged, "-f", "json"))
        for row in report["rows"]:
            rows[tuple((frame["function"], frame["first_line"], frame["line"]) for frame in map(report["frames"].__getitem__, row["stack"]))] += row["weight_ns"]
        self.assertEqual(rows, {(("main", 10, 11), ("work", 20, 21)): 3000000, (("main", 10, 12), ("work", 20, 21)): 1000000,
                                (("main", 30, 31), ("work", 20, 21)): 1000000})

    def test_command_lines(self):
        """Arguments are separated by NULs: all of them count."""
        one = self.make("one", "header pid=1\nmeta cmdline server\\0-a\n")
        two = self.make("two", "header pid=2\nmeta cmdline server\\0-b\n")
        three = self.make("three", "header pid=3\nmeta cmdline server\\0-a\n")
        self.assertIn("  command    server -a\n", self.succeed("info", one))
        self.assertIn("  command    server -a\n", self.succeed("info", self.merge(one, three)))
        self.assertNotIn("  command  ", self.succeed("info", self.merge(one, two)))

    def test_any_order_and_grouping(self):
        third = self.make("third", FIRST.replace("pid=100", "pid=300").replace("1790000000", "1790000009").replace("1:20", "1:70"))
        whole = self.folded(self.merge(self.first, self.second, third, name="abc"))
        self.assert_same(self.folded(self.merge(third, self.first, self.second, name="cab")), whole)
        self.assert_same(self.folded(self.merge(self.merge(self.second, third, name="bc"), self.first, name="bca")), whole)
        self.assert_same(self.folded(third, self.second, self.first), whole)  # on the fly

    def test_on_the_fly(self):
        merged = self.merge(self.first, self.second)
        before = sorted(os.listdir(self.directory))
        table = lambda *files: self.succeed("report", *files, "--by", "coroutine")
        self.assertEqual(table(self.first, self.second), table(merged))
        self.assertEqual(self.succeed("flamegraph", self.first, self.second), self.succeed("flamegraph", merged))
        self.assertIn("several processes", table(merged))
        self.assertEqual(self.folded(self.first, self.second, "--from", "1"), self.folded(merged, "--from", "1"))
        self.assertEqual(sorted(os.listdir(self.directory)), before)

    def test_which_came_from_where(self):
        info = self.succeed("info", self.merge(self.first, self.second))
        self.assertIn(f"pid 100, coroutines 1-2, threads 1-1: {self.first}", info)
        self.assertIn(f"pid 200, coroutines 3-6, threads 2-3: {self.second}", info)
        self.assertIn("/opt/app/server", info)
        other = self.make("other", SECOND.replace("exe /opt/app/server", "exe /opt/app/worker").replace("hostname host", "hostname there"))
        info = self.succeed("info", self.merge(self.first, other))
        self.assertIn("server + worker", info)
        self.assertNotIn("host   ", info)

    def test_killed_and_damaged(self):
        cut = self.make("cut", SECOND.replace("end 6000000 0", ""))
        self.assertIsNone(Capture(self.merge(self.first, cut)).end)
        damaged = self.make("damaged", SECOND.replace("stack 1 0 1:30", "bad\nstack 1 0 1:30"))
        result = run("merge", "-o", self.path("out"), self.first, damaged)
        self.assertEqual(result.returncode, 0)
        self.assertIn(f"{damaged}: damaged: 1 bad places", result.stderr)
        folded = self.folded(self.path("out"))
        self.assertEqual(sum(folded.values()), 5600)  # also what is on lost stacks
        self.assertEqual(set(folded), {"server+0x20;server+0x10", "server+0x20;libz.so+0x30", "[lost stack]"})

    def test_every_truncation(self):
        with open(self.second, "rb") as file:
            data = file.read()
        for size in range(128, len(data), 61):
            with open(self.path("cut"), "wb") as file:
                file.write(data[:size])
            result = run("merge", "-o", self.path("out"), self.path("cut"), self.first)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertGreaterEqual(len(Capture(self.path("out")).samples), 2)

    def test_bad_use(self):
        out = self.path("out")
        self.expect(2, "missing FILE", "merge", "-o", out, self.first)
        self.expect(2, "missing --output", "merge", self.first, self.second)
        self.expect(1, "is the same capture as", "merge", "-o", out, self.first, self.second, self.first)
        self.expect(1, "No such file", "merge", "-o", out, self.first, self.path("none"))
        self.expect(1, "is not a greenprof capture", "merge", "-o", out, self.first, "/bin/sh")
        self.expect(1, "needs a file", "merge", "-o", "-", self.first, self.second)
        self.expect(1, "not a regular file", "merge", "-o", "/dev/null", self.first, self.second)
        self.expect(1, "No such file", "merge", "-o", self.path("none/out"), self.first, self.second)
        self.expect(1, "the same capture as", "report", self.first, self.first)

    def test_merged_has_no_census(self):
        self.succeed("merge", "-o", self.path("out"), self.first, self.second)
        self.assertIn("a merged capture has no census", run("coroutines", self.path("out")).stderr)

    def test_short_of_space(self):
        # Messages have the names that the user knows, not those of temporary files.
        def merge(*arguments, **environment):
            limited = "ulimit -f 0; trap '' XFSZ; exec \"$@\" 2>&1 >/dev/null | cat"  # the pipe has no limit
            return subprocess.run(["sh", "-c", limited, "sh", GREENPROF, *arguments], capture_output=True, text=True,
                                  env={**os.environ, **environment}, cwd=self.directory).stdout
        before = sorted(os.listdir(self.directory))
        self.assertEqual(merge("merge", "-o", "out", self.first, self.second), "greenprof: out: File too large\n")
        self.assertEqual(merge("report", self.first, self.second, TMPDIR=self.directory), "")  # they are not copied
        self.assertEqual(sorted(os.listdir(self.directory)), before)

    def test_output_is_no_input(self):
        whole = self.folded(self.first)
        os.link(self.first, self.path("link"))
        for output in (self.first, self.path("link")):
            self.expect(1, f"{output}: is an input and cannot be the output too", "merge", "-o", output, self.first, self.second)
        self.assertEqual(self.folded(self.first), whole)

    def test_pipes(self):
        """Each is copied: captures are read more than once."""
        merged = self.succeed("report", self.merge(self.first, self.second))
        piped = subprocess.run(["bash", "-c", f"'{GREENPROF}' report <(cat '{self.first}') '{self.second}'"], capture_output=True, text=True)
        self.assertEqual((piped.stdout, piped.stderr, piped.returncode), (merged, "", 0))

    def test_end_of_several(self):
        """--to and --from before the end count from the latest end."""
        merged = self.merge(self.first, self.second)
        for window in (("--from", "-0.004"), ("--to", "-0.0045"), ("--from", "0.0015", "--to", "-0.0035")):
            self.assertEqual(self.folded(self.second, self.first, *window), self.folded(merged, *window))


class Info(Command):
    def test_contents(self):
        info = self.succeed("info", self.make("first", FIRST))
        for text in ("/opt/app/server", "process    100", "host       host", "started    2026-09-21 14:13:20.000 UTC", "duration   0.003 s",
                     "the process ended", "asked for 1000 Hz, perf clock", "machine    x86-64", "0.002 s exact; ledger 0.002 s (-0.00 %); "
                     "sampled 0.002 s (-4.76 %)", "holds      2 samples, 2 stacks, 1 coroutine, 1 trace, 0 spans, 1 thread, 2 modules",
                     "signals    5, of them 2 samples and 3 dropped", "3 dropped, the collector could not keep up"):
            self.assertIn(text, info.replace("(+0.00 %)", "(-0.00 %)"))
        for text in ("threads:", "build-id  "):
            self.assertNotIn(text, info)
        verbose = self.succeed("info", "-v", self.path("first"))
        self.assertRegex(verbose, r"100     0.002 .* main")
        self.assertRegex(verbose, r"0102 +/opt/app/server")
        self.assertRegex(verbose, r"- +/usr/lib/libz.so")

    def test_several_and_bad_files(self):
        first = self.make("first", FIRST)
        second = self.make("second", SECOND.replace("end 6000000 0", "bad\nend 6000000 0").replace("stack 2", "bad\nstack 2"))
        result = run("info", first, "/bin/sh", second, "/nowhere")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr.count("greenprof: "), 2)
        self.assertIn("process    200", result.stdout)
        self.assertIn("none: the program still runs, was killed", result.stdout)
        self.assertIn("damage     2 bad places", result.stdout)

    def test_names_do_not_steer_the_terminal(self):
        evil = self.make("evil", "meta exe a\x1b]0;x\x07b\nmeta cmdline x\x1b[2J\nthread 1 1 1 0 \x1b[1m\nmodule 1 /\x1b/x - 0 0 0\n")
        self.assertNotRegex(self.succeed("info", "-v", evil), "[\x00-\x09\x0b-\x1f\x7f-\x9f]")


if __name__ == "__main__":
    main()
