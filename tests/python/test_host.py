# SPDX-License-Identifier: MIT
"""Programs that use what greenprof uses: SIGPROF, profiling timers, faulthandler, alternate signal stacks."""
import json
import os
import subprocess
import tempfile
import unittest

import support
import measured

support.require_package()


def run(program, *arguments, before=()):
    return subprocess.run([*before, support.PYTHON, "-B", os.path.join(support.PROGRAMS, program), *arguments],
                          capture_output=True, text=True, timeout=support.LIMIT_SECONDS)


def each_way(capture):
    """Which handler comes first, in a program that imports greenprof; under `greenprof run` it is greenprof's."""
    return (("before", ()), ("after", ()), ("after", (support.GREENPROF, "run", "--quiet", "-F", "5000", "-o", capture, "--")))


class Finalization(unittest.TestCase):
    def test_threads_that_compute_while_the_interpreter_ends(self):
        """-X dev fills freed memory: a thread state that is read after it was freed is a crash."""
        with tempfile.TemporaryDirectory() as directory:
            for attempt in range(3):
                done = subprocess.run([support.GREENPROF, "run", "--quiet", "-F", "5000", "-o", os.path.join(directory, "c.greenprof"), "--",
                                       support.PYTHON, "-B", "-X", "dev", os.path.join(support.PROGRAMS, "finalization.py")],
                                      capture_output=True, text=True, timeout=support.LIMIT_SECONDS)
                self.assertEqual((done.returncode, done.stdout), (0, "over\n"), done.stderr)


class Signals(measured.Case):
    def each(self, how):
        with tempfile.TemporaryDirectory() as directory:
            capture = os.path.join(directory, "c.greenprof")
            for when, before in each_way(capture):
                print(how, when, *before[:2], flush=True)
                done = run("host_signal.py", how, when, before=before)
                measured.check_status(done)
                yield json.loads(done.stdout), support.command("report", capture) if before else None

    def check_times(self, seen):
        self.at_least("total", seen["total"], 0.3)
        for name in ("before", "after"):  # 0.15 s each; a theft that is not reported is noticed within 50 ms
            self.near(name, seen[name], 0.15, 0, 0.06)

    def check_both_work(self, how, counted):
        for seen, report in self.each(how):
            self.check_times(seen)
            self.at_least(counted, seen[counted], 4)
            self.assertGreaterEqual(seen["moved"], 1)
            if report is not None:
                self.assertIn("changes of the sampling signal: the program handles or ignores it", report)

    def test_a_handler_in_python(self):
        self.check_both_work("handler", "hits")

    def test_faulthandler_dumps_at_the_signal(self):
        self.check_both_work("faulthandler", "dumps")

    def test_faulthandler_calls_a_handler_in_python(self):
        self.check_both_work("chained", "hits")

    def test_a_handler_that_nothing_tells_of(self):
        self.check_both_work("native", "hits")

    def test_ignoring_and_resetting_is_believed_and_kills_nobody(self):
        for how, handler in (("ignored", "SIG_IGN"), ("reset", "SIG_DFL"), ("timer", "SIG_DFL")):
            for seen, _ in self.each(how):
                self.check_times(seen)
                self.assertIn(handler, seen["handler"])
                self.assertEqual(seen["moved"], how == "ignored")  # executed programs are to ignore it

    def test_who_takes_every_signal_is_told(self):
        done = run("host_signal.py", "every", "before")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("the program handles every signal that could be used for sampling", done.stderr)
        with tempfile.TemporaryDirectory() as directory:
            capture = os.path.join(directory, "c.greenprof")
            done = run("host_signal.py", "every", "after", before=(support.GREENPROF, "run", "--quiet", "-o", capture, "--"))
            measured.check_status(done)
            self.assertIn("RuntimeWarning: sampling ended early", done.stderr)
            self.assertIn("sampling ended before the program", support.command("report", capture))
        seen = json.loads(done.stdout)
        self.at_least("hits", seen["hits"], 4)
        self.near("before", seen["before"], 0.15, 0, 0.02)
        self.near("total", seen["total"], 0.15, 0, 0.02)  # nothing unseen is claimed


class Profilers(measured.Case):
    def test_others_have_what_they_have_alone(self):
        for first in ("greenprof", "other"):
            with self.subTest(first=first):
                done = run("host_profilers.py", first)
                measured.check_status(done)
                for name in ("cprofile", "setprofile", "settrace", "faulthandler_and_timer"):
                    self.assertIn(f"with_{name}\n", done.stdout)


class Faults(measured.Case):
    def each(self, how):
        with tempfile.TemporaryDirectory() as directory:
            for when, before in each_way(os.path.join(directory, "c.greenprof")):
                print(how, when, *before[:2], flush=True)
                yield run("host_faults.py", how, when, before=before)

    def test_a_crash_is_still_told(self):
        for done in self.each("crash"):
            self.assertIn(done.returncode, (-11, 139), done.stderr)
            self.assertIn("Fatal Python error: Segmentation fault", done.stderr)
            self.assertIn('host_faults.py", line', done.stderr)

    def test_so_is_an_overflow_of_the_native_stack(self):
        for done in self.each("overflow"):
            self.assertIn(done.returncode, (-11, 139), done.stderr)
            self.assertIn("Fatal Python error: Segmentation fault", done.stderr)

    def test_tracebacks_later(self):
        for done in self.each("later"):
            self.assertEqual((done.returncode, done.stdout), (0, "as expected\n"), done.stderr)
            self.at_least("tracebacks", done.stderr.count("Timeout (0:00:00.050000)!"), 2)

    def test_disabled_again(self):
        for done in self.each("gone"):
            self.assertEqual((done.returncode, done.stdout), (0, "as expected\n"), done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
