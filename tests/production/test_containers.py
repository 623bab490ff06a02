# SPDX-License-Identifier: MIT
"""Containers: namespaces of their own, a root that cannot be written, no privileges."""
import os
import shlex
import shutil
import subprocess
import unittest

from support import Case, example

BURN = "/usr/bin/python3 -c 'n = 0\nwhile n < 2000000: n += 1'"


def works(*command):
    return shutil.which(command[0]) is not None and subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0


class Containers(Case):
    def setUp(self):
        super().setUp()
        if not works("bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"):
            self.skipTest("no bubblewrap, or no namespaces to be had")

    def run_container(self, name):
        line = example("Containers", "bwrap ").strip()
        self.assertTrue(line.endswith(" PROGRAM"), line)
        self.run_shell(self.fill(line.removesuffix("PROGRAM"), NAME=name) + BURN)

    def test_captures_have_the_names(self):
        for name in ("one", "two"):
            self.run_container(name)
        names = sorted(os.path.basename(path).split("-")[0] for path in self.recorded())
        self.assertEqual(names, ["one", "two"])
        for path in self.recorded():
            self.assertIn("CPU time", self.report(path))

    def test_nothing_else_is_written(self):
        probe = self.fill(example("Containers", "bwrap ").strip().removesuffix("PROGRAM"), NAME="probe")
        # The same line with a program that tries: the root is not to be written, and it has no capability.
        script = "if touch /greenprof-was-here 2>/dev/null; then exit 1; fi; grep '^CapEff:\\s*0*$' /proc/self/status >/dev/null"
        self.run_shell(probe + "--cap-drop ALL sh -c " + shlex.quote(script))
        self.assertFalse(os.path.exists("/greenprof-was-here"))

    def test_first_process_of_a_namespace(self):
        """%p is the number in the namespace: the first process is 1, in each of them."""
        if not works("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "true"):
            self.skipTest("no user namespaces")
        variables = self.fill("LD_PRELOAD=libgreenprof-core.so.0 GREENPROF_OUTPUT=/var/tmp/captures/%p.greenprof")
        self.run_shell(f"unshare --user --map-root-user --pid --fork --mount-proc env {variables} {BURN}")
        self.assertEqual([os.path.basename(path) for path in self.recorded()], ["1.greenprof"])
        self.assertIn("CPU time", self.report(*self.recorded()))


if __name__ == "__main__":
    unittest.main(argv=["test_containers.py"])
