# SPDX-License-Identifier: MIT
"""--stitch on captures that a script has made: chains of creators, and what damage may make of them.

usage: test_stitch.py GREENPROF MAKE_CAPTURE RECORDER.so WORK-DIRECTORY
"""
import subprocess, unittest

from support import GREENPROF, Command, main, run

HEAD = """
meta exe /opt/app/server
module 1 /opt/app/server 0102 0x1000 0x9000 0x0
thread 1 10 1 0 main
coro 1 0 - 0x1000 0x1000 1 1 -
"""
# main spawns 2 at 1:11 below 1:10, 2 spawns 3 at 1:21 below 1:20, 3 spawns 4 at 1:31. Its own stack is 1:40.
CHAIN = HEAD + """
coro 2 1 - 0x3000 0x1000 2 0 two
coro 3 2 - 0x5000 0x1000 2 0 three
coro 4 3 - 0x7000 0x1000 2 0 four
stack 1 0 1:11 1:10
stack 2 0 1:21 1:20
stack 3 0 1:31 1:30
stack 4 0 1:40
stack 5 0 1:10
origin 2 1 0
origin 3 2 0
origin 4 3 0
sample 1000 1000000 4 1 4 0
sample 2000 1000000 1 1 5 0
sample 3000 1000000 2 1 4 0
sample 4000 1000000 4 1 4 0 2
ledger 4 0 1000000 1 4000
end 5000 0
"""


def frames(*numbers):
    return ";".join(number if number.startswith("[") else f"server+0x{number}" for number in numbers)


FOUR = frames("10", "11", "[spawned]", "20", "21", "[spawned]", "30", "31", "[spawned]", "40")


class Stitch(Command):
    def folded(self, script, *arguments):
        capture = self.make("stitch.greenprof", script)
        text = self.succeed("export", capture, "-f", "folded", "--stitch", *arguments)
        return dict(line.rsplit(" ", 1) for line in text.splitlines())

    def test_chain(self):
        self.assertEqual(self.folded(CHAIN), {FOUR: "1000", frames("10"): "1000", frames("10", "11", "[spawned]", "40"): "1000"})

    def test_roots_and_parts(self):
        self.assertEqual(self.folded(CHAIN, "--by", "coroutine", "--coroutine", "4"), {"[coroutine 4 four];" + FOUR: "1000"})
        self.assertEqual(list(self.folded(CHAIN, "--focus", "0x21")), [FOUR])
        self.assertEqual(list(self.folded(CHAIN, "--ignore", "0x11")), [frames("10")])

    def test_wall(self):
        self.assertEqual(list(self.folded(CHAIN, "--clock", "wall", "--focus", "parked")), [FOUR + ";[parked]"])

    def test_without(self):
        capture = self.make("stitch.greenprof", CHAIN)
        self.assertEqual(self.succeed("export", capture, "-f", "folded").count("[spawned]"), 0)

    def test_every_format(self):
        capture = self.make("stitch.greenprof", CHAIN)
        for name in ("flamegraph", "json", "speedscope", "callgrind", "firefox"):
            self.assertIn("[spawned]", self.succeed("export", capture, "-f", name, "--stitch").replace("&#91;", "["), name)

    def test_merge(self):
        one, two, out = self.make("one.greenprof", CHAIN), self.make("two.greenprof", "header pid=4243\n" + CHAIN), self.path("out.greenprof")
        self.succeed("merge", one, two, "-o", out)
        text = self.succeed("export", out, "-f", "folded", "--stitch")
        self.assertEqual(dict(line.rsplit(" ", 1) for line in text.splitlines())[FOUR], "2000")

    def test_damage(self):
        """A creator that is younger, or the coroutine itself, or not there; a stack that is not there; a second record."""
        for coro, origin, above in (("coro 4 4", "origin 4 3 0", ["30", "31", "[spawned]"]),
                                    ("coro 4 9", "origin 4 3 0", ["30", "31", "[spawned]"]),
                                    ("coro 4 0", "origin 4 3 0", ["30", "31", "[spawned]"]),
                                    ("coro 4 3", "origin 4 77 0", []), ("coro 4 3", "origin 4 0 0", []),
                                    ("coro 4 0", "origin 4 3 0\norigin 4 5 0", ["10", "[spawned]"])):
            script = CHAIN.replace("coro 4 3", coro).replace("origin 4 3 0", origin)
            self.assertIn(frames(*above, "40"), self.folded(script, "--coroutine", "4"), (coro, origin))

    def test_two_that_made_each_other(self):
        script = CHAIN.replace("coro 3 2", "coro 3 4")
        self.assertEqual(list(self.folded(script, "--coroutine", "4")), [frames("20", "21", "[spawned]", "30", "31", "[spawned]", "40")])

    def long(self, count, sites):
        """Each coroutine makes the next, at `sites` places in turn."""
        lines = [HEAD, "stack 100 0 1:40"] + [f"stack {site + 1} 0 1:{site + 0x100:x}" for site in range(sites)]
        for i in range(2, count + 2):
            lines += [f"coro {i} {i - 1} - 0x{i * 0x2000:x} 0x1000 2 0 c{i}", f"origin {i} {i % sites + 1} 0",
                      f"sample {i} 1000000 {i} 1 100 0"]
        return "\n".join(lines + ["end 100000 0"])

    def test_depth(self):
        """Sixteen creators at most; what is cut off says so. A place that repeats right above itself is shown once."""
        stacks = self.folded(self.long(50, 3))
        levels = sorted(stack.count("[spawned]") for stack in stacks)
        self.assertEqual(levels, list(range(1, 17)) + [16, 16, 16])
        self.assertEqual(sum(stack.startswith("[truncated];") for stack in stacks), 3)
        self.assertEqual(sum(map(int, stacks.values())), 50000)
        self.assertEqual(self.folded(self.long(50, 1)), {frames("100", "[spawned]", "40"): "50000"})

    def test_diff(self):
        capture = self.make("stitch.greenprof", CHAIN)
        self.assertIn("[spawned]", self.succeed("diff", "--stitch", capture, capture, "--sort", "name"))

    def test_former_names(self):
        script = CHAIN + "coro 4 3 - 0x7000 0x1000 2 0 fourth\ncoro 4 3 - 0x7000 0x1000 2 0 last\n"
        for name in ("^four$", "fourth", "last"):
            self.assertEqual(list(self.folded(script, "--by", "coroutine", "--name", name)), ["[coroutine 4 last];" + FOUR])
        self.expect(1, "no coroutine with a name that matches 'fifth'", "report", self.make("names.greenprof", script), "--name", "fifth")

    def test_old_captures_have_none(self):
        script = "\n".join(line for line in CHAIN.splitlines() if not line.startswith("origin"))
        self.assertIn(frames("40"), self.folded(script))

    def test_pipe(self):
        with open(self.make("stitch.greenprof", CHAIN), "rb") as file:
            result = subprocess.run([GREENPROF, "export", "/dev/stdin", "-f", "folded", "--stitch"], stdin=file, capture_output=True, text=True)
        self.assertIn(FOUR, result.stdout)


if __name__ == "__main__":
    main()
