# SPDX-License-Identifier: MIT
"""Filters: which part of a capture is taken, and what the total of a part rests on.

usage: test_filters.py GREENPROF MAKE_CAPTURE RECORDER.so WORK-DIRECTORY
"""
import json, os, pstats, subprocess, unittest

from support import GREENPROF, Command, main, run

# Two threads, three coroutines, two traces. Samples of 1 ms, one each 100 ms from 0.1 s on; coroutine 3 moves to thread 2.
FRAMES = {1: "1:10 1:20", 2: "1:11 1:20", 3: "1:12 2:30 1:20", 4: "1:10 2:30 1:20"}
SAMPLES = [(1, 1, 1, 0), (2, 1, 2, 1), (3, 1, 3, 1), (3, 2, 3, 2), (3, 2, 4, 2), (2, 1, 1, 0)]
SCRIPT = "\n".join(
    ["header realtime=1790000000000000000", "meta exe /opt/app/server", "module 1 /opt/app/server 0102 0x1000 0x9000 0x0",
     "module 2 /usr/lib/libz.so - 0x10000 0x19000 0x0", "thread 1 10 1 3300000 main", "thread 2 12 4 2200000 pool",
     "coro 1 0 - 0x1000 0x1000 1 1 -", "coro 2 1 1:40 0x3000 0x1000 2 0 -", "coro 3 1 - 0x5000 0x1000 2 0 worker",
     "coro 4 0 - 0x7000 0x1000 1 2 -", "trace 1 4bf92f3577b34da6a3ce929d0e0e4736", "trace 2 00000000000000000000000000000001"]
    + [f"stack {number} 0 {frames}" for number, frames in FRAMES.items()]
    + [f"sample {(i + 1) * 100000000} 1000000 {coro} {thread} {stack} {trace}"
       for i, (coro, thread, stack, trace) in enumerate(SAMPLES)]
    + ["ledger 1 0 1100000 7 600000000", "ledger 2 1 1200000 1 600000000", "ledger 2 0 800000 1 600000000",
       "ledger 3 1 900000 1 600000000", "ledger 3 2 1500000 2 600000000",
       "counters 700000000 5500000 10000 6 6 0 0 0 0 0", "end 1000000000 0"])
TRACE_1, TRACE_2 = "4bf92f3577b34da6a3ce929d0e0e4736", 31 * "0" + "1"


class Filters(Command):
    def setUp(self):
        super().setUp()
        self.capture = self.make("filters.greenprof", SCRIPT)

    def json(self, *arguments):
        return json.loads(self.succeed("export", self.capture, "-f", "json", *arguments))

    def check(self, basis, total_ns, samples, *arguments):
        """What is left of the capture, its total and what that rests on; weights must add up to it."""
        report = self.json(*arguments)
        self.assertEqual((report["basis"], report["total_ns"], report["samples"]), (basis, total_ns, samples), arguments)
        self.assertEqual(sum(row["weight_ns"] for row in report["rows"]), total_ns)
        return report

    def test_exact(self):
        self.check("exact", 5500000, 6)
        self.check("exact", 1100000, 1, "--coroutine", "1")
        self.check("exact", 3100000, 3, "--coroutine", "1", "--coroutine", "2")
        self.check("exact", 2400000, 3, "--coroutine", "3")
        self.check("exact", 2100000, 2, "--trace", TRACE_1)
        self.check("exact", 3600000, 4, "--trace", TRACE_1, "--trace", TRACE_2)
        self.check("exact", 900000, 1, "--trace", TRACE_1, "--coroutine", "3")
        self.check("exact", 3300000, 4, "--thread", "main")
        self.check("exact", 2200000, 2, "--thread", "12")
        self.check("exact", 5500000, 6, "--thread", "12", "--thread", "main")

    def test_names(self):
        self.check("exact", 2400000, 3, "--name", "^work")
        self.check("exact", 4400000, 5, "--name", "^(work|server)")
        self.check("exact", 4400000, 5, "--name", "work", "--name", "0x40$")
        self.check("exact", 900000, 1, "--name", "work", "--trace", TRACE_1)
        self.check("exact", 1100000, 1, "--name", "thread main")

    def test_no_exact_time_is_known(self):
        self.check("sampled", 1000000, 1, "--thread", "main", "--coroutine", "3")
        self.check("sampled", 2000000, 2, "--from", "0.15", "--to", "0.35")
        self.check("sampled", 1000000, 1, "--from", "0.15", "--to", "0.35", "--coroutine", "3")

    def test_moments(self):
        for arguments, samples in ((["--from", "0.3"], 4), (["--to", "0.3"], 2), (["--from", "-0.65"], 3), (["--to=-0.65"], 3),
                                   (["--from", "-0.65", "--to", "-0.45"], 2), (["--from", "@1790000000.25"], 4),
                                   (["--to", "@1790000000.25"], 2), (["--from", "2026-09-21T14:13:20.25Z"], 4),
                                   (["--from", "2026-09-21 16:13:20.25+02:00"], 4), (["--from", "2026-09-21"], 6),
                                   (["--to", "2026-09-22"], 6)):
            self.assertEqual(self.json(*arguments)["samples"], samples, arguments)

    def test_local_times(self):
        def samples(zone, *arguments):
            result = subprocess.run([GREENPROF, "export", self.capture, "-f", "json", *arguments], capture_output=True, check=True,
                                    env={**os.environ, "TZ": zone})
            return json.loads(result.stdout)["samples"]
        self.assertEqual(samples("UTC", "--from", "14:13:20.25"), 4)
        self.assertEqual(samples("UTC-2", "--from", "16:13:20.25"), 4)  # POSIX: two hours east
        self.assertEqual(samples("UTC-2", "--from", "2026-09-21 16:13:20.25"), 4)
        self.assertEqual(samples("UTC", "--from", "14:13"), 6)

    def test_part_of_time_says_when(self):
        report = self.json("--from", "0.2", "--to", "0.5")
        self.assertEqual((report["duration_ns"], report["start_realtime_ns"]), (300000000, 1790000000200000000))
        self.assertEqual(self.json("--from", "0.2")["duration_ns"], 800000000)

    def test_focus_and_ignore(self):
        # Each coroutine is scaled by itself only from ten samples on: here all by 5.5 ms / 6 samples.
        part = lambda samples: round(5500000 * samples / 6)
        report = self.check("estimated", part(3), 3, "--focus", "x10$")
        self.assertEqual(report["scope_ns"], 5500000)
        self.assertNotIn("server+0x11", [frame["function"] for frame in report["frames"]])
        self.check("estimated", part(3), 3, "--focus", "libz")  # by its module
        self.check("estimated", part(1), 1, "--focus", "libz", "--focus", "x10$")
        self.check("estimated", part(2), 2, "--focus", "x10$", "--ignore", "libz")
        self.check("estimated", part(2), 2, "--ignore", "0x11", "--ignore", "libz")
        self.check("estimated", 2400000 * 2 // 3, 2, "--coroutine", "3", "--ignore", "x10$")
        self.check("sampled", 1000000, 1, "--focus", "x10$", "--from", "0.55")

    def test_roots_are_no_part_of_a_stack(self):
        folded = lambda *arguments: self.succeed("export", self.capture, "-f", "folded", "--by", "coroutine", *arguments)
        self.expect(1, "nothing is left by --focus worker", "export", self.capture, "-f", "folded", "--by", "coroutine",
                    "--focus", "worker")
        self.assertEqual(folded("--ignore", "worker"), folded())

    def test_every_format_says_so(self):
        out = self.path("out.prof")
        self.succeed("export", self.capture, "-f", "pstats", "-o", out, "--focus", "x10$")
        self.assertIn(("~", 0, "[times are those of the samples]"), pstats.Stats(out).stats)
        self.succeed("export", self.capture, "-f", "pstats", "-o", out)
        self.assertNotIn(("~", 0, "[times are those of the samples]"), pstats.Stats(out).stats)
        self.assertIn("by the samples", self.succeed("flamegraph", self.capture, "--from", "0.3"))
        self.assertNotIn("by the samples", self.succeed("flamegraph", self.capture))
        self.assertIn("0.003 s by the samples, of 0.006 s exact", self.succeed("report", self.capture, "--focus", "x10$"))
        self.assertIn("exact time of this part is not known", self.succeed("report", self.capture, "--from", "0.3"))

    def test_groups(self):
        self.assertEqual([row[:5] for row in self.groups("coroutine", "--name", "work")], [["0.002", "0.003", "3", "3", "3"]])
        self.assertEqual([row[:5] for row in self.groups("coroutine", "--focus", "libz")], [["-", "0.003", "3", "-", "3"]])
        self.assertEqual([row[:6] for row in self.groups("trace", "--to", "0.25")],
                         [["-", "0.001", "1", "-", "-", "1"], ["-", "0.001", "1", "-", "-", "1"]])

    def test_bad_values(self):
        for option, text, error in (("--name", "(", r"--name '\(': Unmatched"), ("--focus", "a[[:x:]]", "Invalid character class"),
                                    ("--ignore", "a{2,1}", "Invalid content of"), ("--from", "soon", "--from soon"),
                                    ("--to", "", "--to "), ("--to", "1s", "--to 1s"), ("--from", "2026-13-01", "--from 2026"),
                                    ("--from", "25:00", "--from 25"), ("--from", "--5", "--from --5"),
                                    ("--from", "99999999999999999999", "--from 9")):
            for command in (["report"], ["export", "-f", "folded"], ["flamegraph"]):
                self.expect(2, error, *command, self.capture, option, text)

    def test_what_is_not_there(self):
        for arguments, error in ((["--thread", "nonesuch"], "has no thread nonesuch"), (["--thread", "99"], "has no thread 99"),
                                 (["--name", "zz"], "has no coroutine with a name that matches 'zz'"),
                                 (["--from", "5", "--to", "4"], "nothing is between --from 5 and --to 4"),
                                 (["--trace", TRACE_1, "--trace", 32 * "f"], "has no trace ff")):
            self.expect(1, error, "report", self.capture, *arguments)

    def test_nothing_is_left(self):
        """Of a part that is nothing there is no table and no file: a message, and status 1."""
        out = self.path("out")
        for arguments in (["--from", "100"], ["--from", "2"], ["--focus", "nosuch"], ["--ignore", "."], ["--focus", "x10$", "--from", "0.99"],
                          ["--thread", "main", "--focus", "nosuch"], ["--trace", TRACE_1, "--focus", "nosuch"],
                          ["--name", "thread main", "--trace", TRACE_1]):
            error = "nothing is left by --"
            for command in (["report"], ["report", "--by", "coroutine"], ["report", "--by", "trace"], ["flamegraph"], ["export", "-f", "folded"],
                            ["export", "-f", "json"], ["export", "-f", "pprof", "-o", out], ["export", "-f", "chrome"],
                            ["flamegraph", "-o", out], ["diff", self.capture]):
                self.expect(1, error, *command, self.capture, *arguments)

    def test_no_row_matches(self):
        """Tables of rows, none of which is left; a page of stacks, none of which is left, though there are activities."""
        def left_none(*arguments):
            result = run(*arguments)
            self.assertEqual(result.returncode, 1, arguments)
            self.assertRegex(result.stderr, r"^greenprof: .*: no row matches 'nosuch'\n$")

        for command in (["report"], ["report", "--by", "coroutine"], ["report", "--by", "trace"], ["diff", self.capture]):
            left_none(*command, self.capture, "-r", "nosuch")
            self.succeed(*command, self.capture, "-r", "0")
        for option in ("--callers", "--callees"):
            left_none("report", self.capture, option, "nosuch")
        out = self.path("out.html")
        self.expect(1, "nothing is left by --focus nosuch", "flamegraph", self.capture, "-o", out, "--focus", "nosuch")
        self.assertFalse(os.path.exists(out))
        self.expect(2, "--by request: --focus and --ignore choose no requests", "report", self.capture, "--by", "request", "--focus", "x")

    def test_part_without_samples_is_something(self):
        """A trace or a coroutine of which the ledger knows, but no sample: its time is known."""
        script = "thread 1 10 1 0 main\ncoro 1 0 - 0 0 1 1 -\ncoro 2 1 - 0 0 2 0 idle\nledger 2 0 0 5 3000\ncounters 1 1 0 0 0\nend 9 0\n"
        self.succeed("report", self.make("idle", script), "--name", "idle")

    def test_pipe(self):
        with open(self.capture, "rb") as file:
            data = file.read()
        for arguments in ([], ["--coroutine", "3"], ["--from", "-0.7"], ["--by", "coroutine"], ["--clock", "wall"]):
            command = [GREENPROF, "export", "-f", "folded", *arguments]
            file = subprocess.run([*command, self.capture], capture_output=True)
            for name in ("/dev/stdin", "-"):
                piped = subprocess.run([*command, name], input=data, capture_output=True)
                self.assertEqual((piped.returncode, piped.stdout), (0, file.stdout), piped.stderr)
            self.assertTrue(piped.stdout)


if __name__ == "__main__":
    main()
