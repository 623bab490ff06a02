# SPDX-License-Identifier: MIT
"""Figures of the benchmarks' outputs, and when one is called worse."""
import contextlib
import io
import itertools
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/bench"))
from harness import figures, rounds, table  # noqa: E402

PYTHON = """
ns of a greenlet switch (load 1.0)
  GREENPROF_GREENLETS=see      bare 231, resting +5, sampling -2

CPU time, x of the program alone (load 1.0)
  mixed      empty handler            1.041 (1.030-1.052)
  mixed      greenprof 1000           1.062 (1.050-1.071)   1.020 of empty handler
  fib        cProfile                 fails
"""
SYMBOLS = """/usr/bin/python3.11: 20000 addresses
    us of CPU an address: greenprof 2.70, addr2line 32.50 (12.1 times)
    agrees with addr2line: 100.000%
"""
WALKERS = """depth  walker           frames    ns/walk  ns/frame    of fp   of unw_backtrace
   10  greenprof            12        310     25.80     1.20x     0.08x
   10  cold row: median 900 ns, 90% 2100 ns
"""


class Outputs(unittest.TestCase):
    def printed(self, *args, **kwargs):
        """What table.figure() prints, read again."""
        with contextlib.redirect_stdout(io.StringIO()) as out:
            table.figure(*args, **kwargs)
        return list(figures.of_table(out.getvalue()))

    def test_a_figure_without_its_error_ratio_and_bound(self):
        printed = self.printed("ucontext, run -F 1000", rounds.Estimate(-1.25, 0.5), "ns", ratio=1.5,
                               bound=(1.0, "must hold <= 1 ns"))
        self.assertEqual(printed, [("ucontext, run -F 1000", "ns", -1.25)])

    def test_labels_with_numbers_and_longer_than_their_column(self):
        label = "50 new frames every 50 us, 1000 Hz: empty handler"
        self.assertEqual(self.printed(label, rounds.Estimate(60, 2), "us"), [(label, "us", 60)])
        label = "prof_coro_create in place of another, a million live"
        self.assertEqual(self.printed(label, rounds.Estimate(2900), "ns", digits=1), [(label, "ns", 2900)])

    def test_what_stands_in_notes(self):
        printed = self.printed("start", rounds.Estimate(20, 1), "us",
                               note="(994 signals/s, 5.5 us each inside the handler)")
        self.assertEqual(printed, [("start", "us", 20), ("start, each inside the handler", "us", 5.5)])
        printed = self.printed("start", rounds.Estimate(20), "us", note="(CPU 12.5 us)")
        self.assertEqual(printed, [("start", "us", 20), ("start, CPU", "us", 12.5)])

    def test_lines(self):
        text = "  export          1.71 s,   1.65 s of CPU,  107 MiB at most\n  memory per coroutine: 278 bytes\n"
        self.assertEqual(list(figures.of_table(text)), [
            ("export", "s", 1.71), ("export", "s of CPU", 1.65), ("export, at most", "MiB", 107),
            ("memory per coroutine", "bytes", 278)])
        self.assertEqual(list(figures.of_table("depth 5: the whole handler 812 ns (median of 20000 samples)\n")),
                         [("depth 5: the whole handler", "ns", 812)])

    def test_an_indented_label_belongs_to_the_one_above(self):
        text = "  resting      9.0 ns\n      beyond bare   1.0 ns\n  sampling     9.5 ns\n      beyond bare   1.5 ns\n"
        self.assertEqual([label for label, _, _ in figures.of_table(text)],
                         ["resting", "resting: beyond bare", "sampling", "sampling: beyond bare"])

    def test_headings_are_no_figures_and_labels_are_numbered(self):
        text = "machine: 2 x CPU\n== 8. ledger, 190 ns of work\n  empty hooks    1.0 ns\n  empty hooks    2.0 ns\n"
        self.assertEqual(list(figures.of_table(text)), [("empty hooks", "ns", 1), ("empty hooks (2)", "ns", 2)])

    def test_other_programs(self):
        self.assertEqual(list(figures.of_python(PYTHON)), [
            ("GREENPROF_GREENLETS=see, bare", "ns", 231), ("GREENPROF_GREENLETS=see, resting", "ns", 5),
            ("GREENPROF_GREENLETS=see, sampling", "ns", -2), ("mixed, empty handler", "times", 1.041),
            ("mixed, greenprof 1000", "times", 1.062), ("mixed, greenprof 1000 beside empty handler", "times", 1.02)])
        self.assertEqual(figures.of_symbols(SYMBOLS), [("/usr/bin/python3.11", "us", 2.7)])
        self.assertEqual(figures.of_dumps("first\n300.0 200.0 100.0\n310.0 220.0 90.0\n500.0 210.0 110.0\n"), [
            ("warm dump, wall time", "us", 310), ("warm dump, CPU", "us", 210),
            ("the same file written plainly", "us", 100)])
        self.assertEqual(list(figures.of_walkers(WALKERS)), [("depth 10, greenprof", "ns", 310)])


class Judgement(unittest.TestCase):
    def test_chance_is_counted_right(self):
        before, values = [3, 5, 8], [1, 3.5, 4, 5.5, 7, 9]
        after = [4, 7, 9]
        exceeding = [sum(b > a for a in set(values) - set(chosen) for b in chosen)
                     for chosen in itertools.combinations(values, 3)]
        least = sum(b > a for a in before for b in after)
        expected = sum(count >= least for count in exceeding) / len(exceeding)
        self.assertAlmostEqual(figures.chance_of_being_higher(before, after), expected)
        self.assertGreater(figures.chance_of_being_higher([1] * 5, [1] * 5), 0.4)

    def test_worse_better_and_noise(self):
        before = [100, 101, 99, 102, 98]
        self.assertEqual(figures.judge("a", before, [x * 1.1 for x in before]).word, "WORSE")
        self.assertEqual(figures.judge("a", before, [x / 1.1 for x in before]).word, "better")
        self.assertEqual(figures.judge("faster than the script", before, [x / 1.1 for x in before]).word, "WORSE")
        self.assertEqual(figures.judge("a", before, [x * 1.01 for x in before]).word, "")  # two builds differ as much
        self.assertEqual(figures.judge("a", before, [110, 90, 130, 97, 120]).word, "")
        self.assertEqual(figures.judge("a", before[:4], [200] * 4).word, "")  # too few turns to tell

    def test_ratios_are_those_of_turns_and_none_about_zero(self):
        verdict = figures.judge("a", [1, 2, 4], [2, 2, 2])
        self.assertEqual((verdict.before, verdict.after, verdict.middle), (2, 2, 1))
        verdict = figures.judge("a", [-0.2, 0.1, 0, 0.1, -0.1], [0.5, 0.6, 0.4, 0.5, 0.7])
        self.assertEqual((verdict.middle, verdict.word), (None, "WORSE"))


if __name__ == "__main__":
    unittest.main()
