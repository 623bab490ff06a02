# SPDX-License-Identifier: MIT
"""A service that is switched from outside, and the commands that do it."""
import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))
import measured  # noqa: E402
from capture import Capture  # noqa: E402, F401
from helpers import LIMIT_SECONDS, free_ports, main, skip, until  # noqa: E402, F401

GREENPROF = os.environ["GREENPROF"]
SERVICE = [os.environ["SERVICE"]]
EVENTLET = ["/usr/bin/python3", os.path.join(HERE, "service_eventlet.py")]

TOTAL_TOLERANCE = 0.05  # of what was burned: the service's own few ms are recorded, too
SHARE_TOLERANCE = 0.12  # of some hundred samples


def has_eventlet():
    return subprocess.run(["/usr/bin/python3", "-c", "import eventlet"], capture_output=True).returncode == 0


class Service:
    """A running one."""

    def __init__(self, case, program, *options, **environment):
        self.process = subprocess.Popen([GREENPROF, "run", "-q", *options, *program],
                                        env=dict(case.env, **environment), cwd=case.dir, text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        case.addCleanup(self.end)
        self.expect("ready")

    def expect(self, word):
        words = self.process.stdout.readline().split()
        if not words or words[0] != word:
            raise AssertionError(f"not {word}: {words}, exit status {self.process.poll()}")
        return [int(number) for number in words[1:]]

    def tell(self, line, word):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.expect(word)

    def burn(self, ms):
        """Seconds of CPU time of burn_a and burn_b."""
        return [ns / 1e9 for ns in self.tell(f"burn {ms}", "burned")]

    def end(self):
        """Let it end. Returns its status."""
        self.process.stdin.close()
        status = self.process.wait(LIMIT_SECONDS)
        self.process.stdout.close()
        return status


class Case(measured.Case):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.env = dict(os.environ, XDG_RUNTIME_DIR=self.dir)
        self.place = os.path.join(self.dir, "greenprof")

    def command(self, *arguments, **more):
        return subprocess.run([GREENPROF, *map(str, arguments)], env=self.env, cwd=self.dir, timeout=LIMIT_SECONDS,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL, **more)

    def do(self, *arguments):
        """Standard output of a command that works."""
        done = measured.check_status(self.command(*arguments))
        self.assertEqual(done.stderr, "")
        return done.stdout

    def refused(self, text, *arguments, status=1, **more):
        done = self.command(*arguments, **more)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertIn(text, done.stderr)

    def status(self, pid):
        return json.loads(self.do("status", pid, "--json"))

    wait_until = staticmethod(until)

    def attach_for(self, pid, seconds, path):
        """Record until it has used so much CPU time."""
        def used():
            with open(f"/proc/{pid}/stat") as file:
                return sum(map(int, file.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
        self.do("attach", pid, "-o", path)
        end = used() + seconds
        until(lambda: used() >= end, "CPU time")
        self.do("detach", pid)

    @staticmethod
    def content(path):
        with open(path, "rb") as file:
            return file.read()

    def sockets(self):
        names = os.listdir(self.place) if os.path.exists(self.place) else []
        return sorted(name for name in names if name.startswith("control-"))

    def socket_of(self, pid):
        """Its socket; until that can be connected to, its name ends otherwise."""
        return [name for name in self.sockets() if name.startswith(f"control-{pid}-") and not name.endswith(".part")]

    def functions(self, path, *options):
        """Seconds by function, with what it calls; and in all."""
        sums = collections.Counter()
        for line in self.do("export", path, "--format", "folded", *options).splitlines():
            stack, _, weight = line.rpartition(" ")
            sums[""] += int(weight) / 1e6
            for name in {frame.split(" ")[0].split("(")[0].split(":")[-1] for frame in stack.split(";")}:
                sums[name] += int(weight) / 1e6
        return sums

    def check_capture(self, path, burned, *options):
        """A capture has this, and next to nothing else."""
        sums, total = self.functions(path, *options), sum(burned)
        self.near("in all", sums[""], total, TOTAL_TOLERANCE, 0.06)
        for name, seconds in zip(("burn_a", "burn_b"), burned):
            self.near(name, sums[name], seconds, SHARE_TOLERANCE, 0.01)


class Bare(Service):
    """A service without greenprof."""

    def __init__(self, case, program):
        self.process = subprocess.Popen(program, env=case.env, cwd=case.dir, text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        case.addCleanup(self.kill)
        self.expect("ready")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Attaching(Case):
    """Skipped where nothing may be traced."""

    def setUp(self):
        super().setUp()
        sleeper = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        tried = self.command("attach", sleeper.pid, "-o", "tried")
        if "may not be traced" in tried.stderr:
            self.skipTest("nothing may be traced here: " + tried.stderr)
