# SPDX-License-Identifier: MIT
"""What `greenprof run` cannot do it says, with nothing half-written; what hosts do with SIGPROF they go on doing."""
import os
import re
import stat
import subprocess

import check


class BadInput(check.Case):
    def refuse(self, *arguments, status=1, says=(), program=("/bin/true",)):
        """`run` with these arguments fails with this status, says so, and leaves the directory as it was."""
        before = self.listing()
        done = check.greenprof("run", *arguments, "--", *program, cwd=self.directory)
        message = done.stderr.decode()
        self.assertEqual(done.returncode, status, message)
        self.assertEqual(done.stdout, b"")
        self.assertTrue(message.startswith("greenprof"), message)
        for text in (says,) if isinstance(says, str) else says:
            self.assertIn(text, message)
        self.assertEqual(self.listing(), before)

    def listing(self):
        return sorted(os.path.join(directory, name) for directory, _, names in os.walk(self.directory)
                      for name in names)

    def test_frequencies(self):
        for text in ("0", "1000000000", "abc", "-5", "1e3", "20001", "", " 100", "100Hz", "99999999999999999999"):
            with self.subTest(text):
                self.refuse("-F", text, status=2, says=f"-F {text}:")

    def test_output_directories(self):
        self.refuse("-o", self.path("missing/x.greenprof"), says=("missing/x.greenprof", "No such file"))
        with open(self.path("file"), "w"):
            pass
        self.refuse("-o", self.path("file/x.greenprof"), says="Not a directory")
        self.refuse("-o", self.directory, says="Is a directory")
        self.refuse("-o", self.directory + "/", says="Is a directory")
        self.refuse("-o", "", says="-o")
        self.refuse("-o", self.path("x" * 300), says="File name too long")
        self.refuse("-o", self.path("y" * 5000), says="File name too long")

    def test_unwritable_directory(self):
        os.mkdir(self.path("locked"), 0o500)
        locked = self.path("locked")
        if os.geteuid() == 0:  # root may write anywhere but to a read-only place
            locked = "/proc/self"
            self.refuse("-o", locked + "/x.greenprof", says="/proc/self/x.greenprof")
        else:
            self.refuse("-o", locked + "/x.greenprof", says="Permission denied")

    def test_output_that_is_no_file(self):
        self.refuse("-o", "/dev/full", says="/dev/full")
        os.mkfifo(self.path("fifo"))
        self.refuse("-o", self.path("fifo"), says="fifo")
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path("fifo")).st_mode))

    def test_programs(self):
        output = self.path("x.greenprof")
        self.refuse("-o", output, program=("no-such-program-anywhere",), status=127, says="no-such-program-anywhere")
        self.refuse("-o", output, program=("./missing",), status=127, says="./missing")
        self.refuse("-o", output, program=(self.directory,), status=126, says=self.directory)
        self.refuse("-o", output, program=("/etc/passwd",), status=126, says="/etc/passwd")
        done = check.greenprof("run", "-o", output)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(self.listing(), [])

    def test_options(self):
        for options in (["--engine", "sundial"], ["--clock", "lunar"], ["--frobnicate"]):
            with self.subTest(options):
                self.refuse(*options, status=2)

    def test_full_disk(self):
        """A capture that cannot be written: the program runs to its end as if alone."""
        limit = ["/bin/sh", "-c", 'ulimit -f 8; trap "" XFSZ; exec "$@"', "sh", check.program("coroutines"), "1", "100"]
        run = self.profile(limit, hz=10000, healthy=False)
        self.assertIn("TOTAL", run.stdout)
        self.assertLessEqual(os.path.getsize(run.output), 8 * 1024)
        self.assertTrue(run.capture().whole)  # up to there every chunk is


class Static(check.Case):
    def test_static_program(self):
        check.need(os.path.exists(check.program("truth_static")), "no static libc to link a program with")
        BadInput.refuse(self, "-o", os.path.join(self.directory, "x"), program=(check.program("truth_static"),),
                        says="statically linked")

    listing = BadInput.listing


class Owners(check.Case):
    def check(self, how):
        alone = subprocess.run([check.program("owner"), how], capture_output=True, timeout=check.LIMIT_SECONDS)
        self.assertEqual(alone.returncode, 0)
        run = self.profile(["owner", how], healthy=False)
        print(f"{how}: ticks {check.Truth(alone.stdout.decode()).values['TICKS']} alone, "
              f"{run.truth.values['TICKS']} under greenprof")
        return run

    def test_own_handler(self):
        """The host gets its signal, and none of greenprof's, which goes on by another."""
        for how in ("handler", "signal", "late_handler"):
            with self.subTest(how):
                run = self.check(how)
                capture = run.capture()
                self.check_health(capture)
                self.assertEqual(capture.end, 0)
                self.near("work_own", run.folded().inclusive()["work_own"], run.truth.functions["work_own"], 0.03, 0.02)

    def test_no_signal_left(self):
        """The host handles every signal there is: the capture ends there, and says so."""
        capture = self.check("everything").capture()
        self.check_health(capture)
        self.assertEqual(capture.end, 1)
        self.at_most("sampled", capture.sampled_ns / 1e9, 0.2)

    def test_chosen_signal(self):
        for name in ("SIGSTKFLT", "RTMIN+5", "RTMAX", "27"):
            run = self.profile(["owner", "ignore"], environment={"GREENPROF_SIGNAL": name})
            self.near(name, run.folded().inclusive()["work_own"], run.truth.functions["work_own"], 0.03)

    def test_signal_that_cannot_be_chosen(self):
        """Nothing runs, and it is said why."""
        for name in ("SIGFOO", "KILL", "SIGSEGV", "TERM", "0", "-5", "65", "33", "27x", "RTMIN+99", "RTMIN-1", "RTMAX+1", "RTMIN+x"):
            done = check.greenprof("run", "-o", os.path.join(self.directory, "none.greenprof"), "--", "echo", "ran",
                                   env={**os.environ, "GREENPROF_SIGNAL": name})
            self.assertEqual((done.returncode, done.stdout), (1, b""), name)
            self.assertRegex(done.stderr.decode(), rf"^greenprof: GREENPROF_SIGNAL: {re.escape(name)}: [^\n]+\n$")
        done = check.greenprof("run", "--", "echo", "ran", env={**os.environ, "GREENPROF_ENGINE": "steam"}, cwd=self.directory)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertRegex(done.stderr.decode(), "^greenprof: GREENPROF_ENGINE: steam: [^\n]+\n$")
        self.assertEqual(os.listdir(self.directory), [])

    def test_ignored(self):
        run = self.check("ignore")
        self.near("work_own", run.folded().inclusive()["work_own"], run.truth.functions["work_own"], 0.03)

    def test_all_signals_reset(self):
        run = self.profile(["owner", "reset"])
        self.near("work_own", run.folded().inclusive()["work_own"], run.truth.functions["work_own"], 0.03)


if __name__ == "__main__":
    check.main()
