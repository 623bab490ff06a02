# SPDX-License-Identifier: MIT
"""The interactive shell, beside Python's own on the .prof that is exported from the same capture.

usage: test_shell.py GREENPROF MAKE_CAPTURE RECORDER.so WORK-DIRECTORY
"""
import os, pty, re, select, subprocess, time, unittest

import pstats_case
from support import GREENPROF, SCRIPT, Command, main, run

# What differs by intention is left out: 'help' alone, messages about files that cannot be read.
COMMANDS = ["stats", "stats 5", "stats .2", "stats server", "stats 0x10 3", "stats .5 3 0x3", "stats 0", "stats 1000", "stats -3", "stats 1.0",
            "stats 1.5", "stats -.5", "stats 0.0", "stats (", "stats nothing", "stats [0-9] .25 2", "stats \\.so", "stats 1e-1 7",
            "callers", "callers 3", "callers 0x20$|0x20\\)", "callers .1", "callees", "callees 4", "callees server", "callees nothing",
            "sort", "sort nonsense", "sort time nonsense", "help stats", "help sort", "help callers", "help quit", "help EOF", "help read",
            "help add", "help reverse", "help strip", "help help", "help callees", "help nonsense", "?stats", "", "nonsense", "reverse",
            "stats 4", ""]
SORTS = ["calls", "ncalls", "cumtime", "cumulative", "filename", "line", "module", "name", "nfl", "pcalls", "stdname", "time", "tottime",
         "ca", "cumt", "fi", "m", "tot", "na", "s", "time name", "calls cumulative", "pcalls name line", "file nfl", "stdname time"]


class Shell(Command):
    def setUp(self):
        super().setUp()
        self.capture = self.make("case.greenprof", pstats_case.script())
        self.prof = self.path("case.prof")
        self.succeed("export", self.capture, "-f", "pstats", "-o", self.prof)
        stamp = os.stat(self.capture).st_mtime
        os.utime(self.prof, (stamp, stamp))

    def pstats(self, lines):
        """What `python3 -m pstats` prints, without prompts, greetings and the names of its file."""
        result = subprocess.run(["/usr/bin/python3", "-m", "pstats", self.prof], input="\n".join(lines) + "\nquit\n",
                                capture_output=True, text=True, check=True)
        text = result.stdout.replace(self.prof + "% ", "")
        text = text.removeprefix("Welcome to the profile statistics browser.\n").removesuffix("Goodbye.\n")
        return text.replace(self.prof, "FILE").splitlines()

    def greenprof(self, lines, *arguments):
        result = run("report", "-i", self.capture, *arguments, input="\n".join(lines) + "\nquit\n")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return [line for line in result.stdout.replace(self.capture, "FILE").splitlines()
                if not line.endswith("  [no caller]")]  # that pstats does not have

    def compare(self, *lines):
        self.maxDiff = None
        self.assertEqual(self.greenprof(lines), self.pstats(lines), lines)

    def test_every_command(self):
        self.assertGreater(len(self.pstats(COMMANDS)), 500)
        self.compare(*COMMANDS)

    def test_sorted(self):
        for sort in SORTS:
            self.compare(f"sort {sort}", "stats", "callers 3", "reverse", "stats 5", f"sort {sort}", "callees .3", "reverse", "stats")

    def test_stripped(self):
        # Two modules of the same name become one.
        self.compare("strip", "stats", "sort cumtime name", "stats", "callers", "callees", "strip", "stats 3")
        self.compare("sort name", "strip", "stats", "reverse", "sort calls name", "reverse", "stats")

    def test_read_and_add(self):
        lines = ["sort time name", "stats 3", "read", "stats 3", "strip", "add FILE", "stats", "callers 5", "sort cumtime name", "callees 3"]
        theirs = self.pstats([line.replace("FILE", self.prof) for line in lines])
        self.assertEqual(self.greenprof([line.replace("FILE", self.capture) for line in lines if line != "strip"]),
                         self.pstats([line.replace("FILE", self.prof) for line in lines if line != "strip"]))
        self.assertEqual(len([line for line in theirs if line.endswith("FILE")]), 4)

    def test_many_captures(self):
        for seed in range(2, 8):
            self.capture = self.make(f"{seed}.greenprof", pstats_case.script(seed, 10 * seed))
            self.prof = self.path(f"{seed}.prof")
            self.succeed("export", self.capture, "-f", "pstats", "-o", self.prof)
            stamp = os.stat(self.capture).st_mtime
            os.utime(self.prof, (stamp, stamp))
            self.compare("sort cumtime nfl", "stats", "callers", "callees", "strip", "sort time nfl", "stats", "callers", "callees")

    def test_one_clock(self):
        # What is added is of the clock of what is there, whatever it was made for.
        waits = SCRIPT.replace("ledger 1", "sample 3500000 7000000 3 1 3 2 1\nledger 1")
        other = self.make("other.greenprof", waits)
        lines = ["stats", "callers", f"add {other}", "stats", "callees"]
        plain = self.greenprof(lines)
        stamp = os.stat(other).st_mtime
        os.utime(self.made_for_the_wall_clock(other), (stamp, stamp))
        self.assertEqual(self.greenprof(lines), plain)
        self.assertNotEqual(self.greenprof(lines, "--clock", "wall"), plain)

    def totals(self, *lines):
        return [float(line.split()[-2]) for line in self.greenprof(lines) if "function calls" in line]

    def test_filters(self):
        part = lambda *arguments: float(re.search(r"samples in ([0-9.]+) seconds", self.succeed("report", self.capture, *arguments))[1])
        whole, three, traced = part(), part("--coroutine", "3"), part("--trace", "4bf92f3577b34da6a3ce929d0e0e4736")
        focused = part("--focus", "x10$", "--coroutine", "3")
        self.assertEqual(len({whole, three, traced, focused}), 4)
        self.assertEqual(self.totals("stats 1", "coroutine 3", "stats 1", "focus x10$", "stats 1", "focus", "stats 1", "coroutine", "stats 1",
                                     "trace 4bf92f3577b34da6a3ce929d0e0e4736", "stats 1", "filters none", "stats 1"),
                         [whole, three, focused, three, whole, traced, whole])
        self.assertEqual(self.greenprof(["coroutine 2 3", "focus server| b", "filters", "filters none", "filters"])[-2:],
                         ["coroutine 2 3", "focus server| b"])
        # Options of the command line are where it starts from; the order survives a filter.
        self.assertEqual(self.greenprof(["filters"], "--coroutine", "3"), ["coroutine 3"])
        self.assertIn("   Ordered by: call count", self.greenprof(["sort calls", "coroutine 3", "stats"]))

    def test_bad_filter_changes_nothing(self):
        for line, error in (("coroutine 77", "has no coroutine 77"), ("focus (", "Unmatched"), ("trace 1", "32 hex digits"),
                            ("from soon", "--from soon"), ("read nothing", "nothing: No such file"), ("add /bin/sh", "is not a greenprof capture")):
            result = run("report", "-i", self.capture, input=f"sort name\nstats 3\n{line}\nstats 3\nfilters\n")
            self.assertRegex(result.stderr, error)
            text = result.stdout.splitlines()
            half = len(text) // 2
            self.assertEqual(text[:half], text[half:2 * half], line) if "add" not in line else None

    def test_tables_and_export(self):
        lines = self.greenprof(["coroutines", "traces", "coroutines work", "header", "export folded " + self.path("out")])
        self.assertEqual(sum("cpu  sampled     +-  samples" in line for line in lines), 3)
        self.assertTrue(any("(pid 4242)" in line for line in lines))
        with open(self.path("out")) as file:
            self.assertEqual(file.read(), self.succeed("export", self.capture, "-f", "folded"))

    def test_without_a_file(self):
        result = run("report", "-i", input=f"stats\ncallers\nsort\nread\nread {self.capture}\nstats 1\n")
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stdout.count("No statistics object is loaded."), 3)
        self.assertIn("No statistics object is current -- cannot reload.", result.stdout)
        self.assertIn("function calls", result.stdout)
        self.assertEqual(run("report", "-i", self.path("none"), input="").returncode, 1)

    def test_options_that_are_commands(self):
        for arguments in (["-s", "name"], ["-r", "3"], ["--callers", "x"], ["--by", "trace"]):
            self.expect(2, "commands choose what is shown", "report", "-i", self.capture, *arguments)

    def test_help_names_every_command(self):
        text = "\n".join(self.greenprof(["help"]))
        for name in ("add", "callees", "callers", "EOF", "help", "quit", "read", "reverse", "sort", "stats", "strip", "trace", "focus",
                     "from", "export", "coroutines"):
            self.assertRegex(text, rf"(?m)^  {name} ")
            self.assertNotIn("*** No help", "\n".join(self.greenprof([f"help {name}"])))

    def test_terminal(self):
        """On a terminal: greeting, prompt, editing, history."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "dumb"
            os.execv(GREENPROF, [GREENPROF, "report", "-i", self.capture])
        seen = ""
        def read_until(text):
            nonlocal seen
            end = time.monotonic() + 20
            while text not in seen and time.monotonic() < end:
                if select.select([terminal], [], [], 1)[0]:
                    seen += os.read(terminal, 65536).decode()
            self.assertIn(text, seen)
            before, seen = seen.split(text, 1)
            return before
        self.assertIn("Welcome", read_until("case.greenprof% "))
        os.write(terminal, b"stats 22\x7f\n")  # one 2 is taken back
        read_until("restriction <2>")
        read_until("case.greenprof% ")
        os.write(terminal, b"\x10\n")  # Control-P: the line before
        read_until("restriction <2>")
        read_until("case.greenprof% ")
        os.write(terminal, b"quit\n")
        read_until("Goodbye.")
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        os.close(terminal)


if __name__ == "__main__":
    main()
