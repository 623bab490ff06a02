# SPDX-License-Identifier: MIT
"""Run a Python program under `greenprof run` and look at what greenprof says of it."""
import atexit
import collections
import json
import os
import pstats
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import measured  # noqa: E402

GREENPROF = os.environ["GREENPROF"]
PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
PYTHON = os.environ.get("GREENPROF_PYTHON", "/usr/bin/python3")
SKIPPED = 77
LIMIT_SECONDS = 200


def require(*modules):
    """End the test as skipped where a module is missing."""
    for module in modules:
        if subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True).returncode != 0:
            print(f"SKIP: python3-{module} is not installed")
            sys.exit(SKIPPED)


def require_package():
    """End the test as skipped where the package was not built; one that was built and cannot be imported is a failure."""
    if not any(os.path.isdir(os.path.join(path, "greenprof")) for path in os.environ["PYTHONPATH"].split(os.pathsep)):
        print("SKIP: the package greenprof was not built")
        sys.exit(SKIPPED)


def read_as_snakeviz(path):
    """What SnakeViz makes of a file (table_rows() and json_stats() of its stats.py, 2.2): the functions of its table."""
    text = "{}:{}({})".format
    stats = pstats.Stats(path)
    rows = [text(*key) for key, (primitive, calls, own, total, callers) in stats.stats.items()
            if f"{own / primitive if primitive > 0 else 0:.4g} {total / primitive if primitive > 0 else 0:.4g} {calls}"]
    stats.calc_callees()
    tree = {text(*key): {"children": {text(*callee): list(counts) for callee, counts in callees.items()},
                         "stats": list(stats.stats[key][:4]),
                         "callers": {text(*caller): list(counts) for caller, counts in stats.stats[key][-1].items()}}
            for key, callees in stats.all_callees.items()}
    json.dumps(tree, allow_nan=False)
    return rows


def command(*arguments):
    done = subprocess.run([GREENPROF, *arguments], capture_output=True, text=True, timeout=LIMIT_SECONDS)
    measured.check_status(done)
    return done.stdout


class Folded:
    """Stacks and seconds."""

    def __init__(self, text):
        self.stacks = []
        for line in text.splitlines():
            stack, _, weight = line.rpartition(" ")
            self.stacks.append((stack.split(";"), int(weight) / 1e6))
        self.total = sum(weight for _, weight in self.stacks)

    def own(self):
        times = collections.Counter()
        for stack, weight in self.stacks:
            times[stack[-1]] += weight
        return times

    def cumulative(self):
        times = collections.Counter()
        for stack, weight in self.stacks:
            for name in set(stack):
                times[name] += weight
        return times

    def pairs(self):
        """(caller, callee): seconds, over all stacks."""
        times = collections.Counter()
        for stack, weight in self.stacks:
            for pair in zip(stack, stack[1:]):
                times[pair] += weight
        return times


class Run:
    """One program under `greenprof run`."""

    def __init__(self, program, *arguments, hz=1000, options=()):
        directory = tempfile.mkdtemp(prefix="greenprof-python-")
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        self.capture = os.path.join(directory, "capture.greenprof")
        done = subprocess.run([GREENPROF, "run", "--quiet", "-F", str(hz), "-o", self.capture, *options, "--", PYTHON, "-B",
                               os.path.join(PROGRAMS, program), *map(str, arguments)],
                              capture_output=True, text=True, timeout=LIMIT_SECONDS)
        self.status, self.output, self.errors = done.returncode, done.stdout, done.stderr
        measured.check_status(done)

    def folded(self, *options):
        return Folded(command("export", self.capture, "--format", "folded", *options))

    def report(self, *options):
        return command("report", self.capture, *options)
