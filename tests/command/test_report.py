# SPDX-License-Identifier: MIT
"""The tables of `report`: restrictions, callers and callees, beside Python's pstats.

usage: test_report.py GREENPROF MAKE_CAPTURE RECORDER.so WORK-DIRECTORY
"""
import io, pstats, unittest

import pstats_case
from support import Command, SCRIPT, main


class Tables(Command):
    def setUp(self):
        super().setUp()
        self.capture = self.make("case.greenprof", pstats_case.script())
        self.prof = self.path("case.prof")
        self.succeed("export", self.capture, "-f", "pstats", "-o", self.prof)

    def tables(self, *arguments):
        """What comes behind the header: from "Ordered by" on, its title line apart."""
        text = self.succeed("report", self.capture, *arguments)
        return text[text.index("   Ordered by"):]

    def pstats(self, sort, method, *restrictions):
        out = io.StringIO()
        stats = pstats.Stats(self.prof, stream=out)
        del stats.stats[("~", 0, "[call counts are numbers of samples]")]
        stats.max_name_len = max(len(pstats.func_std_string(function)) for function in stats.stats)
        # As report does it, what is equal is ordered by time, then by name.
        getattr(stats.sort_stats(*sort, "cumulative", "stdname"), method)(*restrictions)
        text = out.getvalue()
        return text[text.index("   Ordered by"):].replace(", cumulative time, standard name\n", "\n", 1)

    def test_no_time_below_zero(self):
        """Accounts that a host has mixed up: what one coroutine gave back too much is not 585 years."""
        script = SCRIPT.replace("ledger 2 1 900000 2", "ledger 2 1 900000 2 4000000\nledger 2 1 0xfffffffffff00000 0")
        text = self.succeed("report", self.make("mixed.greenprof", script), "--by", "coroutine")
        self.assertNotIn("1844674407", text)
        self.assertRegex(text, r"(?m)^ +0\.000 .* 2 +2 ")

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
