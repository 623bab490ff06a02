# SPDX-License-Identifier: MIT
"""What the tests of formats share: writing files in a format, and the truth about them.

usage of each test: test_NAME.py WRITE_REPORT GREENPROF MAKE_CAPTURE DUMP_ALL
"""
import os, subprocess, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import helpers  # noqa: E402
from helpers import skip  # noqa: E402, F401

WRITE_REPORT, GREENPROF, MAKE_CAPTURE, DUMP_ALL = (os.path.abspath(path) for path in sys.argv[1:5])
HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "golden")

# Two coroutines that work for two traces, one of them on two threads.
SCRIPT = """
meta exe /opt/app/server
module 1 /opt/app/server 0102 0x401000 0x409000 0x400000
thread 1 10 1 0 main
thread 2 11 4 0 pool-1
coro 1 0 - 0x1000 0x1000 1 1 -
coro 2 1 1:40 0x3000 0x1000 2 0 -
coro 3 1 - 0x5000 0x1000 2 0 wor"k;er
coro 4 0 - 0x7000 0x1000 1 2 -
trace 1 4bf92f3577b34da6a3ce929d0e0e4736
trace 2 00000000000000000000000000000001
stack 1 0 1:1010 1:1020
stack 2 0 switching 1:1020
stack 3 0 1:1030 1:1030 1:1020
sample 1000000 1000000 1 1 1 0
sample 2000000 1000000 2 1 2 1
sample 3000000 1000000 3 1 3 1
sample 3500000 500000 3 2 3 1
sample 4000000 1000000 3 1 3 2
counters 4100000 4600000 10000 9 5 3 0 2 0 0 1 0 0 0 0 0
end 4200000 0
"""
NO_SAMPLES = "meta exe /opt/app/server\nthread 1 10 1 0 main\ncounters 100 0 0 0 0\nend 200 0\n"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def run(*command, **options):
    return helpers.run(command, **{"text": False, **options}).stdout


class Files(helpers.InFolder):
    """A directory of files in the format `form`."""
    form = None

    def written(self, name, form=None):
        """A report made by hand: example, labelled, empty, huge."""
        return run(WRITE_REPORT, name, form or self.form, env=dict(os.environ, LC_ALL="de_DE.UTF-8"))

    def report(self, name, form=None):
        return self.put(f"{name}.{form or self.form}", self.written(name, form))

    def capture(self, script=SCRIPT):
        return helpers.make_capture(MAKE_CAPTURE, self.path("test.greenprof"), script)

    def export(self, *options, script=SCRIPT, form=None):
        form = form or self.form
        out = self.path(f"export.{form}")
        run(GREENPROF, "export", self.capture(script), "--format", form, "-o", out, *options)
        return out

    def folded_total_us(self, *options, script=SCRIPT):
        with open(self.export(*options, script=script, form="folded"), "rb") as file:
            return sum(int(line.rsplit(b" ", 1)[1]) for line in file)

    def dumps(self):
        """Profile a real process: (total in ns, the path of its dump in this format)."""
        lines = run(DUMP_ALL, self.directory).decode().splitlines()
        self.assertIn(f"{self.form} 0", lines[1:])
        return int(lines[0]), self.path(self.form)

    def check_golden(self, name, got):
        path = os.path.join(GOLDEN, name)
        if os.environ.get("UPDATE_GOLDEN"):
            with open(path, "w", encoding="utf8", newline="") as file:
                file.write(got)
        with open(path, encoding="utf8", newline="") as file:
            self.assertEqual(got, file.read())

    def expect_no_partial_output(self):
        """A full disk: a message, status 1."""
        result = subprocess.run([GREENPROF, "export", self.capture(), "--format", self.form, "-o", "/dev/full"],
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("/dev/full: No space left on device", result.stderr)


def main(**options):
    helpers.main(sys.argv[:1], verbosity=1, **options)
