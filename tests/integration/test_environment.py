# SPDX-License-Identifier: MIT
"""What the library reads from its environment: listed, checked before the program starts, and not obeyed by a program
that runs with more rights than its caller."""
import os
import re
import shutil
import signal
import stat
import subprocess
import unittest

import check

OTHER_USER = 65534


class Environment(check.Case):
    def run_with(self, *command, **environment):
        return check.greenprof("run", "-o", os.path.join(self.directory, "x.greenprof"), "--", *command,
                               env={**os.environ, **environment})

    def test_what_is_listed_is_read(self):
        listed = set(re.findall(r"^  (GREENPROF_\w+)=", check.greenprof("help", "environment").stdout.decode(), re.M))
        with open(os.path.join(check.LIBRARIES, "libgreenprof-core.so.0"), "rb") as library:
            read = {name.decode() for name in re.findall(rb"\0(GREENPROF_\w+)(?=\0)", library.read())}
        self.assertEqual(listed, read)
        self.assertGreater(len(listed), 15)

    def test_captures_are_of_their_user_alone(self):
        run = self.profile(["exits", "return", 0.05], healthy=False)
        self.assertEqual(stat.S_IMODE(os.stat(run.output).st_mode), 0o600)

    def test_links_with_a_made_name_are_not_followed(self):
        victim = os.path.join(self.directory, "victim")
        with open(victim, "w") as file:
            file.write("secret")
        library = os.path.join(check.LIBRARIES, "libgreenprof-core.so.0")
        done = subprocess.run(["sh", "-c", 'ln -s victim $$.link; export GREENPROF_OUTPUT=$PWD/%p.$1 LD_PRELOAD=$0; exec true',
                               library, "link"], cwd=self.directory)
        self.assertEqual(done.returncode, 0)
        with open(victim) as file:
            self.assertEqual(file.read(), "secret")
        subprocess.run(["sh", "-c", 'export GREENPROF_OUTPUT=$PWD/%p.file LD_PRELOAD=$0; exec true', library], cwd=self.directory)
        self.assertEqual(len([name for name in os.listdir(self.directory) if name.endswith(".file")]), 1)

    def test_values_that_are_not_valid(self):
        for name, value, said in (("HOG_MS", "abc", "must be a number from 0.001 to 1000000"), ("HOG_MS", "0", "must be"),
                                  ("DEPTH", "1", "must be a number from 2 to 512"), ("DEPTH", "12x", "must be"),
                                  ("CLOCK", "sun", "must be cpu or wall"), ("MODE", "exactly", "must be sample or exact"),
                                  ("ENGINE", "steam", "must be perf, cpu or monotonic"), ("POLL", "no", "must be auto or none")):
            done = self.run_with("echo", "ran", **{"GREENPROF_" + name: value})
            self.assertEqual((done.returncode, done.stdout), (1, b""), name)
            self.assertRegex(done.stderr.decode(), rf"^greenprof: GREENPROF_{name}: {value}: {said}[^\n]*\n$")
        self.assertEqual(os.listdir(self.directory), [])
        self.assertEqual(self.run_with("echo", "ran", GREENPROF_HOG_MS="2.5", GREENPROF_CLOCK="").returncode, 0)


@unittest.skipUnless(os.geteuid() == 0, "only root can make a program that is set-user-ID root")
class MoreRights(check.Case):
    def start(self, program, user, **paths):
        environment = {"GREENPROF_OUTPUT": paths["output"], "GREENPROF_CENSUS": paths["census"],
                       "XDG_RUNTIME_DIR": self.directory, "GREENPROF_FREQUENCY": "1000"}
        done = subprocess.run([program], env=environment, user=user, group=user, extra_groups=[], capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(done.stdout, 16) >> signal.SIGSEGV - 1 & 1  # is it handled?

    def test_environment_is_not_obeyed(self):
        os.chmod(self.directory, 0o755)
        program = shutil.copy(check.program("secure"), self.directory)
        os.chmod(program, 0o4755)
        if os.statvfs(program).f_flag & os.ST_NOSUID:
            self.skipTest("set-user-ID has no effect on the file system of temporary files")
        closed = os.path.join(self.directory, "closed")
        os.mkdir(closed, 0o700)
        victim = os.path.join(closed, "victim")
        with open(victim, "w") as file:
            file.write("secret")
        before = sorted(os.listdir(self.directory))
        self.assertFalse(self.start(program, OTHER_USER, output=victim, census=os.path.join(closed, "census")))
        with open(victim) as file:
            self.assertEqual(file.read(), "secret")
        self.assertFalse(self.start(program, OTHER_USER, output=os.path.join(closed, "new"), census="census"))
        self.assertEqual((os.listdir(closed), sorted(os.listdir(self.directory))), (["victim"], before))
        # The same program obeys its own user.
        self.assertTrue(self.start(program, 0, output=os.path.join(closed, "new"), census="census"))
        self.assertIn("new", os.listdir(closed))


if __name__ == "__main__":
    check.main()
