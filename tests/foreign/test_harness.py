# SPDX-License-Identifier: MIT
"""What the comparison of others' tests makes of programs of known truth: `greenprof` is a stand-in here."""
import os
import stat
import sys
import tempfile
import textwrap
import unittest

import harness


def unit(code, name="unit"):
    code = "import os, sys; beside = 'BESIDE' in os.environ\n" + textwrap.dedent(code)
    return harness.Unit(name, [sys.executable, "-c", code], harness.parse_results)


def tell(result, test):
    return f"open(os.environ['RESULTS'], 'a').write({result} + ' {test}\\n')"


class Comparison(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.lines = []
        self.state = os.path.join(self.folder.name, "state")
        self.greenprof = os.path.join(self.folder.name, "greenprof")
        # greenprof run -F HZ -o PATTERN -- COMMAND
        self.write_greenprof('[ -n "$NO_CAPTURE" ] || : >"$(dirname "$5")/1.greenprof"')

    def write_greenprof(self, action):
        with open(self.greenprof, "w") as file:
            file.write(f'#!/bin/sh\n{action}\nshift 6\nBESIDE=1 exec "$@"\n')
        os.chmod(self.greenprof, stat.S_IRWXU)

    def compare(self, *units, at_least=1):
        return harness.compare("suite", units, at_least, self.greenprof, [1000, 10000], self.lines.append)

    def said(self, text):
        return [line for line in self.lines if text in line]

    def test_no_difference(self):
        self.assertTrue(self.compare(unit(f"{tell(repr('ok'), 'one')}; {tell(repr('failed'), 'two')}"), at_least=2))
        self.assertIn("2 tests the same alone and at 1000 Hz and 10000 Hz but 0, 0 unstable alone, 2 captures",
                      self.lines[-1])

    def test_other_result(self):
        self.assertFalse(self.compare(unit(tell("('failed' if beside else 'ok')", "one"))))
        self.assertEqual(2, len(self.said("unit: one: ok -> failed")))
        self.assertTrue(self.said("greenprof run -F 10000 -o "))

    def test_missing_and_new_tests(self):
        code = f"if beside: {tell(repr('ok'), 'new')}\nelse: {tell(repr('ok'), 'old')}"
        self.assertFalse(self.compare(unit(code)))
        self.assertEqual(2, len(self.said("unit: old: ok -> missing")))
        self.assertEqual(2, len(self.said("unit: new: missing -> ok")))

    def test_other_status(self):
        self.assertFalse(self.compare(unit(f"{tell(repr('ok'), 'one')}; sys.exit(3 if beside else 0)")))
        self.assertEqual(2, len(self.said("unit: [status]: 0 -> 3")))

    def test_crash(self):
        code = f"{tell(repr('ok'), 'one')}\nif beside: os.abort()"
        self.assertFalse(self.compare(unit(code)))
        self.assertTrue(self.said("[status]: 0 -> "))

    def test_unstable_is_left_out(self):
        code = (f"open({self.state!r}, 'a').write('.'); turn = os.path.getsize({self.state!r})\n"
                f"{tell('str(turn)', 'turns')}; {tell(repr('ok'), 'one')}")
        self.assertTrue(self.compare(unit(code)))
        self.assertTrue(self.said("unstable alone  unit: turns"))
        self.assertIn("1 tests the same", self.lines[-1])

    def test_seldom_unstable_is_found_alone(self):
        # Twice "ok" alone; then another result each time, whatever runs it.
        code = (f"open({self.state!r}, 'a').write('.'); turn = os.path.getsize({self.state!r})\n"
                f"{tell('(chr(111) if turn < 3 else str(turn))', 'seldom')}; {tell(repr('ok'), 'one')}")
        self.assertTrue(self.compare(unit(code)))
        self.assertTrue(self.said("unstable alone  unit: seldom"))
        self.assertFalse(self.said("DIFFERENT"))

    def test_too_few_tests(self):
        self.assertFalse(self.compare(unit(tell(repr("ok"), "one")), at_least=2))
        self.assertTrue(self.said("FAILED: 1 tests ran, at least 2 should"))

    def test_no_capture_is_a_difference(self):
        self.write_greenprof(":")
        self.assertFalse(self.compare(unit(tell(repr("ok"), "one"))))
        self.assertTrue(self.said("[capture]: written -> missing"))

    def test_what_is_left_behind_is_ended(self):
        code = f"{tell(repr('ok'), 'one')}\nif os.fork() == 0:\n  import time\n  time.sleep(1000)"
        self.assertTrue(self.compare(unit(code)))


class Parsers(unittest.TestCase):
    def test_tap(self):
        self.assertEqual({"1 (1)": "ok", "2 (1)": "not ok", "2 (2)": "ok"},
                         harness.parse_tap("1..2\nok 1 - a\nnot ok 2\nok 2\nokay\n", None))

    def test_ruby(self):
        text = "[ 1/3] TestA#test_b = 0.00 s\n[ 2/3] TestA#test_c = 1.20 s\n\n  1) Failure:\nTestA#test_c [f.rb:3]:\n"
        self.assertEqual({"TestA#test_b": "ran", "TestA#test_c": "failure"}, harness.parse_ruby(text, None))


if __name__ == "__main__":
    unittest.main(verbosity=2)
