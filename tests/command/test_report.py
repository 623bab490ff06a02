# SPDX-License-Identifier: MIT
"""The tables of `report`: restrictions, callers and callees, beside Python's pstats.

usage: test_report.py GREENPROF MAKE_CAPTURE RECORDER.so WORK-DIRECTORY
"""
import contextlib, fcntl, io, os, pstats, pty, random, re, struct, subprocess, termios, unittest

import pstats_case
from support import Command, GREENPROF, SCRIPT, main, run


class Tables(Command):
    def setUp(self):
        super().setUp()
        self.capture = self.make("case.greenprof", pstats_case.script())
        self.prof = self.path("case.prof")
        self.succeed("export", self.capture, "-f", "pstats", "-o", self.prof)

    def tables(self, *arguments):
        """What comes behind the header: from "Ordered by" on, its title line apart."""
        text = self.succeed("report", self.capture, *arguments)
        return "".join(line for line in text[text.index("   Ordered by"):].splitlines(True)
                       if not line.endswith("  [no caller]\n"))  # that pstats does not have

    def pstats(self, sort, method, *restrictions):
        out = io.StringIO()
        stats = pstats.Stats(self.prof, stream=out)
        del stats.stats[("~", 0, "[call counts are numbers of samples]")]
        stats.max_name_len = max(len(pstats.func_std_string(function)) for function in stats.stats)
        # As report does it, what is equal is ordered by time, then by name.
        getattr(stats.sort_stats(*sort, "cumulative", "stdname"), method)(*restrictions)
        text = out.getvalue()
        return text[text.index("   Ordered by"):].replace(", cumulative time, standard name\n", "\n", 1)

    def on_terminal(self, columns, *arguments):
        """What a terminal of so many columns gets."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        command = subprocess.Popen([GREENPROF, "report", self.capture, *arguments], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave)
        os.close(slave)
        output = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while part := os.read(master, 65536):
                output += part
        self.assertEqual(command.wait(), 0)
        os.close(master)
        return output.decode().replace("\r\n", "\n")

    def test_narrow_terminal(self):
        """The end of a name says most; in a pipe there is all of it."""
        self.capture = self.make("narrow.greenprof", pstats_case.script())
        whole = [line for line in self.succeed("report", self.capture).splitlines() if re.match(r" +\d+ +\d+\.\d{3} ", line)]
        longest = max(map(len, whole))
        for columns in (longest - 3, longest, 200):
            shown = [line for line in self.on_terminal(columns).splitlines() if re.match(r" +\d+ +\d+\.\d{3} ", line)]
            self.assertEqual(len(shown), len(whole))
            for line, other in zip(shown, whole):
                self.assertLessEqual(len(line), max(columns, 46 + 16), line)
                numbers, name = other[:46], other[46:]
                self.assertTrue(line.startswith(numbers), line)
                kept = line[46:]
                self.assertTrue(kept == name or (kept.startswith("..") and name.endswith(kept[2:])), (line, other))
                self.assertEqual(kept == name, len(other) <= columns or columns < 62)

    def test_no_time_below_zero(self):
        """Accounts that a host has mixed up: what one coroutine gave back too much is not 585 years."""
        script = SCRIPT.replace("ledger 2 1 900000 2", "ledger 2 1 900000 2 4000000\nledger 2 1 0xfffffffffff00000 0")
        text = self.succeed("report", self.make("mixed.greenprof", script), "--by", "coroutine")
        self.assertNotIn("1844674407", text)
        self.assertRegex(text, r"(?m)^ +0\.000 .* 2 +2 ")

    def test_waits_that_were_taken_back(self):
        """Samples of a wait that turned out to have had no end; one that goes on, and one that had an end, count."""
        script = """thread 1 10 1 0 main
coro 1 0 - 0 0 1 1 -
coro 2 1 - 0 0 2 0 over
coro 3 1 - 0 0 2 0 lasting
stack 1 0 0:10
stack 2 0 0:20
stack 3 0 0:30
sample 1000000000 1000000000 2 1 1 0 4
sample 6000000000 5000000000 2 0 2 0 4
sample 6000000000 5000000000 3 0 3 0 4
ledger 2 0 0 1 1000000000 0 0 0 0 1000000000 0
ledger 2 0 0 0 6000000000 0 0 0 0 5000000000 0
ledger 3 0 0 1 6000000000 0 0 0 0 5000000000 0
ledger 2 0 0 0 7000000000 0 0 0 0 0xfffffffed5fa0e00 0
end 9000000000 0
"""
        capture = self.make("back.greenprof", script)
        for window in ((), ("--from", "0.5")):
            folded = self.succeed("export", capture, "-f", "folded", "--clock", "wall", *window)
            weights = dict(line.rsplit(" ", 1) for line in folded.splitlines())
            self.assertEqual({stack: round(int(weight) / 1e6) for stack, weight in weights.items() if int(weight) > 0},
                             {"0x10;[waiting]": 1, "0x30;[waiting]": 5})

    def test_names_are_the_same_on_one_processor(self):
        """On several, the command's threads read ahead what names need: here, those of its own code."""
        processors = os.sched_getaffinity(0)
        if len(processors) < 2:
            self.skipTest("there is one processor")
        sections, notes = (subprocess.run(["readelf", what, "-W", GREENPROF], capture_output=True, text=True, check=True).stdout
                           for what in ("-S", "-n"))
        start, size = (int(number, 16) for number in re.search(r"\.text +PROGBITS +(\w+) \w+ (\w+)", sections).groups())
        build_id = re.search("Build ID: ([0-9a-f]+)", notes)
        pick = random.Random(1)
        script = [f"module 1 {GREENPROF} {build_id[1] if build_id else '-'} 0 0 0"]
        for stack in range(1, 1000):
            frames = " ".join(f"1:{start + pick.randrange(size):x}" for _ in range(5))
            script.append(f"stack {stack} 0 {frames}\nsample {stack} 1000000 1 1 {stack} 0")
        capture = self.make("own", "\n".join(script) + "\n")
        few, many = (run("export", capture, "-f", "folded", preexec_fn=lambda: os.sched_setaffinity(0, those))
                     for those in ({min(processors)}, processors))
        self.assertEqual((few.returncode, few.stderr), (many.returncode, many.stderr))
        self.assertEqual(few.stdout, many.stdout)
        self.assertGreater(len(set(re.findall(r"\bgp_\w+", many.stdout))), 300)

    def test_sorted_and_restricted(self):
        for sort in (["time"], ["calls"], ["name", "line"], ["pcalls", "filename"], ["stdname"]):
            keys = ",".join(sort)
            self.assertEqual(self.tables("-s", keys, "-n", "0"), self.pstats(sort, "print_stats"))
            self.assertEqual(self.tables("-s", keys, "-n", "3"), self.pstats(sort, "print_stats", 3))
            self.assertEqual(self.tables("-s", keys, "-r", ".5", "-r", "0x[12]", "-n", "3"), self.pstats(sort, "print_stats", .5, "0x[12]", 3))
            self.assertEqual(self.tables("-s", keys, "-r", "lib", "-r", "2"), self.pstats(sort, "print_stats", "lib", 2))

    def test_callers_and_callees(self):
        for what in ("callers", "callees"):
            for restriction in ("0x20", "switching", ".25", "3"):
                value = float(restriction) if "." in restriction else int(restriction) if restriction.isdigit() else restriction
                self.assertEqual(self.tables("--" + what, restriction), self.pstats(["time"], "print_" + what, value))
            self.assertEqual(self.tables("--" + what, "x[12]0", "-r", "app", "-n", "1", "-s", "cumtime"),
                             self.pstats(["cumtime"], "print_" + what, "x[12]0", "app", 1))
        both = self.tables("--callers", "x20", "--callees", "x30")
        self.assertEqual(both, self.tables("--callers", "x20") + self.tables("--callees", "x30"))

    def test_callers_add_up(self):
        """What a function has without a caller is a line, too: times and samples of its callers are its own."""
        script = ("module 1 /a 01 0x1000 0x9000 0x0\nthread 1 10 1 0 main\ncoro 1 0 - 0 0 1 1 -\nstack 1 0 1:1010\nstack 2 0 1:1010 1:1020\n"
                  "stack 3 0 1:1030\nsample 1000000 3000000 1 1 1 0\nsample 2000000 2000000 1 1 2 0\nsample 3000000 1000000 1 1 3 0\n"
                  "ledger 1 0 6000000 1 3000000\ncounters 3000000 6000000 0 3 3\nend 4000000 0\n")
        text = self.succeed("report", self.make("rest", script), "--callers", "a.0x1010")
        self.assertRegex(text, r"<- +1 +0\.002 +0\.002  \S+0x1020\)\n +1 +0\.003 +0\.003  \[no caller\]\n")
        self.assertNotIn("[no caller]", self.succeed("report", self.make("rest", script), "--callers", "a.0x10[23]0"))
        self.assertNotIn("[no caller]", self.succeed("report", self.make("rest", script), "--callees", "a.0x"))

    def test_columns_sort_coroutines(self):
        """By --sort: what the ledger has of each, in columns of its own."""
        script = "thread 1 10 1 0 main\ncoro 1 0 - 0 0 1 1 -\n" + "".join(
            f"coro {i} 1 - 0 0 2 0 c{i}\nledger {i} 0 {cpu}000000 {i} 9000000 {cpu}000000 0 {ready}000000 {parked}000000 {waiting}000000 {longest}000000\n"
            for i, cpu, ready, parked, waiting, longest in ((2, 1, 30, 5, 0, 1), (3, 2, 10, 50, 0, 9), (4, 3, 0, 0, 70, 2), (5, 4, 20, 20, 0, 4)))
        capture = self.make("columns", script + "counters 9000000 10000000 0 0 0\nend 9000000 0\n")
        rows = lambda *arguments: [line.split() for line in self.succeed("report", capture, "--by", "coroutine", "--clock", "wall", *arguments)
                                   .partition("longest  switches")[2].splitlines()[1:] if line.strip()]
        order = lambda key: [row[-1] for row in rows("-s", key)]
        self.assertEqual(order("ready"), ["c2", "c5", "c3", "c4"])
        self.assertEqual(order("parked"), ["c3", "c5", "c2", "c4"])
        self.assertEqual(order("longest"), ["c3", "c5", "c4", "c2"])
        self.assertEqual(order("cpu"), ["c5", "c4", "c3", "c2"])
        self.assertEqual(order("waiting")[0], "c4")
        self.assertEqual(order("wall"), ["c4", "c3", "c5", "c2"])
        self.assertEqual(order("switches"), ["c5", "c4", "c3", "c2"])
        self.assertEqual(order("pa"), order("parked"))
        # Ready or parked, nothing says which: neither is 0.
        self.assertEqual([row[4:7] for row in rows("-s", "name")], [["0.030", "0.005", "0.000"], ["0.010", "0.050", "0.000"],
                                                                    ["-", "-", "0.070"], ["0.020", "0.020", "0.000"]])
        self.expect(2, "unknown or ambiguous key .known: wall cpu", "report", capture, "--by", "coroutine", "-s", "nosuch")
        self.expect(2, "unknown or ambiguous key .known: calls", "report", capture, "-s", "ready")
        self.assertIn("Ordered by: sampled CPU time; time ready is not known of this part",
                      self.succeed("report", self.capture, "--by", "coroutine", "--to", "0.0025", "-s", "ready"))

    def test_traces_have_the_names_of_their_coroutines(self):
        """Where one coroutine worked for a trace alone, its name stands behind the trace's."""
        trace = lambda i: f"{i:032x}"
        script = ("thread 1 10 1 0 main\ncoro 1 0 - 0 0 1 1 -\ntrace 1 " + trace(1) + "\ntrace 2 " + trace(2) + "\ncoro 2 1 - 0 0 2 0 /search\n"
                  "coro 3 1 - 0 0 2 0 pooled\nledger 2 1 1000000 1 9000000\nledger 3 1 1000000 1 9000000\nledger 3 2 1000000 1 9000000\n"
                  "counters 9000000 3000000 0 0 0\nend 9000000 0\n")
        text = self.succeed("report", self.make("named", script), "--by", "trace")
        self.assertRegex(text, f"(?m) 2 {trace(1)} /search$")
        self.assertRegex(text, f"(?m) 1 {trace(2)}$")

    def test_groups_are_restricted_by_name(self):
        text = self.succeed("report", self.capture, "--by", "coroutine", "-r", "work|main", "-n", "1")
        self.assertIn("List reduced from 3 to 2 due to restriction <'work|main'>", text)
        self.assertIn("List reduced from 2 to 1 due to restriction <1>", text)
        self.assertEqual(text.count("server+0x40"), 0)
        self.assertEqual(self.succeed("report", self.capture, "--by", "trace", "-r", "4bf9").count("no trace"), 0)

    def test_bad_values(self):
        for option in ("-r", "--callers", "--callees"):
            self.expect(2, rf"{option} '\(': Unmatched", "report", self.capture, option, "(")
            self.expect(2, rf"{option} 1\.5: a fraction is from 0 to 1", "report", self.capture, option, "1.5")
        for by in ("coroutine", "trace"):
            self.expect(2, f"not --by {by}", "report", self.capture, "--callers", "x", "--by", by)


if __name__ == "__main__":
    main()
