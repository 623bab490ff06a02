# SPDX-License-Identifier: MIT
"""greenprof runtimes: what is hooked, and what a program or a process has."""
import subprocess

from shares import check
import shares


class Command(shares.Shares):
    def ask(self, *what, status=0):
        done = check.greenprof("runtimes", *what)
        self.assertEqual(done.returncode, status, done.stderr.decode())
        return done.stdout.decode()

    def about(self, program):
        (path,) = self.prepare([program])
        return self.ask(path)

    def test_list(self):
        text = self.ask()
        for name in ("glibc ucontext", "Boost.Context", "State Threads", "Ruby Fiber", "PHP Fiber", "greenprof-wrap-libaco", "greenprof-wrap-lua", "asyncio"):
            self.assertIn(name, text)

    def test_shared(self):
        self.assertRegex(self.about("boost_fiber"), r"^Boost\.Context +libboost_context\.so[^\n]*\n$")
        self.assertIn("GNU Pth", self.about("pth"))
        self.assertIn("State Threads", self.about("st"))

    def test_linked_in(self):
        self.assertRegex(self.about("boost_static"), r"^Boost\.Context, linked in +boost_static: link-time hook is in place\n$")
        self.assertIn("libaco, linked in", self.about("shapes"))
        self.assertRegex(self.about("lua_static"), r"(?m)^Lua, linked in +lua_static: link-time hook is in place$")

    def test_none(self):
        said = self.ask("/bin/true")
        self.assertIn("none that greenprof knows", said)
        self.assertIn("C++20", said)
        self.assertEqual(self.ask("no-such-program", status=1), "")
        self.assertEqual(self.ask("999999999", status=1), "")

    def test_process(self):
        command = self.prepare(["boost_context", 2, 10])
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            while "libboost_context" not in open(f"/proc/{process.pid}/maps").read():
                self.assertIsNone(process.poll())
            self.assertIn("Boost.Context", self.ask(process.pid))
            process.kill()


if __name__ == "__main__":
    check.main()
