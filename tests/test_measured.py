# SPDX-License-Identifier: MIT
"""measured.py: which failures run a test again, and what is written down of it."""
import contextlib
import io
import os
import tempfile
import unittest
import unittest.mock

import measured


def outcome(*steps):
    """Run a test that does one of `steps` at each attempt. Returns attempts, whether it passed, and the log."""
    runs = []

    class Live(measured.Case):
        def test(self):
            runs.append(None)
            steps[min(len(runs), len(steps)) - 1](self)

    with tempfile.NamedTemporaryFile("r") as log:
        os.environ["MEASURED_LOG"] = log.name
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                result = Live("test").run()
        finally:
            del os.environ["MEASURED_LOG"]
        return len(runs), result is None or result.wasSuccessful(), [line.split()[0] for line in log]


def off(test):
    test.near("figure", 1.2, 1.0, 0.1)


def fine(test):
    test.near("figure", 1.05, 1.0, 0.1)


def off_in_part_and_wrong_in_another(test):
    with test.subTest("figure"):
        off(test)
    with test.subTest("owner"):
        test.assertEqual("alpha", "beta")


class Measured(unittest.TestCase):
    def test_a_figure_out_of_tolerance_runs_again(self):
        self.assertEqual(outcome(off, fine), (2, True, ["again", "measured"]))
        self.assertEqual(outcome(off), (3, False, ["again", "again", "measured"]))
        self.assertEqual(outcome(fine), (1, True, ["measured"]))

    def test_bars_on_one_side(self):
        self.assertEqual(outcome(lambda test: test.at_least("figure", 1, 2), fine)[:2], (2, True))
        self.assertEqual(outcome(lambda test: test.at_most("figure", 2, 1), fine)[:2], (2, True))
        self.assertEqual(outcome(lambda test: test.at_least("figure", 1, 2, 1), fine)[:2], (1, True))
        self.assertEqual(outcome(lambda test: test.at_most("figure", 2, 1, 1), fine)[:2], (1, True))

    def test_nothing_else_does(self):
        for step in (lambda test: test.assertEqual("alpha", "beta"), lambda test: {}["missing"], lambda test: float("none"),
                     lambda test: measured.check_status(unittest.mock.Mock(returncode=1)), off_in_part_and_wrong_in_another):
            self.assertEqual(outcome(step, fine)[:2], (1, False))

    def test_a_second_attempt_forgives_no_more(self):
        self.assertEqual(outcome(off, lambda test: {}["missing"], fine)[:2], (2, False))


if __name__ == "__main__":
    unittest.main()
