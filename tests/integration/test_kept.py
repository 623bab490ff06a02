# SPDX-License-Identifier: MIT
"""Files that earlier versions wrote are read as they read them, from tests/capture/kept: the rings of a killed program,
whose recovery is the same as that version's, record for record; and captures of days on which the format grew, each with
what its own version exported (`--format folded --by coroutine`, the program not at hand)."""
import collections
import glob
import hashlib
import lzma
import os

import check
from capture import Capture

KEPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "capture", "kept")
# The version's own recovery: a hash of the records, and how many of each kind there are.
RECOVERED = {"killed-0.1.0": ("8d2dc9574b19a6c4a35728b069fb687a9886992478505a77b4a39d4ee4a21c54",
                              {"samples": 255, "waits": 314, "spans": 119, "coros": 74, "stack_flags": 225})}


def records(capture):
    """All that is read of a capture, in an order of its own."""
    return [sorted(map(repr, part)) for part in (
        capture.samples, capture.waits, capture.spans, capture.threads.items(), capture.coros.items(), capture.ledger.items(),
        capture.traces.items(), capture.stack_flags.items(), capture.counters.values(), [capture.end, capture.end_ns])]


def hash_of(capture):
    return hashlib.sha256(repr(records(capture)).encode()).hexdigest()


def counts_of(capture):
    return {kind: len(getattr(capture, kind)) for kind in ("samples", "waits", "spans", "coros", "stack_flags")}


def by_own_frames(folded):
    """Weights by what lies in the program, and how many lines: names in the C library depend on the machine's, and with them
    which stacks share a line: each is rounded to a microsecond, and the rest passed on."""
    weights, lines = collections.Counter(), collections.Counter()
    for line in folded.splitlines():
        stack, weight = line.rsplit(" ", 1)
        own = ";".join(frame for frame in stack.split(";") if "keep" in frame)
        weights[own] += int(weight)
        lines[own] += 1
    return weights, lines


class Kept(check.Case):
    def unpack(self, name):
        with lzma.open(os.path.join(KEPT, name + ".xz")) as packed, open(self.path(name), "wb") as file:
            file.write(packed.read())

    def test_exported(self):
        names = sorted(os.path.basename(path)[:-len(".folded")] for path in glob.glob(os.path.join(KEPT, "*.folded")))
        self.assertGreaterEqual(len(names), 5)
        for name in names:
            self.unpack(name + ".greenprof")
            done = check.greenprof("export", name + ".greenprof", "--format", "folded", "--by", "coroutine", cwd=self.directory)
            self.assertEqual((done.returncode, done.stderr), (0, b""), name)
            with open(os.path.join(KEPT, name + ".folded"), encoding="utf-8") as file:
                (weights, lines), (kept, kept_lines) = by_own_frames(done.stdout.decode()), by_own_frames(file.read())
            self.assertEqual(set(weights), set(kept), name)
            for stack, weight in weights.items():
                self.assertLessEqual(abs(weight - kept[stack]), max(lines[stack], kept_lines[stack]), (name, stack))
            for command in (["info"], ["report"], ["report", "--by", "coroutine"], ["coroutines"]):
                shown = check.greenprof(*command, self.path(name + ".greenprof"))
                self.assertEqual((shown.returncode, shown.stderr), (0, b""), (name, command))

    def test_recovered(self):
        names = sorted(os.path.basename(path)[:-len(".greenprof.xz")] for path in glob.glob(os.path.join(KEPT, "killed-*.greenprof.xz")))
        self.assertEqual(names, sorted(RECOVERED))
        for name in names:
            for suffix in (".greenprof", ".greenprof.rings"):
                self.unpack(name + suffix)
            done = check.greenprof("recover", name + ".greenprof", "-o", "out", cwd=self.directory)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            capture = Capture(self.path("out"))
            self.assertEqual(counts_of(capture), RECOVERED[name][1])
            self.assertEqual(hash_of(capture), RECOVERED[name][0])
            shown = check.greenprof("report", self.path("out"))
            self.assertEqual((shown.returncode, shown.stderr), (0, b""))


if __name__ == "__main__":
    check.main()
