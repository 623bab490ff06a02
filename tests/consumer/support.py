# SPDX-License-Identifier: MIT
"""What the tests of consumers share: a host that obeys (host.c), and waiting for what happens in its own time."""
import glob
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from helpers import LIMIT_SECONDS, free_ports, skip, until  # noqa: E402, F401

HOST = os.environ["CONSUMER_HOST"]


class Host:
    """A running host.c."""

    def __init__(self, limits=None, **environment):
        variables = {name: value for name, value in os.environ.items() if not name.startswith("GREENPROF_")}
        variables.update(environment)
        self.process = subprocess.Popen([HOST], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env=variables, preexec_fn=limits)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.communicate()

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise AssertionError(f"the host died at {line!r}: {self.process.wait()}: {self.process.stderr.read()}")
        return answer.strip()

    def do(self, *lines):
        """Say all of them; none may fail."""
        for line in lines:
            answer = self.say(line)
            if answer.startswith("-"):
                raise AssertionError(f"{line}: {answer}")

    def status(self, url=""):
        words = self.say(f"status {url}".strip()).split()
        return {name: int(value) for name, value in (word.split("=") for word in words[1:])}

    def balance(self, happens, what):
        """Wait until `happens(status)` is true and each span is somewhere, none on its way; the status is returned."""
        return until(lambda: (lambda status: happens(status) and balanced(status) and status)(self.status()), what)

    def overfill(self):
        """Requests until the queue has no room. Returns how many spans they are."""
        spans = 0

        def more():
            nonlocal spans
            self.do("requests 20")
            spans += 20 * 3
            return self.status()["lost_queue"]

        until(more, "the queue is full")
        return spans

    def end(self):
        """End of input: the host returns from main(). Returns what it said on standard error."""
        _, error = self.process.communicate(timeout=LIMIT_SECONDS)
        if self.process.returncode != 0:
            raise AssertionError(self.process.returncode, error)
        return error

    def trace(self, number, pid=None):
        """Hex form of the trace of its request with that number, from 1."""
        return (struct.pack("<i", pid or self.pid) + bytes(8) + struct.pack("<I", number)).hex()


def balanced(status):
    """Each span that was given is somewhere."""
    return status["given"] == sum(status[name] for name in ("sent", "refused", "lost_queue", "lost_end", "fast", "queued", "spooled"))


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="greenprof-consumer-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def spans(self, directory, trace="*", name="*"):
        """Every span in a file consumer's directory; each line must be one."""
        found = []
        for path in glob.glob(os.path.join(self.path(directory), trace, f"spans-{name}.jsonl")):
            with open(path, encoding="utf-8") as lines:
                text = lines.read()
            self.assertTrue(text.endswith("\n"), path)
            found += [json.loads(line) for line in text.splitlines()]
        return found
