# SPDX-License-Identifier: MIT
"""Run a program of known truth under `greenprof run`, and hold what greenprof says against what the program says.

A test passes where its figures lie within a stated tolerance; each figure is printed, so that `ctest -V` shows them.
Truth is CPU time, never wall-clock time: a busy machine changes neither. measured.py compares the figures.
"""
import collections
import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import measured  # noqa: E402
from capture import Capture  # noqa: E402
from helpers import LIMIT_SECONDS, SKIPPED, Folded, InFolder, bare, limit, main, need, until  # noqa: E402, F401

GREENPROF = os.environ["GREENPROF"]     # the command
PROGRAMS = os.environ["PROGRAMS"]       # where the programs of known truth are
LIBRARIES = os.environ.get("LIBRARIES") # where libgreenprof.so is

SHARE_TOLERANCE = 0.03  # of a function's CPU time, beside what chance adds
TOTAL_TOLERANCE = 0.005
LEDGER_TOLERANCE = 0.01
PERF = 1  # src/model/engines.h


class Truth:
    """What a program printed."""

    def __init__(self, text):
        self.functions = collections.Counter()
        self.coroutines, self.total = {}, None
        self.values = collections.defaultdict(list)
        for line in text.splitlines():
            words = line.split()
            if not words:
                continue
            if words[0] == "EXPECT":
                self.functions[words[1]] += float(words[2])
            elif words[0] == "COROUTINE":
                self.coroutines[words[1]] = (float(words[2]), int(words[3]))
            elif words[0] == "TOTAL":
                self.total = float(words[1])
            else:
                self.values[words[0]].append(words[1:])


def greenprof(*arguments, **options):
    return subprocess.run([GREENPROF, *map(str, arguments)], capture_output=True, timeout=limit(), **options)


def program(name):
    return os.path.join(PROGRAMS, name)


class Run:
    """A finished `greenprof run`."""

    def __init__(self, directory, done, output):
        self.directory, self.output = directory, output
        self.status = done.returncode
        self.stdout = done.stdout.decode(errors="replace")
        self.stderr = done.stderr.decode(errors="replace")
        self.truth = Truth(self.stdout)
        self.known = {}  # what was read of a file, as long as that is the same

    def once(self, path, what, read):
        found = os.stat(path)
        key = path, what, found.st_mtime_ns, found.st_size
        if key not in self.known:
            self.known[key] = read()
        return self.known[key]

    def capture(self, path=None):
        path = path or self.output
        return self.once(path, None, lambda: Capture(path))

    def files(self):
        """Every capture of the run, by what follows the name of the first: "", ".123", ".1", ..."""
        return {path[len(self.output):]: path for path in glob.glob(glob.escape(self.output) + "*")}

    def folded(self, *options, path=None):
        command = ("export", path or self.output, "--format", "folded", *options)
        return self.once(command[1], command, lambda: Folded(measured.check_status(greenprof(*command)).stdout.decode()))

    def ledger(self, *options, by="coroutine", path=None):
        """`report --by coroutine`: rows (cpu, sampled, samples, switches, id, trace, name); by trace: rows
        (cpu, sampled, samples, switches, latency, coroutines, trace)."""
        paths = path if isinstance(path, list) else [path or self.output]
        done = greenprof("report", *paths, "--by", by, "-n", "0", *options)
        if done.returncode != 0:
            raise AssertionError(done.stderr.decode())
        head, found, table = done.stdout.decode().partition("      cpu  sampled     +-  samples  switches")
        rows = [line.split(None, 7) for line in table.splitlines()[1:] if line.strip()]
        if by == "trace":  # without the name of a coroutine behind it
            rows = [[*row[:7], re.sub("^([0-9a-f]{32}) .*", r"\1", row[7])] for row in rows]
        return [(float(row[0]), float(row[1]), int(row[3]), int(row[4]), *row[5:]) for row in rows]


class Case(measured.Case, InFolder):
    def profile(self, command, hz=1000, output="capture.greenprof", options=(), status=0, environment=None,
                healthy=True, **extra):
        """Run `command` (its first word: a program of ours, or a path) under greenprof."""
        words = [str(word) for word in command]
        if "/" not in words[0]:
            words[0] = program(words[0])
        path = os.path.join(self.directory, output)
        done = greenprof("run", "--quiet", "-F", hz, "-o", path, *options, "--", *words, cwd=self.directory,
                         env={**os.environ, **(environment or {})}, **extra)
        run = Run(self.directory, measured.check_status(done, status), path)
        if healthy and os.path.exists(path):
            self.check_health(run.capture())
        return run

    def run_alone(self, command, status=0):
        """Run one of our programs by itself; what it printed."""
        done = subprocess.run([program(command[0]), *map(str, command[1:])], capture_output=True,
                              timeout=limit(), cwd=self.directory)
        return Truth(measured.check_status(done, status).stdout.decode())

    def check_health(self, capture, ended=True, share_lost=0.01):
        """What holds for every capture, whatever ran: every signal is a sample or a counted drop."""
        counters = capture.counters
        self.assertTrue(counters, "no counters")
        self.assertTrue(capture.whole, "damaged")
        self.assertEqual(counters["signals"], counters["samples"] + capture.drops, counters)
        self.assertEqual(counters["timer_failed"], 0, counters)
        if ended:
            # The program's threads go on while the last records are written.
            self.near("samples in the capture", len(capture.samples), counters["samples"], 0.001, count=10)
        self.at_most("samples lost to a full ring", counters["ring_full"], share_lost * counters["signals"] + 1)

    def check_total(self, folded, truth, tolerance=TOTAL_TOLERANCE, slack=0.003):
        """slack: seconds of CPU before main() and after the program's last look at its clock."""
        self.near("total", folded.total, truth.total, tolerance, slack)

    def check_functions(self, folded, truth, samples, tolerance=SHARE_TOLERANCE):
        """Each booked function within `tolerance`, and what chance makes of a share seen in that many samples."""
        found, whole = folded.inclusive(), sum(truth.functions.values())
        self.assertTrue(truth.functions, "the program printed no truth")
        for name, seconds in sorted(truth.functions.items()):
            self.near(name, found[name], seconds, tolerance, samples=samples, whole=whole)

    def check_ledger(self, run, slack=0.002):
        """Exact CPU of every coroutine the program named, and the exact number of switches to it."""
        rows = {row[6].strip(): row for row in run.ledger()}
        for name, (seconds, switches) in sorted(run.truth.coroutines.items()):
            self.assertIn(name, rows)
            self.near(f"ledger of {name}", rows[name][0], seconds, LEDGER_TOLERANCE, slack)
            self.assertEqual(rows[name][3], switches, f"switches to {name}")

    def check_weights(self, capture, tolerance=0.01, slack=0.02):
        """The samples' weights, and what came after the last of them, add up to the process' exact CPU time, but for
        threads that no signal can reach and what threads use as they end. Signals of perf events come when they are
        due: tolerance and slack are for what came after the last ones."""
        reached = (capture.process_cpu_ns - capture.counters["unsampled_ns"]) / 1e9
        pending = capture.counters["pending_ns"] / 1e9
        self.near("sum of weights", capture.sampled_ns / 1e9 + pending, reached, 0.002,
                  0.002 + 0.0003 * (len(capture.threads) - 1))
        if capture.engine == PERF:
            self.at_most("after the last samples", pending, tolerance * reached + slack)
