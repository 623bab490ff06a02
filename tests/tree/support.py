# SPDX-License-Identifier: MIT
"""What the tests of `greenprof trace` share: spans as greenprof's consumer writes them, and a base class."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import helpers  # noqa: E402
from helpers import InFolder, free_ports, skip  # noqa: E402, F401

GREENPROF, WORK = (os.path.abspath(path) for path in sys.argv[1:3])
TRACE = "0af7651916cd43dd8448eb211c80319c"
START = 1795262400000000000  # 2026-11-21 12:00:00 UTC


def span(number, parent=None, start=0, end=0, service="api", **more):
    """A span; its id is its number, times are ms since START."""
    fields = more.pop("fields", {})
    one = {"v": 1, "trace": TRACE, "span": f"{number:016x}", "parent": None if parent is None else f"{parent:016x}",
           "remote_parent": False, "kind": "task", "name": f"work {number}", "service": service, "host": "h-" + service,
           "pid": 7, "coroutine": 1, "start_unix_ns": START + round(start * 1e6), "end_unix_ns": START + round(end * 1e6),
           "cpu_ns": 1000000, "ready_ns": 0, "parked_ns": 0, "blocked_ns": 0, "preempted_ns": 0, "waiting_ns": 0,
           "switches": 1, "flags": [], "fields": fields}
    one.update(more)
    return one


class Trace(InFolder):
    WORK = WORK

    def lines(self, *spans, name="spans.jsonl"):
        return self.put(name, "".join(json.dumps(one) + "\n" for one in spans))

    def run_trace(self, *arguments, **options):
        return subprocess.run([GREENPROF, "trace", *arguments], capture_output=True, stdin=subprocess.DEVNULL,
                              cwd=self.directory, **options)

    def succeed(self, *arguments):
        result = self.run_trace(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        return result.stdout.decode()

    def expect(self, status, error, *arguments):
        """Must fail, with one line, and leave nothing."""
        before = sorted(os.listdir(self.directory))
        result = self.run_trace(*arguments)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertRegex(result.stderr.decode(), error)
        self.assertRegex(result.stderr.decode(), r"^greenprof")
        self.assertEqual(result.stdout, b"")
        self.assertEqual(sorted(os.listdir(self.directory)), before)

    def show(self, *sources, id=TRACE):
        """The spans of `trace show --json`, in the order of the tree, and the whole document."""
        document = json.loads(self.succeed("show", id, *sources, "--json"))
        return document["spans"], document


def number(one):
    return int(one["span"], 16)


def main():
    helpers.main(sys.argv[:1], partial=0, verbosity=1)
