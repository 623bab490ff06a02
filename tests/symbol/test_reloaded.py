# SPDX-License-Identifier: MIT
"""Names of modules that are gone when they are asked for, in a capture and in the process's own dump.

usage: test_reloaded.py GREENPROF RELOADED RELOADED_DUMP RELOADED_DUMP_FIXED PLUGINS
"""
import os, pstats, subprocess, sys, tempfile, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import measured  # noqa: E402

GREENPROF, RELOADED, RELOADED_DUMP, RELOADED_DUMP_FIXED, PLUGINS = sys.argv[1:6]


class Reloaded(measured.Case):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def run_it(self, *command):
        """What the program did, in seconds of CPU time."""
        out = subprocess.run([*command], text=True, check=True, capture_output=True).stdout
        truth = {name: float(value) for name, value in (line.split() for line in out.splitlines())}
        if truth.pop("same_place") != 1:
            self.skipTest("the second plugin was loaded to another place")
        return truth

    def export(self, capture):
        out = self.path("out.prof")
        subprocess.run([GREENPROF, "export", capture, "--format", "pstats", "-o", out], check=True, capture_output=True)
        return pstats.Stats(out).stats

    def check(self, rows, truth, own="own_work", clock="clock_work"):
        """Each function has its time (a quarter of it and 20 ms of chance), and only in its own module."""
        names = {"own_work": own, "clock_work": clock}
        for name, seconds in truth.items():
            found = sum(row[3] for key, row in rows.items() if key[2] == names.get(name, name))
            if names.get(name, name) is not None:
                self.near(name, found, seconds, 0.25, 0.02)
        vdso = [key for key in rows if key[0] == "[vdso]"]
        self.assertTrue(any("clock_gettime" in key[2] for key in vdso), vdso)
        self.assertTrue(all("clock_gettime" in key[2] or key[2].startswith("[vdso]+0x") for key in vdso), vdso) # Linux 6.18: parts without names
        spent = sum(row[2] for row in rows.values())
        unnamed = sum(row[2] for key, row in rows.items() if key[0] != "[vdso]" and "+0x" in key[2] and own is not None)
        self.at_most(f"without a name: {[key for key in rows if '+0x' in key[2]]}", unnamed, 0.05 * spent)

    def test_own_dump(self):
        for program in (RELOADED_DUMP, RELOADED_DUMP_FIXED):  # at a place of the loader's choice; at a fixed one
            with self.subTest(os.path.basename(program)):
                truth = self.run_it(program, PLUGINS, self.path("own.prof"))
                self.check(pstats.Stats(self.path("own.prof")).stats, truth)

    def test_capture(self):
        truth = self.run_it(GREENPROF, "run", "--quiet", "-F", "1000", "-o", self.path("it.greenprof"), "--", RELOADED, PLUGINS)
        self.check(self.export(self.path("it.greenprof")), truth)

    def test_capture_of_a_stripped_program(self):
        stripped = self.path("stripped")
        subprocess.run(["strip", "-o", stripped, RELOADED], check=True)
        truth = self.run_it(GREENPROF, "run", "--quiet", "-F", "1000", "-o", self.path("it.greenprof"), "--", stripped, PLUGINS)
        rows = self.export(self.path("it.greenprof"))
        self.check(rows, truth, own=None, clock=None)
        own = [key for key in rows if key[0] == stripped]
        self.assertTrue(own and all(key[2].startswith("stripped+0x") or key[2].endswith("@plt") for key in own), own)  # no neighbour's name

    def test_a_module_that_was_replaced(self):
        """Another build lies where the module was: no names are better than its names."""
        stand_in = self.path("plugins")
        os.mkdir(stand_in)
        for name in ("work_plugin_even", "work_plugin_odd"):
            subprocess.run(["cp", os.path.join(PLUGINS, name + ".so"), stand_in], check=True)
        truth = self.run_it(GREENPROF, "run", "--quiet", "-F", "1000", "-o", self.path("it.greenprof"), "--", RELOADED, stand_in)
        os.replace(os.path.join(stand_in, "work_plugin_odd.so"), os.path.join(stand_in, "work_plugin_even.so"))
        rows = self.export(self.path("it.greenprof"))
        even, own_names = truth["work_plugin_even"], [key[2] for key in rows]
        lost = sum(row[2] for key, row in rows.items() if key[2].startswith("work_plugin_even.so+0x"))
        self.near("lost", lost, even, 0.25, 0.02)
        self.assertNotIn("work_plugin_odd", own_names)  # its file lies there now, and is asked for nowhere else


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
