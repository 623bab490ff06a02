# SPDX-License-Identifier: MIT
"""`--budget` where hooks alone take more: recording rests for a part of the time, and says so.

Programs that do little but switch, until their input ends; states are waited for, no time is asserted.
"""
import glob
import json
import os
import signal
import subprocess
import time

import check
from capture import Capture

PYTHON = "/usr/bin/python3"
GREENLETS = """
import os
import select
import greenlet

def serve():
    while True:
        sum(range(200))
        main.switch()

main = greenlet.getcurrent()
workers = [greenlet.greenlet(serve)]
while True:
    if select.select([0], [], [], 0)[0]:
        text = os.read(0, 100)
        if not text:
            break
        workers += [greenlet.greenlet(serve) for _ in range(text.count(b"\\n"))]
    for _ in range(400):
        for worker in workers:
            worker.switch()
"""
RESTED, NO_TIMES = 128, 32
BORN, CHILDREN, PARTS = 12, 6, 2
RESTS, LEAST_WINDOW_MS = 2, 400
# Hooks of one thread take 4 to 6: rests of a few seconds, and no rate to be lowered before the first.
OFTEN = ("--budget", "2%", "--flush", "400", "-F", "10")
HALF = (check.program("rests"), "half")  # of a processor: some such tests run at once
PAUSE = 0.2  # seconds: each question is answered at the budget's cost
EXIT, STOPPED, EXEC, TURNED = 0, 1, 2, 7  # capture/format.h


class Rests(check.Case):
    def start(self, *command, options=("--budget", "1%", "--flush", "400")):
        self.output = os.path.join(self.directory, "capture.greenprof")
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.directory}
        process = subprocess.Popen([check.GREENPROF, "run", "--control", *options, "-o", self.output, "--", *command],
                                   stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def ask(self, command, process, *options):
        return check.greenprof(command, process.pid, *options, env=self.environment)

    def wait_for_rests(self, process, count):
        def rests():
            done = self.ask("status", process, "--json")
            found = json.loads(done.stdout).get("rests", 0) if done.returncode == 0 else 0
            return found if found >= count else 0
        return check.until(rests, f"{count} rests", process, PAUSE)

    def bear(self, process):
        """One more worker at a time, in windows and in rests; then so many windows that each has been in one."""
        rests = self.wait_for_rests(process, 1)
        for _ in range(BORN):
            process.stdin.write(b"\n")
            process.stdin.flush()
            time.sleep(0.2)
        self.wait_for_rests(process, rests + 2)
        return rests

    def rested_meanwhile(self, process):
        """How long it rested between two questions, the least time that lay between them, seconds, and is that known?"""
        rested, asked = [], []
        for _ in range(2):
            asked.append(time.monotonic())
            done = self.ask("status", process, "--json")
            rested.append(json.loads(done.stdout).get("rested_seconds", 0) if done.returncode == 0 else 0)
            asked.append(time.monotonic())
        return rested[1] - rested[0], asked[2] - asked[1], rested[0] > 0

    def has_rest(self, process):
        """Was it in a rest all the while?"""
        rested, asked, is_known = self.rested_meanwhile(process)
        return is_known and rested >= 0.9 * asked

    def has_window(self, process):
        rested, _, is_known = self.rested_meanwhile(process)
        return is_known and rested == 0

    def wait_for_a(self, process, has):
        check.until(lambda: has(process), process=process, pause=PAUSE)

    def tell_in_a_rest(self, process, letters):
        self.wait_for_a(process, self.has_rest)
        process.stdin.write(letters)
        process.stdin.flush()

    def end(self, process):
        process.stdin.close()
        said = process.stderr.read().decode()
        process.stderr.close()
        self.assertEqual(process.wait(check.limit()), 0)
        return said

    def look_at_sums(self, *captures):
        """Of the windows all is known, and of the rests that they were."""
        for capture in captures:
            self.assertTrue(capture.whole)
            self.assertEqual(capture.counters["rests"] > 0, capture.counters["rest_ns"] > 0)
        counters = {name: sum(capture.counters[name] for capture in captures) for name in ("rests", "rest_ns", "rest_cpu_ns")}
        process_ns = sum(capture.process_cpu_ns for capture in captures)
        recorded_ns = process_ns - counters["rest_cpu_ns"]
        ended_by_program = len(captures)  # the last rest of each may be as short as it likes
        self.assertGreaterEqual(counters["rest_ns"], (counters["rests"] - ended_by_program) * 10**8)
        self.at_most("recorded", recorded_ns / process_ns, 0.98)
        self.near("ledger", sum(cpu for capture in captures for cpu, _ in capture.ledger.values()), recorded_ns, 0.03, 2e6)
        pending_ns = sum(capture.counters["pending_ns"] + capture.counters["unsampled_ns"] for capture in captures)
        self.near("samples", sum(capture.sampled_ns for capture in captures) + pending_ns, recorded_ns, 0.05, 2e6)
        return recorded_ns

    def look_at_words(self, path):
        """What the commands say of a capture that rested."""
        for command in ("info", "report") if Capture(path).samples else ("info",):
            text = check.greenprof(command, path).stdout.decode()
            self.assertRegex(text, r"rested +recorded \d+ % of the time, by budget \(\d+ rests?\): \d+\.\d+ s, with \d+\.\d+ s of CPU time")

    def look_at(self, capture, workers):
        """What is true whatever switches."""
        self.look_at_sums(capture)
        for coro in workers:
            self.assertGreater(capture.ledger[coro.id][1], 100, coro)
        per_switch = [cpu / switches for cpu, switches in (capture.ledger[coro.id] for coro in workers)]
        middle = sorted(per_switch)[len(per_switch) // 2]
        # A rest's CPU time is more than a worker's own; windows, of which each has seen others, differ by less than 2.
        self.at_most("CPU time of a switch, most beside the middle one", max(per_switch) / middle, 2)
        self.at_least("CPU time of a switch, least beside the middle one", min(per_switch) / middle, 0.5)

    def test_coroutines(self):
        process = self.start(check.program("rests"))
        self.bear(process)
        status = self.ask("status", process).stdout.decode()
        self.assertRegex(status, r"recorded \d+ % of the time, by budget \(\d+ rests\)")
        self.assertRegex(self.ask("top", process, "--once").stdout.decode(), r"recorded \d+ % of the time, by budget \(\d+ rests\)")
        said = self.end(process)
        self.assertRegex(said, r"recorded \d+ % of the time, by budget \(\d+ rests\), the hooks of \d+ switches a second alone cost")
        capture = Capture(self.output)
        workers = [coro for coro in capture.coros.values() if coro.name.startswith("worker ")]
        self.assertEqual(sorted(coro.name for coro in workers), sorted(f"worker {i}" for i in range(2 + BORN)))
        self.look_at(capture, workers)
        self.look_at_requests(capture)
        self.look_at_words(self.output)
        self.assertRegex(check.greenprof("info", self.output).stdout.decode(),
                         r"\d+ times that recording rested, to stay within the budget")

    def look_at_requests(self, capture):
        """Those of windows are known in full; of those across a rest a part is not, and of those within one nothing is."""
        blocks = [span for span in capture.spans if span.name == "block"]
        kinds = {flags: [span for span in blocks if span.flags & (RESTED | NO_TIMES) == flags]
                 for flags in (0, RESTED, RESTED | NO_TIMES)}
        self.assertEqual(sum(len(spans) for spans in kinds.values()), len(blocks))
        for flags, spans in kinds.items():
            self.assertGreater(len(spans), 0, flags)
            known = sum(span.slice_ns + span.ready_ns + span.parked_ns + span.waiting_ns for span in spans)
            lasted = sum(span.end_ns - span.start_ns for span in spans)
            if flags == 0:
                self.near("known", known, lasted, 0.02)
            elif flags == RESTED:
                self.assertGreater(known, 0)
                self.assertLess(known, lasted)
            else:
                self.assertEqual(known, 0)
        for flags, remark in ((RESTED, r"\d+\.\d+ ms of it not recorded, by budget"), (RESTED | NO_TIMES, "not recorded, by budget")):
            shown = check.greenprof("trace", "show", kinds[flags][-1].trace, self.output)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertRegex(shown.stdout.decode(), rf"\({remark}\)")

    def test_greenlets(self):
        if subprocess.run([PYTHON, "-c", "import greenlet"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no greenlet for /usr/bin/python3")
        process = self.start(PYTHON, "-c", GREENLETS, options=("--budget", "1%", "--flush", "400"))
        self.bear(process)
        self.end(process)
        capture = Capture(self.output)
        workers = [coro for coro in capture.coros.values() if coro.thread == 0]  # those that were made in rests have no parent
        self.assertEqual(len(workers), 1 + BORN)
        self.look_at(capture, workers)

    def test_children(self):
        """Forked in a rest as in a window, a child is recorded from its start."""
        process = self.start(check.program("rests"), "forks")
        self.wait_for_rests(process, 1)
        for _ in range(CHILDREN):
            process.stdin.write(b"\n")
            process.stdin.flush()
            time.sleep(0.5)
        self.end(process)
        children = [Capture(path) for path in glob.glob(self.output + ".*")]
        self.assertEqual(len(children), CHILDREN)
        for capture in children:
            self.assertTrue(capture.whole)
            recorded_ns = capture.process_cpu_ns - capture.counters["rest_cpu_ns"]
            self.assertGreater(recorded_ns, 0)
            self.near("ledger", sum(cpu for cpu, _ in capture.ledger.values()), recorded_ns, 0.05)

    def rotate_in_a_rest(self, process):
        """Returns whether it was one: no part begins a rest as early as this."""
        before = len(self.aside())
        self.wait_for_a(process, self.has_rest)
        process.send_signal(signal.SIGUSR1)
        start = time.monotonic()
        while len(self.aside()) == before:
            self.assertLess(time.monotonic() - start, check.limit())
            time.sleep(0.01)
        status = json.loads(self.ask("status", process, "--json").stdout)
        return status["seconds"] < 0.4 and status["rested_seconds"] > 0

    def aside(self):
        return sorted(glob.glob(os.path.join(self.directory, "capture-[0-9][0-9][0-9][0-9].greenprof")))

    def test_parts(self):
        """A recording is rotated during rests: each part says how much of it was recorded, and
        requests that began parts ago that they were."""
        process = self.start(*HALF, options=(*OFTEN, "--rotate-signal", "USR1"))
        self.wait_for_rests(process, 1)
        start = time.monotonic()
        turns = 0
        while turns < PARTS:
            self.assertLess(time.monotonic() - start, check.limit())
            turns += self.rotate_in_a_rest(process)
        self.wait_for_rests(process, 2)  # the part rotated within, and the next
        said = self.end(process)
        paths = [*self.aside(), self.output]
        self.assertRegex(said, rf"recorded \d+ % of the time, by budget \(\d+ rests?\).* the last of {len(paths)} parts")
        captures = [Capture(path) for path in paths]
        self.assertEqual([capture.end for capture in captures], [TURNED] * (len(paths) - 1) + [EXIT])
        recorded_ns = self.look_at_sums(*captures)
        for path, capture in zip(paths, captures):
            if capture.counters["rests"] > 0:
                self.look_at_words(path)
            self.assertLess(capture.counters["rest_cpu_ns"], capture.process_cpu_ns + 10**6)  # two clocks, read in turn
        folded = self.look_at_folded(paths)
        self.near("folded", folded.total, recorded_ns / 1e9, 0.05, 0.05)
        blocks = [(path, span) for path, capture in zip(paths, captures) for span in capture.spans if span.flags & RESTED]
        self.assertGreater(len(blocks), PARTS)
        for path, span in blocks:
            self.assertEqual(check.greenprof("trace", "show", span.trace, path).returncode, 0)

    def look_at_folded(self, paths):
        folded = check.greenprof("export", *paths, "--format", "folded")
        self.assertEqual(folded.returncode, 0, folded.stderr)
        return check.Folded(folded.stdout.decode())

    def test_exec(self):
        """In a rest the program becomes another one, and fails to: each has its own capture."""
        process = self.start(*HALF, options=OFTEN)
        self.tell_in_a_rest(process, b"n")
        rests = self.wait_for_rests(process, 1)
        self.wait_for_rests(process, rests + 1)
        self.tell_in_a_rest(process, b"e")
        self.wait_for_file(process, self.output + ".1")
        self.wait_for_rests(process, 2)
        self.tell_in_a_rest(process, b"e")
        self.wait_for_file(process, self.output + ".2")
        self.wait_for_rests(process, 1)
        said = self.end(process)
        self.assertRegex(said, r"recorded \d+ % of the time, by budget \(\d+ rests?\)")
        for path, end in ((self.output + ".1", EXEC), (self.output + ".2", EXEC), (self.output, EXIT)):
            capture = Capture(path)
            self.assertEqual(capture.end, end, path)
            self.assertGreater(capture.counters["rests"], 0)
            self.look_at_sums(capture)
            self.look_at_words(path)
            span = next(span for span in capture.spans if span.flags & RESTED)
            self.assertIn("not recorded, by budget", check.greenprof("trace", "show", span.trace, path).stdout.decode())

    def wait_for_file(self, process, path):
        check.until(lambda: os.path.exists(path), path, process)

    def test_slice_across_rests(self):
        """A coroutine keeps its thread from one window into others: no slice, and no hog, is longer than was recorded."""
        process = self.start(check.program("rests"))  # the hog halves the share of the hooks
        self.wait_for_rests(process, 1)
        process.stdin.write(b"h")
        process.stdin.flush()
        rests = self.wait_for_rests(process, 1)
        self.wait_for_rests(process, rests + RESTS)
        self.wait_for_a(process, self.has_window)
        process.stdin.write(b"o")
        self.end(process)
        capture = Capture(self.output)
        self.look_at_sums(capture)
        hog, = (coro for coro in capture.coros.values() if coro.name == "hog")
        recorded_ns = capture.end_ns - capture.counters["rest_ns"]
        self.at_least("longest slice of one that keeps its thread, ms", capture.longest_ns[hog.id] / 1e6, LEAST_WINDOW_MS)
        self.at_most("the same", capture.longest_ns[hog.id] / 1e6, recorded_ns / 1e6)
        self.at_least("hogs", sum(each.coro == hog.id for each in capture.hogs), 1)
        self.at_most("hogs, ms", sum(each.duration_ns for each in capture.hogs if each.coro == hog.id) / 1e6, recorded_ns / 1e6)
        self.at_most("the longest hog", max((each.duration_ns for each in capture.hogs), default=0) / 1e6, recorded_ns / 1e6)

    def test_signal_of_the_program(self):
        """In a rest the program takes the sampling signal, by sigaction() or without: recording goes on by another."""
        for letter in b"s", b"u":
            with self.subTest(letter):
                process = self.start(*HALF, options=OFTEN)
                self.wait_for_rests(process, 1)
                self.tell_in_a_rest(process, letter)
                rests = self.wait_for_rests(process, 1)
                self.wait_for_rests(process, rests + 1)
                self.end(process)
                capture = Capture(self.output)
                self.assertEqual((capture.end, capture.counters["signal_moved"]), (EXIT, 1))
                self.look_at_sums(capture)
                self.look_at_words(self.output)

    def test_all_signals_of_the_program(self):
        """In a rest the program takes each signal that there is: recording ends with that rest, and says so."""
        process = self.start(*HALF, options=OFTEN)
        self.wait_for_rests(process, 2)
        self.tell_in_a_rest(process, b"a")
        rests = self.wait_for_rests(process, 1)
        start = time.monotonic()
        while self.has_rest(process):
            self.assertLess(time.monotonic() - start, check.limit())
        self.end(process)
        capture = Capture(self.output)
        self.assertEqual((capture.end, capture.counters["rests"]), (STOPPED, rests))
        self.look_at_sums(capture)
        self.look_at_words(self.output)

    def test_profiles_do_not_rest(self):
        """Exact mode counts calls, which no window has all of."""
        process = self.start(check.program("rests"), options=("--budget", "1%", "--flush", "400", "--exact"))
        start = time.monotonic()
        missed = 0
        while missed == 0:
            self.assertLess(time.monotonic() - start, check.limit())
            time.sleep(0.1)
            self.ask("dump", process)
            missed = Capture(self.output).counters.get("budget_missed", 0)
        self.end(process)
        self.assertEqual(Capture(self.output).counters["rests"], 0)


if __name__ == "__main__":
    check.main(at_once=3)
