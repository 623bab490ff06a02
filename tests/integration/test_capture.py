# SPDX-License-Identifier: MIT
"""What a capture survives: a reader that stalls, SIGKILL, a full disk, children of its own."""
import fcntl
import os
import resource
import signal
import subprocess
import threading
import time

import check
from capture import Capture

SMALL_PIPE = 4096


class CaptureSurvives(check.Case):
    def preloaded(self, output, **options):
        """Run the program in the environment that `greenprof run` would make, which refuses pipes itself."""
        library = os.path.join(check.LIBRARIES, "libgreenprof-core.so")
        done = subprocess.run(["sh", "-c", 'GREENPROF_PID=$$ LD_PRELOAD=$0 exec "$1"', library, check.program("stalled")],
                              env={**os.environ, "GREENPROF_OUTPUT": output, "GREENPROF_FREQUENCY": "10000"},
                              capture_output=True, timeout=check.LIMIT_SECONDS, check=False, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.decode().split(), ["forks", "20", "profiles", "20"])

    def report(self, path):
        done = check.greenprof("report", path)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout.decode(), done.stderr.decode()

    def test_stalled_reader(self):
        """Nothing waits for a pipe that is not read: not the program, not its forks, not its profiles."""
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, SMALL_PIPE)
        self.preloaded(fifo)
        self.assertGreater(len(os.read(reader, 2 * SMALL_PIPE)), 1000)  # it was in use
        os.close(reader)

    def test_slow_reader(self):
        """A pipe that is emptied late holds all of it."""
        fifo, copy = self.path("fifo"), self.path("copy.greenprof")
        os.mkfifo(fifo)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, SMALL_PIPE)

        def empty():
            time.sleep(1.0)
            os.set_blocking(reader, True)
            with open(copy, "wb") as file:
                while piece := os.read(reader, 65536):
                    file.write(piece)

        thread = threading.Thread(target=empty)
        thread.start()
        self.preloaded(fifo)
        thread.join()
        os.close(reader)
        capture = Capture(copy)
        self.assertTrue(capture.whole)
        self.assertEqual(capture.end, 0)
        self.at_least("samples", len(capture.samples), 1000)
        self.assertEqual(len(capture.samples) + capture.counters["unwritten"], capture.counters["samples"])

    def test_killed(self):
        """What was written before SIGKILL is whole, and the report says that there is no end."""
        output = self.path("killed.greenprof")
        process = subprocess.Popen([check.GREENPROF, "run", "-F", "2000", "-o", output, "--", check.program("stalled")],
                                   stdout=subprocess.DEVNULL)
        while not os.path.exists(output) or os.path.getsize(output) < 6000:
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        pid = Capture(output).pid
        os.kill(pid, signal.SIGKILL)
        process.wait(check.LIMIT_SECONDS)
        capture = Capture(output)
        self.assertTrue(capture.whole)
        self.assertIsNone(capture.end)
        self.at_least("samples", len(capture.samples), 100)
        self.assertIn("has no end", self.report(output)[0])

    def test_full_disk(self):
        """A limit on the size of files is a full disk that a test can have: the capture ends with a whole chunk."""
        output, limit = self.path("full.greenprof"), 24000

        def limited():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        self.preloaded(output, preexec_fn=limited)
        capture = Capture(output)
        self.assertTrue(capture.whole)
        self.assertLessEqual(os.path.getsize(output), limit)
        self.at_least("samples", len(capture.samples), 100)
        self.assertEqual(capture.end, 3)
        said, _ = self.report(output)
        self.assertIn("could not be written any further: File too large", said)


if __name__ == "__main__":
    check.main()
