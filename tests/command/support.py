# SPDX-License-Identifier: MIT
"""What the tests of the greenprof command share: the command line of the tests, a small capture, a base class."""
import os, subprocess, sys, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from helpers import InFolder, make_capture  # noqa: E402

GREENPROF, MAKE_CAPTURE, RECORDER, WORK = (os.path.abspath(path) for path in sys.argv[1:5])

SCRIPT = """
meta exe /opt/app/server
module 1 /opt/app/server 0102 0x1000 0x9000 0x0
thread 1 10 1 0 main
coro 1 0 - 0x1000 0x1000 1 1 -
coro 2 1 1:40 0x3000 0x1000 2 0 -
coro 3 1 - 0x5000 0x1000 2 0 worker
trace 1 4bf92f3577b34da6a3ce929d0e0e4736
trace 2 00000000000000000000000000000001
stack 1 0 1:10 1:20
stack 2 0 switching 1:20
stack 3 0 1:30 1:30 1:20
sample 1000000 1000000 1 1 1 0
sample 2000000 1000000 2 1 2 1
sample 3000000 1000000 3 1 3 1
sample 4000000 1000000 3 1 3 2
ledger 1 0 1100000 7 4000000
ledger 2 1 900000 2 4000000
ledger 3 1 950000 3 4000000
ledger 3 2 1060000 1 4000000
counters 4100000 4010000 10000 9 4 3 0 2 0 0 1 0 0 0 0 0
end 4200000 0
"""


def run(*arguments, **options):
    options.setdefault("cwd", WORK)
    options.setdefault("text", True)
    return subprocess.run([GREENPROF, *arguments], capture_output=True, **options)


class Command(InFolder):
    WORK = WORK

    def setUp(self):
        super().setUp()
        self.capture = self.make("test.greenprof", SCRIPT)

    def make(self, name, script):
        return make_capture(MAKE_CAPTURE, self.path(name), script)

    def made_for_the_wall_clock(self, path):
        """A capture as `run --clock wall` makes it, of another."""
        with open(path, "r+b") as file:
            file.seek(60)
            file.write(b"\1")
            file.seek(120)
            file.write(bytes(8))  # the writer made no checksum
        return path

    def expect(self, status, error, *arguments, **options):
        """Run a command that must fail: status, a message, nothing on standard output, no file."""
        before = sorted(os.listdir(self.directory))
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertRegex(result.stderr, error)
        self.assertRegex(result.stderr, r"^greenprof")
        self.assertEqual(result.stdout, "")
        self.assertEqual(sorted(os.listdir(self.directory)), before)
        return result

    def succeed(self, *arguments, **options):
        result = run(*arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def groups(self, by, *arguments):
        """Rows of a report by coroutine, trace and the like, in words."""
        lines = self.succeed("report", self.capture, "--by", by, *arguments).splitlines()
        start = next(number for number, line in enumerate(lines) if "switches" in line)
        rows = [line.split() for line in lines[start + 1:] if line.strip()]
        for row in rows:
            float(row.pop(2))  # the interval that chance gives the sampled time
        return rows


def main():
    unittest.main(argv=sys.argv[:1], verbosity=1)
