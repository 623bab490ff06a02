# SPDX-License-Identifier: MIT
"""`run --rotate`: a recording in parts. They add up to one file, requests are whole in the part where they end, and no
more of them stay than were asked for."""
import collections
import glob
import os
import re
import shutil
import signal
import subprocess
import time

import check
from capture import Capture

END_EXIT, END_TURNED = 0, 7  # capture/format.h


class Parts(check.Case):
    def parts(self, name="capture"):
        """The captures of a recording, the oldest first."""
        aside = sorted(glob.glob(os.path.join(self.directory, f"{name}-[0-9][0-9][0-9][0-9].greenprof")))
        return [*aside, os.path.join(self.directory, f"{name}.greenprof")]

    def aside(self):
        return [os.path.basename(path) for path in self.parts()[:-1]]

    def check_parts(self, paths):
        captures = [Capture(path) for path in paths]
        for path, capture in zip(paths, captures):
            self.assertTrue(capture.whole, path)
            self.assertEqual(capture.end, END_EXIT if path == paths[-1] else END_TURNED, path)
            self.check_health(capture)
            self.assertNotIn(b"", (capture.meta["exe"], capture.meta["cmdline"]))
        starts = [capture.start_monotonic_ns for capture in captures]  # of the part, or of a request that is open
        for former, latter in zip(starts, starts[1:]):
            self.assertLess(former, latter + 1000000)
        self.assertEqual({capture.pid for capture in captures}, {captures[0].pid})
        return captures

    def test_add_up(self):
        """CPU time and switches of coroutines that live in all parts, samples and the process' clock."""
        run = self.profile(["coroutines", 4, 400], options=("--rotate", "1s"))
        paths = self.parts()
        self.assertGreaterEqual(len(paths), 4)  # more on a busy machine
        captures = self.check_parts(paths)
        ledger = collections.defaultdict(lambda: [0.0, 0])
        for path in paths:
            for row in run.ledger(path=path):
                ledger[row[6].strip()][0] += row[0]
                ledger[row[6].strip()][1] += row[3]
        for name, (seconds, switches) in run.truth.coroutines.items():
            rounding = 0.0005 * len(paths)  # there are many of them on a busy machine
            self.near(f"CPU time of {name}", ledger[name][0], seconds, 0.005, 0.002 + rounding)
            self.assertEqual(ledger[name][1], switches, name)
        self.near("process", sum(capture.process_cpu_ns for capture in captures) / 1e9, run.truth.total, 0.005, 0.01)
        self.near("sampled", sum(capture.sampled_ns for capture in captures) / 1e9, run.truth.total, 0.005, 0.01)
        together = run.ledger(path=[paths[-1], *paths[:-1]])  # each coroutine once, in whatever order they are named
        self.assertEqual(len({row[4] for row in together}), len(together))
        for name, (seconds, switches) in run.truth.coroutines.items():
            row, = (row for row in together if row[6].strip() == name)
            self.near(f"CPU time of {name} in all parts", row[0], seconds, 0.005, 0.002)
            self.assertEqual(row[3], switches, name)
        done = check.greenprof("report", *paths)
        self.assertIn(f"/coroutines (pid {captures[0].pid})\n", done.stdout.decode())
        done = check.greenprof("export", *paths, "--format", "folded")
        self.check_functions(check.Folded(check.measured.check_status(done).stdout.decode()), run.truth, 4000)

    def test_last_word(self):
        output = os.path.join(self.directory, "capture.greenprof")
        done = check.greenprof("run", "--rotate", "1s", "-o", output, "--", check.program("parts"), 2.5)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr.decode(), rf" samples, none lost;( took [^\n]* us here[^;]*;)? the last of {len(self.parts())} parts; "
                                               rf"next: greenprof explain {output}\n$")

    def test_requests_are_whole(self):
        run = self.profile(["parts", 3.5], options=("--rotate", "1s"))
        (_, count, seconds), = run.truth.values["SPANS"]
        captures = self.check_parts(self.parts())
        self.assertGreater(len(captures), 3)
        spans = [span for capture in captures for span in capture.spans]
        self.assertEqual(collections.Counter(span.name for span in spans), {"short": int(count), "parent": 1})
        self.assertEqual(len({span.id for span in spans}), len(spans))
        self.assertEqual({span.flags for span in spans}, {0})
        last, = (span for span in captures[-1].spans if span.name == "parent")
        self.near("latency", (last.end_ns - last.start_ns) / 1e9, float(seconds), 0.001, 0.002)
        self.near("CPU time", last.cpu_ns / 1e9, run.truth.total, 0.005, 0.002)
        inner = [span for span in captures[-1].spans if span.name == "short"]
        self.assertTrue(all(last.start_ns <= span.start_ns <= span.end_ns <= last.end_ns for span in inner))

    def test_size_and_number(self):
        """The numbers go on in the next run, and the oldest go."""
        self.profile(["steps", "tell", 2], options=("--rotate", "64K"))
        sizes = [os.path.getsize(path) for path in self.parts()[:-1]]
        self.assertGreater(len(sizes), 1)
        self.assertEqual(self.aside(), [f"capture-{i + 1:04}.greenprof" for i in range(len(sizes))])
        self.at_most("bytes of a part", max(sizes), 3 * 65536)  # it is looked at 5 times a second
        self.at_least("bytes of a part", min(sizes), 65536 / 3)
        other = os.path.join(self.directory, "capture-x.greenprof")
        with open(other, "w"):
            pass
        self.profile(["steps", "tell", 2], options=("--rotate", "64K,1h", "--keep", "2"))
        kept = [int(re.findall(r"\d+", name)[0]) for name in self.aside()]
        self.assertEqual(len(kept), 2)
        self.assertGreater(kept[0], len(sizes))
        self.assertEqual(kept, list(range(kept[0], kept[0] + 2)))
        self.assertTrue(os.path.exists(other))

    def test_children(self):
        """A forked child turns its own file."""
        self.profile(["parts", 2.5, "fork"], options=("--rotate", "1s", "--follow", "all"), healthy=False)
        parent = self.check_parts(self.parts())
        others = {path for path in glob.glob(os.path.join(self.directory, "capture.greenprof.*"))
                  if not path.endswith(".old")}
        first, = (path for path in others if "-" not in os.path.basename(path))
        child = self.check_parts([*sorted(others - {first}), first])
        self.assertGreater(len(child), 2)
        self.assertNotEqual(parent[0].pid, child[0].pid)
        self.assertEqual({span.name for capture in child for span in capture.spans}, {"short", "child"})

    def test_killed(self):
        output = os.path.join(self.directory, "capture.greenprof")
        process = subprocess.Popen([check.GREENPROF, "run", "--rotate", "1s", "-o", output, "--", check.program("parts"),
                                    "100"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        start = time.monotonic()
        while len(self.aside()) < 2:
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic() - start, check.LIMIT_SECONDS)
            time.sleep(0.05)
        os.kill(Capture(self.parts()[0]).pid, signal.SIGKILL)
        process.wait(check.LIMIT_SECONDS)
        self.assertIn("killed by SIGKILL: what came after the last write is missing", process.stderr.read())
        for path in self.parts()[:2]:
            self.assertEqual((Capture(path).whole, Capture(path).end), (True, END_TURNED))

    def run_until_signal(self, *options):
        """A program that may be sent SIGUSR1, and runs on."""
        output = os.path.join(self.directory, "capture.greenprof")
        process = subprocess.Popen([check.GREENPROF, "run", "-q", "--rotate-signal", "USR1", *options, "-o", output, "--",
                                    check.program("parts"), "100"], stdout=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def is_ready():
            with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
                caught, = (int(line.split()[1], 16) for line in file if line.startswith("SigCgt:"))
            return caught >> (signal.SIGUSR1 - 1) & 1
        check.until(is_ready, process=process)
        return process

    def test_signal(self):
        process = self.run_until_signal()
        for count in 1, 2, 3:
            process.send_signal(signal.SIGUSR1)
            check.until(lambda count=count: len(self.aside()) >= count, process=process)
        self.assertEqual(self.aside(), [f"capture-000{number}.greenprof" for number in (1, 2, 3)])
        for path in self.parts()[:3]:
            self.assertEqual((Capture(path).whole, Capture(path).end), (True, END_TURNED))

    def test_size_of_all(self):
        """The oldest parts of the directory go, whatever program put them aside; what is no part stays."""
        self.profile(["steps", "tell", 2], output="other.greenprof", options=("--rotate", "64K"))
        others = self.parts("other")[:-1]
        self.assertGreater(len(others), 1)
        for number, path in enumerate(others):
            os.utime(path, (time.time() - 300 + number, time.time() - 300 + number))
        copy = os.path.join(self.directory, "copy-0001.greenprof")
        shutil.copy2(others[0], copy)
        process = self.run_until_signal("--keep-size", f"{sum(map(os.path.getsize, others[1:])) + 512 >> 10}K")
        process.send_signal(signal.SIGUSR1)
        check.until(self.aside, process=process)
        self.assertFalse(os.path.exists(others[0]))
        self.assertTrue(os.path.exists(others[-1]))
        self.assertTrue(os.path.exists(copy))
        self.assertTrue(os.path.exists(self.parts("other")[-1]))

    def test_usage(self):
        for options, said in (
                (("--rotate", "5"), "--rotate 5: must be a size from 64K on"), (("--rotate", "1K"), "--rotate 1K: must be"),
                (("--rotate", "1s,2s"), "--rotate 1s,2s: must be"), (("--rotate", "1d"), "--rotate 1d: must be"),
                (("--rotate", "1s,"), "--rotate 1s,: must be"), (("--rotate", "99999999999999h"), "must be"),
                (("--keep", "3"), "--keep is of captures that --rotate puts aside"),
                (("--keep-size", "1M"), "--keep is of captures that --rotate puts aside"),
                (("--rotate-signal", "SEGV"), "--rotate-signal SEGV: must be one of"),
                (("--budget", "1"), "--budget 1: must be a share"), (("--budget", "60%"), "--budget 60%: must be a share"),
                (("--memory-limit", "1M"), "--memory-limit 1M: must be a size from 16M on"),
                (("--rotate", "1s", "--exact"), "--rotate does not go with --exact")):
            done = check.greenprof("run", *options, "--", "true", cwd=self.directory)
            self.assertEqual((done.returncode, os.listdir(self.directory)), (2, []), options)
            self.assertIn(said, done.stderr.decode())
        done = check.greenprof("run", "--", "true", cwd=self.directory, env={**os.environ, "GREENPROF_ROTATE": "often"})
        self.assertEqual((done.returncode, os.listdir(self.directory)), (1, []))
        self.assertIn("GREENPROF_ROTATE: often: must be", done.stderr.decode())


if __name__ == "__main__":
    check.main()
