# SPDX-License-Identifier: MIT
"""Files that earlier versions wrote are read as they read them: a capture and the rings of a killed program, kept in
tests/capture/kept, whose recovery is the record for record same as the one of that version."""
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


class Kept(check.Case):
    def test_recovered(self):
        names = sorted(os.path.basename(path)[:-len(".greenprof.xz")] for path in glob.glob(os.path.join(KEPT, "killed-*.greenprof.xz")))
        self.assertEqual(names, sorted(RECOVERED))
        for name in names:
            for suffix in (".greenprof", ".greenprof.rings"):
                with lzma.open(os.path.join(KEPT, name + suffix + ".xz")) as packed, open(self.path(name + suffix), "wb") as file:
                    file.write(packed.read())
            done = check.greenprof("recover", name + ".greenprof", "-o", "out", cwd=self.directory)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            capture = Capture(self.path("out"))
            self.assertEqual(counts_of(capture), RECOVERED[name][1])
            self.assertEqual(hash_of(capture), RECOVERED[name][0])
            shown = check.greenprof("report", self.path("out"))
            self.assertEqual((shown.returncode, shown.stderr), (0, b""))


if __name__ == "__main__":
    check.main()
