# SPDX-License-Identifier: MIT
"""What the tests of `greenprof ship` share."""
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

from clickhouse_server import Database
from helpers import run, until

GREENPROF = os.environ["GREENPROF"]


def environment(**more):
    names = ("GREENPROF_", "OTEL_", "POD_", "NODE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(names) and not name.lower().endswith("_proxy")}
    return {**kept, **more}


def greenprof(*arguments, status=0):
    """Both outputs of a command that asks a store."""
    done = run([GREENPROF, *arguments], status, env=environment(), errors="replace", timeout=240)
    return done.stdout, done.stderr


class ShipTest(unittest.TestCase):
    maxDiff = 4000

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="greenprof-ship-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.captures = os.path.join(self.folder, "captures")
        self.state = os.path.join(self.folder, "state")
        os.mkdir(self.captures)

    def path(self, name):
        return os.path.join(self.captures, name)

    def command(self, *arguments):
        return [GREENPROF, "ship", self.captures, "--state", self.state, *arguments]

    def ship(self, *arguments, status=0, **variables):
        """Ship what is there, and end. Returns what it wrote."""
        done = run(self.command("--once", *arguments), status, timeout=240, env=environment(**variables))
        return done.stdout + done.stderr

    def start(self, *arguments, preexec_fn=None):
        """A shipper that follows. It is killed at the end."""
        log = open(os.path.join(self.folder, "log"), "ab")
        self.addCleanup(log.close)
        process = subprocess.Popen(self.command("--interval", "20ms", *arguments), stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log, env=environment(), preexec_fn=preexec_fn)
        self.addCleanup(self.kill, process)
        return process

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as log:
            return log.read()

    def wait_for_log(self, text):
        until(lambda: text in self.log(), f"{text!r} in {self.log()!r}")

    @staticmethod
    def kill(process, number=signal.SIGKILL):
        if process.poll() is None:
            process.send_signal(number)
        return process.wait(timeout=120)


class Store(unittest.TestCase):
    """Has a database, which has no tables when a test begins."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.store = Database()
        cls.addClassCleanup(cls.store.close)

    def setUp(self):
        super().setUp()
        self.store.make()
