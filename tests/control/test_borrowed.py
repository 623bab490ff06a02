# SPDX-License-Identifier: MIT
"""What the thread that attach borrows, and the others, are in the middle of: nothing waits for it, and nothing is broken."""
import os
import subprocess
import unittest

from support import GREENPROF, Attaching, Bare

HELD, PLUGIN = os.environ["HELD"], os.environ["HELD_PLUGIN"]
TURNS = 50
ROUNDS = 5


class Held(Bare):
    def __init__(self, case, kind, *arguments):
        super().__init__(case, [HELD, kind, *arguments])

    def turns(self):
        return self.tell("", "turns")[0]

    def go(self):
        self.tell("go", "turns")

    def threads(self):
        return len(os.listdir(f"/proc/{self.pid}/task"))


@unittest.skipIf(os.environ["SANITIZED"], "a sanitizer cannot be loaded into a program that was built without it")
class Borrowed(Attaching):
    def attach(self, pid):
        attached = subprocess.Popen([GREENPROF, "attach", str(pid), "-o", "capture"], env=self.env, cwd=self.dir, text=True,
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(attached.wait)
        self.addCleanup(attached.kill)
        return attached

    def check_goes_on(self, waits, *kind):
        """While attach waits for what another thread holds, the main thread has its turns."""
        held = Held(self, *kind)
        attached = self.attach(held.pid)
        if waits:
            self.wait_until(lambda: held.threads() == 3, "the thread that loads is there")
            first = held.turns()
            self.wait_until(lambda: held.turns() > first + TURNS, "turns")
            self.assertIsNone(attached.poll())
        held.go()
        output, errors = attached.communicate(timeout=100)
        self.assertEqual((attached.returncode, errors), (0, ""))
        self.do("detach", held.pid)
        self.assertEqual(held.end(), 0)

    def test_another_thread_is_in_the_loader(self):
        self.check_goes_on(True, "constructor", PLUGIN)

    def test_another_thread_walks_the_libraries(self):
        self.check_goes_on(True, "iterate")

    def test_another_thread_forks(self):
        self.check_goes_on(False, "fork")

    def test_a_lock_that_is_not_given_back(self):
        """Attach gives up, and nothing of it is left; later it works."""
        held = Held(self, "constructor", PLUGIN)
        before = held.threads()
        attached = self.attach(held.pid)
        first = held.turns()
        errors = attached.communicate(timeout=100)[1]
        self.assertEqual(attached.returncode, 1)
        self.assertIn("holds the loader's lock", errors)
        self.assertGreater(held.turns(), first + TURNS)
        self.wait_until(lambda: held.threads() == before, "its thread has ended")
        with open(f"/proc/{held.pid}/maps") as file:
            self.assertNotIn("libgreenprof", file.read())
        held.go()
        self.do("attach", held.pid, "-o", "capture")
        self.do("detach", held.pid)
        self.assertEqual(held.end(), 0)

    def test_another_thread_changes_the_user(self):
        """And with it, that of the one which is borrowed: they wait for each other."""
        held = Held(self, "user")
        self.do("attach", held.pid, "-o", "capture")
        self.do("detach", held.pid)
        self.assertEqual(held.end(), 0)

    def test_restartable_sequences(self):
        held = Bare.__new__(Bare)
        held.process = subprocess.Popen([HELD, "sequence"], env=self.env, text=True, bufsize=1, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        held.pid = held.process.pid
        self.addCleanup(held.kill)
        if held.process.stdout.readline() != "ready\n":
            self.skipTest("the C library has no restartable sequences")
        for _ in range(ROUNDS):
            self.do("attach", held.pid, "-o", "capture")
            self.do("detach", held.pid)
        output, _ = held.process.communicate("\n", timeout=100)
        _, lost, _, count = output.split()
        self.assertEqual(int(lost), 0)
        self.assertGreater(int(count), 0)

    def test_children_that_execute(self):
        """No signal of greenprof's waits for the program that a child becomes, by whatever name it calls that."""
        held = Held(self, "execs")
        self.do("attach", held.pid, "-o", "capture")
        self.assertEqual(held.tell("go", "killed"), [0])
        self.assertEqual(held.end(), 0)

    def test_child_of_vfork(self):
        """Its memory is its parent's, who does not expect a library there."""
        parent = subprocess.Popen([HELD, "vfork"], env=self.env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(parent.wait)
        self.addCleanup(parent.stdout.close)
        self.addCleanup(parent.stdin.close)
        child = int(parent.stdout.readline().split()[1])
        self.refused("(vfork)", "attach", child, "-o", "capture")


if __name__ == "__main__":
    unittest.main()
