# SPDX-License-Identifier: MIT
"""The package greenprof: one profile a request, in place of cProfile and eventlet.green.profile."""
import os
import pstats
import random
import subprocess
import tempfile
import unittest

import support
import measured

support.require_package()
support.require("eventlet", "gevent")


class Requests(measured.Case):
    COUNT = 12

    def check(self, kind, before=()):
        with tempfile.TemporaryDirectory() as directory:
            for line in support.python("overlapping.py", kind, self.COUNT, directory, before=before).splitlines():
                number, truth, total = line.split()
                self.check_request(directory, number, float(truth), float(total))

    def check_request(self, directory, number, truth, total):
        # Its own work is known; the cost of spawning, sleeping and starting to profile is not: 3 % and 3 ms.
        self.at_least(f"total of {number}", total, 0.97 * truth, 0.003)
        self.at_most(f"total of {number}", total, 1.03 * truth, 0.003)
        stats = pstats.Stats(os.path.join(directory, f"{number}.prof"))
        self.assertLess(abs(stats.total_tt - total), 0.001)
        files = {key[0] for key in stats.stats if key[0].startswith("request_")}
        self.assertLessEqual(files, {f"request_{number}"})
        names = {key[2]: value for key, value in stats.stats.items()}
        own = names[f"own_{number}"][3]
        self.near(f"own_{number}", own, truth, 0.05)
        with open(os.path.join(directory, f"{number}.folded")) as file:
            folded = support.Folded(file.read())
        self.assertIn((f"child_{number}", f"own_{number}"), folded.pairs())
        self.assertIn((f"outer_{number}", f"own_{number}"), folded.pairs())

    def test_overlapping_eventlet_requests(self):
        self.check("eventlet")

    def test_overlapping_gevent_requests(self):
        self.check("gevent")

    def test_the_same_under_greenprof_run(self):
        with tempfile.TemporaryDirectory() as directory:
            self.check("eventlet", (support.GREENPROF, "run", "--quiet", "-o", os.path.join(directory, "c.greenprof"), "--"))

    def test_what_was_suspended_shows_its_outer_frames(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "suspended.folded")
            support.python("suspended.py", path)
            with open(path) as file:
                pairs = support.Folded(file.read()).pairs()
        self.assertIn(("outer_a", "mid"), pairs)
        self.assertIn(("outer_b", "mid"), pairs)


class Storm(measured.Case):
    """All at once and at random; a thread that is new may be the one that starts to sample again."""

    def check(self, kind):
        with tempfile.TemporaryDirectory() as directory:
            self.assertEqual(support.python("profiles_storm.py", kind, 4, random.randrange(1000000), directory), "end\n")

    def test_threads(self):
        self.check("threads")

    def test_eventlet(self):
        self.check("eventlet")

    def test_gevent(self):
        self.check("gevent")


class Interface(measured.Case):
    def test_takes_the_place_of_other_profilers(self):
        with tempfile.TemporaryDirectory() as directory:
            self.assertEqual(support.python("dropin.py", directory), "all as expected\n")

    def command(self, *arguments):
        return subprocess.run([support.PYTHON, "-m", "greenprof", *arguments], capture_output=True, text=True,
                              timeout=support.LIMIT_SECONDS)

    def test_a_new_thread_wakes_the_sampler_that_rests(self):
        self.assertEqual(support.python("late_thread.py"), "profiled\n")

    def test_command_runs_scripts_and_modules(self):
        lines = os.path.join(support.PROGRAMS, "lines.py")
        done = self.command(lines)
        measured.check_status(done)
        self.assertRegex(done.stdout, r"lines\.py:5\(leaf\)")
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "timeit.folded")
            done = self.command("-o", path, "-m", "timeit", "-n", "1000000", "sum((1, 2))")
            measured.check_status(done)
            with open(path) as file:
                folded = support.Folded(file.read())
        self.at_least("inner", folded.cumulative()["inner"], 0.5 * folded.total)
        self.assertNotIn("_run_module_as_main", folded.cumulative())

    def test_command_keeps_exit_status_and_refuses_nonsense(self):
        with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
            script.write("import sys; print(__file__); sys.exit(7)\n")
            script.flush()
            done = self.command("--exact", "--native", "-s", "tot", script.name)
            self.assertEqual(done.returncode, 7)
            self.assertEqual(done.stdout.splitlines()[0], script.name)
            self.assertIn("(<module>)", done.stdout)
            done = self.command("-o", "/dev/full", script.name)
            self.assertEqual((done.returncode, done.stderr), (7, "greenprof: /dev/full: No space left on device\n"))
        done = self.command("/nonexistent.py")
        self.assertEqual((done.returncode, done.stderr), (1, "greenprof: /nonexistent.py: No such file or directory\n"))
        done = self.command("-m", "no_such_module")
        self.assertEqual((done.returncode, done.stderr), (1, "greenprof: no_such_module: No module named no_such_module\n"))
        self.assertEqual(self.command("-F", "0", "x.py").returncode, 2)
        self.assertEqual(self.command().returncode, 2)


SUFFIXES = """
import os, sys, greenprof
os.chdir(sys.argv[1])
with greenprof.Profile() as profile:
    sum(i * i for i in range(300000))
for name in ("o.html", "O.HTM", "o.svg", "o.prof", "o", "o.12", "o.stats"):
    profile.dump(name)
    print(name, open(name, "rb").read(9).lower()[:1], sep="=")
for call in (lambda: profile.dump("x.png"), lambda: profile.finish("x.pdf"), lambda: greenprof.run("print('it ran')", "x.jpeg")):
    try:
        call()
    except ValueError as error:
        print(str(error).split(",")[0])
profile.dump("x.png", format="pstats")
print(*sorted(os.listdir(".")))
"""


class Files(unittest.TestCase):
    def test_suffixes(self):
        """A page is a page; a suffix that is no format's is refused, before anything else is done."""
        with tempfile.TemporaryDirectory() as directory:
            done = subprocess.run([support.PYTHON, "-c", SUFFIXES, directory], capture_output=True, text=True)
            self.assertEqual(done.stdout.splitlines(), [
                "o.html=b'<'", "O.HTM=b'<'", "o.svg=b'<'", "o.prof=b'{'", "o=b'{'", "o.12=b'{'", "o.stats=b'{'",
                "x.png: no format has this suffix", "x.pdf: no format has this suffix", "x.jpeg: no format has this suffix",
                "O.HTM o o.12 o.html o.prof o.stats o.svg x.png"], done.stderr)
            self.assertIn(b"<!doctype html", open(os.path.join(directory, "o.html"), "rb").read(200).lower())
            done = subprocess.run([support.PYTHON, "-m", "greenprof", "-o", os.path.join(directory, "y.png"), "-m", "this"],
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("y.png: no format has this suffix", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
