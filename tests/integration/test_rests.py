# SPDX-License-Identifier: MIT
"""`--budget` where hooks alone take more: recording rests for a part of the time, and says so.

Programs that do little but switch, until their input ends; states are waited for, no time is asserted.
"""
import glob
import json
import os
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
BORN, CHILDREN = 12, 6


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
        start = time.monotonic()
        rests = 0
        while rests < count:
            self.assertLess(time.monotonic() - start, check.LIMIT_SECONDS)
            self.assertIsNone(process.poll())
            time.sleep(0.1)
            done = self.ask("status", process, "--json")
            rests = json.loads(done.stdout).get("rests", 0) if done.returncode == 0 else 0
        return rests

    def bear(self, process):
        """One more worker at a time, in windows and in rests; then so many windows that each has been in one."""
        rests = self.wait_for_rests(process, 1)
        for _ in range(BORN):
            process.stdin.write(b"\n")
            process.stdin.flush()
            time.sleep(0.2)
        self.wait_for_rests(process, rests + 2)
        return rests

    def end(self, process):
        process.stdin.close()
        said = process.stderr.read().decode()
        process.stderr.close()
        self.assertEqual(process.wait(check.LIMIT_SECONDS), 0)
        return said

    def look_at(self, capture, workers):
        """What is true whatever switches: of the windows all is known, and of the rests that they were."""
        self.assertTrue(capture.whole)
        counters = capture.counters
        recorded_ns = capture.process_cpu_ns - counters["rest_cpu_ns"]
        self.assertGreater(counters["rest_ns"], counters["rests"] * 10**8)
        self.assertLess(recorded_ns, capture.process_cpu_ns * 0.95)
        self.near("ledger", sum(cpu for cpu, _ in capture.ledger.values()), recorded_ns, 0.03)
        self.near("samples", capture.sampled_ns, recorded_ns, 0.05)
        for coro in workers:
            self.assertGreater(capture.ledger[coro.id][1], 100, coro)
        per_switch = [cpu / switches for cpu, switches in (capture.ledger[coro.id] for coro in workers)]
        middle = sorted(per_switch)[len(per_switch) // 2]
        for each in per_switch:
            self.near("CPU time of a switch", each, middle, 0.25)

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
        for command in ("info", "report"):
            text = check.greenprof(command, self.output).stdout.decode()
            self.assertRegex(text, r"rested +recorded \d+ % of the time, by budget \(\d+ rests\): \d+\.\d+ s, with \d+\.\d+ s of CPU time")
            self.assertRegex(text, r"\d+ times that recording rested, to stay within the budget")

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

    def test_profiles_do_not_rest(self):
        """Exact mode counts calls, which no window has all of."""
        process = self.start(check.program("rests"), options=("--budget", "1%", "--flush", "400", "--exact"))
        start = time.monotonic()
        missed = 0
        while missed == 0:
            self.assertLess(time.monotonic() - start, check.LIMIT_SECONDS)
            time.sleep(0.1)
            self.ask("dump", process)
            missed = Capture(self.output).counters.get("budget_missed", 0)
        self.end(process)
        self.assertEqual(Capture(self.output).counters["rests"], 0)


if __name__ == "__main__":
    check.main()
