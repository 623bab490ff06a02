# SPDX-License-Identifier: MIT
"""Run a Python program under `greenprof run` and look at what greenprof says of it."""
import atexit
import json
import os
import pstats
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import helpers  # noqa: E402
from helpers import SKIPPED, Folded  # noqa: E402, F401

GREENPROF = os.environ["GREENPROF"]
PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
PYTHON = os.environ.get("GREENPROF_PYTHON", "/usr/bin/python3")
LIMIT_SECONDS = 200


def require(*modules):
    """End the test as skipped where a module is missing."""
    for module in modules:
        if subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True).returncode != 0:
            helpers.skip(f"python3-{module} is not installed")


def require_package():
    """End the test as skipped where the package was not built; one that was built and cannot be imported is a failure."""
    if not any(os.path.isdir(os.path.join(path, "greenprof")) for path in os.environ["PYTHONPATH"].split(os.pathsep)):
        helpers.skip("the package greenprof was not built")


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
    return helpers.run([GREENPROF, *arguments], timeout=LIMIT_SECONDS).stdout


def python(program, *arguments, before=(), **environment):
    """What one of the programs prints, run by itself or by the command `before` it."""
    return helpers.run([*before, PYTHON, "-B", os.path.join(PROGRAMS, program), *arguments], timeout=LIMIT_SECONDS,
                       env={**os.environ, **environment}).stdout


class Run:
    """One program under `greenprof run`."""

    def __init__(self, program, *arguments, hz=1000, options=()):
        directory = tempfile.mkdtemp(prefix="greenprof-python-")
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        self.capture = os.path.join(directory, "capture.greenprof")
        done = helpers.run([GREENPROF, "run", "--quiet", "-F", hz, "-o", self.capture, *options, "--", PYTHON, "-B",
                            os.path.join(PROGRAMS, program), *arguments], timeout=LIMIT_SECONDS)
        self.status, self.output, self.errors = done.returncode, done.stdout, done.stderr

    def folded(self, *options):
        return Folded(command("export", self.capture, "--format", "folded", *options))

    def report(self, *options):
        return command("report", self.capture, *options)

    def samples(self):
        return int(re.search(r"\bsamples +(\d+)", self.report())[1])
