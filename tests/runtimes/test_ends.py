# SPDX-License-Identifier: MIT
"""Coroutines that are over are billed for their life and not for the time after it, whatever their runtime: each program
books the lives itself, and does nothing for IDLE seconds then."""
import os
import re
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import check

HERE = os.path.dirname(os.path.abspath(__file__))
IDLE, SLACK = 0.4, 0.1  # seconds: a busy machine comes between two clocks
DROPPED = 20000


class Ends(check.Case):
    def need(self, name):
        if not os.path.exists(name):
            self.skipTest(f"{os.path.basename(name)} was not built: its runtime is not installed")

    def run_it(self, command):
        self.done = self.profile(command, options=("--clock", "wall"))

    def walls(self, part):
        """Wall times of the coroutines with `part` in their names."""
        done = check.greenprof("report", self.done.output, "--by", "coroutine", "-n", "0", "--clock", "wall")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.decode().partition("longest  switches")[2].splitlines()[1:]
        return [float(line.split()[0]) for line in lines if part in line]

    def census(self):
        """Lines of the coroutines that live: id, state, seconds, name."""
        done = check.greenprof("coroutines", self.done.output, "-n", "0", "-m", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        return re.findall(r"^ +\d+  (?:waiting|new|ready|parked|running) .*  of \d+$", done.stdout.decode(), re.M)

    def check_lives(self):
        lives = [(words[0], float(words[1])) for words in self.done.truth.values["LIFE"]]
        self.assertNotEqual(lives, [])
        for name, seconds in lives:
            walls = self.walls(name)
            self.assertEqual(len(walls), 1, name)
            self.near(name, walls[0], seconds, 0.01, SLACK)

    def check_boost(self, what, program="ends"):
        self.need(check.program(program))
        self.run_it([program, what, IDLE])
        self.check_lives()
        names = ("a_fiber", "a_context", "jumper")
        self.at_most("in the census", len([line for line in self.census() if any(name in line for name in names)]), 0)

    def test_boost_fiber(self):
        self.check_boost("fiber")

    def test_boost_context(self):
        self.check_boost("context")

    def test_jump_fcontext(self):
        self.check_boost("jumps")

    def test_boost_context_linked(self):
        """Hooked at link time."""
        self.check_boost("context", "ends_static")

    def test_jump_fcontext_linked(self):
        self.check_boost("jumps", "ends_static")

    def test_ruby(self):
        ruby = shutil.which("ruby")
        if ruby is None:
            self.skipTest("there is no ruby")
        self.run_it([ruby, os.path.join(HERE, "ends.rb"), IDLE])
        self.check_lives()
        census = self.census()
        self.assertEqual(len([line for line in census if "ends.rb:5" in line]), 1, census)
        self.at_most("in the census", len(census), 1)

    def check_lua(self, program, most):
        """Of those that were dropped `most` may still be known."""
        self.run_it([program, os.path.join(HERE, "ends.lua"), DROPPED])
        self.assertIn("DONE", self.done.stdout)
        census = self.census()
        self.assertEqual(len([line for line in census if "ends.lua:6" in line]), 25)
        self.assertLessEqual(len([line for line in census if "ends.lua:3" in line]), most)

    def test_lua_shared(self):
        self.need(check.program("lua_script"))
        self.check_lua("lua_script", 0)

    def test_lua_linked(self):
        """Hooked at link time: they are looked at when others are made, four for each."""
        self.need(check.program("lua_script_static"))
        self.check_lua("lua_script_static", DROPPED // 100)

    def check_patched(self, name, most=0):
        lua = shutil.which(name)
        if lua is None:
            self.skipTest(f"there is no {name}")
        self.check_lua(lua, most)

    def test_lua_patched(self):
        self.check_patched("lua5.4")

    def test_lua_53_patched(self):
        self.check_patched("lua5.3")

    def test_lua_51_patched(self):
        """What the C library takes back whole may look as it did: until it is used again."""
        self.check_patched("lua5.1", DROPPED // 100)


if __name__ == "__main__":
    unittest.main()
