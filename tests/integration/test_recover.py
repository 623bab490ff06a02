# SPDX-License-Identifier: MIT
"""`greenprof recover`: what is left of a program that was killed. With `run --flush MS` at most so much is missing, the
requests that it was in the middle of are there, and the capture is whole."""
import os
import random
import re
import resource
import shutil
import signal
import statistics
import subprocess
import time

import check
from capture import Capture

END_KILLED, SPAN_OPEN = 8, 2  # capture/format.h, model/span_kind.h
FLUSH_MS = 10
FLUSH = ("--flush", str(FLUSH_MS))
OUT_SUFFIX = "-recovered.greenprof"


class Recover(check.Case):
    def kill(self, name, seconds, *options, after=None):
        """Returns a capture that ends about `seconds` after its first write, or after another file has come, and the
        moment of its end on the monotonic clock."""
        output, awaited = self.path(name), self.path(after or name)
        command = [check.GREENPROF, "run", "-q", *options, "-o", output, "--", check.program("parts"), "100"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        start = time.monotonic()
        while not os.path.exists(awaited) or os.path.getsize(awaited) < 1000:
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic() - start, check.LIMIT_SECONDS)
            time.sleep(0.01)
        time.sleep(seconds)
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        process.kill()
        process.wait(check.LIMIT_SECONDS)
        return output, now

    def recover(self, *arguments, status=0):
        done = check.greenprof("recover", *arguments, cwd=self.directory)
        self.assertEqual(done.returncode, status, done.stderr)
        return (done.stderr if status else done.stdout).decode()

    def check_recovered(self, path):
        capture = Capture(path)
        self.assertTrue(capture.whole)
        self.assertEqual(capture.end, END_KILLED)
        return capture

    def test_killed(self):
        """All but the last moments are there, and so is the request that was open."""
        chance, lost_ms = random.Random(17), []
        for i in range(8):
            path, end_ns = self.kill(f"killed{i}.greenprof", 0.3 + chance.random() / 2, *FLUSH)
            with open(path, "rb") as file:
                before = file.read()
            said = self.recover(path)
            with open(path, "rb") as file:
                self.assertEqual(file.read(), before)
            recovered = path.replace(".greenprof", OUT_SUFFIX)
            self.assertRegex(said, rf"^{recovered}: \d\.\d{{3}} s, \d+ samples, [12] spans? open(; the last \d+ bytes .*)?; "
                                   rf"of them \d+ samples and \d+ ended spans are from {path}.rings; next: greenprof explain {recovered}\n$")
            self.assertEqual(os.stat(recovered).st_mode & 0o777, 0o600)
            capture = self.check_recovered(recovered)
            from_rings = int(re.search(r"; of them (\d+) samples", said)[1])
            self.assertEqual(len(capture.samples), len(Capture(path).samples) + from_rings)
            lost_ms.append((end_ns - capture.start_monotonic_ns - max(sample.time_ns for sample in capture.samples)) / 1e6)
            parent, = (span for span in capture.spans if span.name == "parent")
            self.assertEqual(parent.flags & SPAN_OPEN, SPAN_OPEN)
            self.at_least("latency of the open request, s", (parent.end_ns - parent.start_ns) / 1e9,
                          (end_ns - capture.start_monotonic_ns) / 1e9 * 0.75 - 0.1)
            self.assertEqual(len({span.id for span in capture.spans}), len(capture.spans))
            shown = check.greenprof("report", "--by", "request", recovered).stdout.decode()
            self.assertRegex(shown, r" open +[0-9a-f]{32} request parent\n")
            self.assertIn("the program was killed, or left by a system call of its own: recovered", shown)
        self.at_most("milliseconds lost", statistics.median(lost_ms), FLUSH_MS, 20)

    def test_sums(self):
        """What is exact and what is sampled are of the same moment, within what is flushed at a time."""
        path, _ = self.kill("killed.greenprof", 2, *FLUSH)
        self.recover(path, "-o", "out")
        capture = self.check_recovered(self.path("out"))
        self.near("exact and sampled", capture.process_cpu_ns / 1e9, capture.sampled_ns / 1e9, 0.01, 0.02)

    def test_standard(self):
        """Without --flush: a quarter of a second, and requests that are as old."""
        path, end_ns = self.kill("killed.greenprof", 1.5)
        self.recover(path, "-o", "out")
        capture = self.check_recovered(self.path("out"))
        self.assertEqual([span.name for span in capture.spans if span.flags & SPAN_OPEN], ["parent"])
        last_ns = capture.start_monotonic_ns + max(sample.time_ns for sample in capture.samples)
        self.at_most("milliseconds lost", (end_ns - last_ns) / 1e6, 250, 50)

    def test_parts(self):
        """What a part before has of a request is not its end."""
        path, _ = self.kill("part.greenprof", 0.5, "--rotate", "1s", after="part-0001.greenprof")
        said = self.recover("part-0001.greenprof", path)
        self.assertIn("part-0001.greenprof: has its end; there is nothing to recover\n", said)
        capture = self.check_recovered(self.path("part" + OUT_SUFFIX))
        self.assertIn("parent", [span.name for span in capture.spans if span.flags & SPAN_OPEN])

    def test_cut(self):
        """At any byte: what is before is kept, and the file is whole again."""
        path, _ = self.kill("killed.greenprof", 0.5, *FLUSH)
        with open(path, "rb") as file:
            data = file.read()
        samples, half_written = len(Capture(path).samples), 0
        for cut in range(1, 200, 3):
            with open(self.path("cut"), "wb") as file:
                file.write(data[:-cut])
            half_written += " bytes were half written and are left out" in self.recover("cut")
            capture = self.check_recovered(self.path("cut-recovered"))
            self.at_most("samples", len(capture.samples), samples)
            self.at_least("samples", len(capture.samples), samples - 100)
        self.assertGreater(half_written, 40)  # of 67; others are between two chunks, or in the padding of one
        for size in (128, 200, 280):  # the header, and nothing else; half of its copy
            with open(self.path("cut"), "wb") as file:
                file.write(data[:size])
            self.recover("cut")
            self.assertEqual(check.greenprof("info", self.path("cut-recovered")).returncode, 0)
        with open(self.path("cut"), "wb") as file:  # damaged in the middle: that stays
            file.write(data[:len(data) // 2] + bytes(8) + data[len(data) // 2 + 8:])
        os.unlink(self.path("cut-recovered"))
        self.recover("cut")
        done = check.greenprof("info", self.path("cut-recovered"))
        self.assertIn("recovered", done.stdout.decode())
        self.assertRegex(done.stdout.decode(), r"(?m)^  damage  ")

    def test_merged(self):
        """What is open stays so through merge."""
        one, _ = self.kill("one.greenprof", 0.6)
        other, _ = self.kill("other.greenprof", 0.6)
        done = check.greenprof("merge", one, other, "-o", self.path("all.greenprof"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(self.recover("all.greenprof"), ", [2-4] spans open")  # each with one within it, perhaps
        capture = self.check_recovered(self.path("all" + OUT_SUFFIX))
        self.assertEqual([span.name for span in capture.spans if span.flags & SPAN_OPEN].count("parent"), 2)

    def test_whole(self):
        """A capture that has its end: nothing is made of it, or a copy."""
        self.profile(["parts", 0.5])
        self.assertEqual(self.recover("capture.greenprof"), "capture.greenprof: has its end; there is nothing to recover\n")
        self.assertEqual(os.listdir(self.directory), ["capture.greenprof"])
        self.recover("capture.greenprof", "-o", "copy")
        with open(self.path("capture.greenprof"), "rb") as one, open(self.path("copy"), "rb") as other:
            self.assertEqual(one.read(), other.read())

    def test_bad_use(self):
        path, _ = self.kill("killed.greenprof", 0.1)
        shutil.copyfile(path, self.path("other"))
        with open(self.path("text"), "w") as file:
            file.write("no capture\n" * 100)
        with open(self.path("short"), "wb") as file, open(path, "rb") as whole:
            file.write(whole.read(50))
        before = sorted(os.listdir(self.directory))
        for status, said, *arguments in (
                (2, "missing FILE"), (2, "--output is of one FILE", path, "other", "-o", "out"),
                (1, "none: No such file", "none"), (1, "text: is not a greenprof capture", "text"),
                (1, "short: is a capture cut off inside its file header", "short"),
                (1, "is an input and cannot be the output too", path, "-o", path),
                (1, "needs a file with a name", path, "-o", "-"), (1, "/dev/null: is not a regular file", path, "-o", "/dev/null"),
                (1, "No such file", path, "-o", "none/out"), (1, "/dev/null: is not a regular file", "/dev/null"),
                (1, ".: Is a directory", path, "-o", ".")):
            self.assertIn(said, self.recover(*arguments, status=status))
            self.assertEqual(sorted(os.listdir(self.directory)), before, said)

    def test_full_disk(self):
        """Nothing half written stays, and the capture is as it was."""
        path, _ = self.kill("killed.greenprof", 0.5, *FLUSH)
        size = os.path.getsize(path)

        def limited():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size - 100, size - 100))

        done = check.greenprof("recover", path, preexec_fn=limited)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{path.replace('.greenprof', OUT_SUFFIX)}: File too large", done.stderr.decode())
        self.assertEqual(sorted(os.listdir(self.directory)), ["killed.greenprof", "killed.greenprof.rings"])
        self.assertEqual(os.path.getsize(path), size)


if __name__ == "__main__":
    check.main()
