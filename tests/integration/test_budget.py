# SPDX-License-Identifier: MIT
"""`run --budget`: samples become fewer, their weights stay right, and processes know of each other.

Rates and counts are asserted, and what greenprof says of itself; what it really takes is `tools/bench/run budget`.
"""
import json
import os
import re
import signal
import subprocess

import check
from capture import Capture


PYTHON = "/usr/bin/python3"
ROUNDS = 1000000
SWITCHES = f"""
import greenlet
def body():
    while True:
        main.switch()
main = greenlet.getcurrent()
other = greenlet.greenlet(body)
for _ in range({ROUNDS}):
    other.switch()
"""
LIVES, LIVES_A_ROUND = 60000, 1500
BIRTHS = f"""
import time
import greenlet
def make():
    return greenlet.greenlet(len)
for _ in range({LIVES // LIVES_A_ROUND}):  # a look at what it costs comes twice a second
    for _ in range({LIVES_A_ROUND}):
        make().switch(())
    end = time.thread_time() + 0.03
    while time.thread_time() < end:
        pass
    time.sleep(0.07)
"""


class Budget(check.Case):
    def start(self, number, seconds, budget="1%", options=()):
        """A program that computes; those of one test share a directory with no others."""
        output = os.path.join(self.directory, f"{number}.greenprof")
        process = subprocess.Popen(
            [check.GREENPROF, "run", "-q", "-F", "20000", "--budget", budget, "--control", *options, "-o", output, "--",
             check.program("coroutines"), str(seconds), str(seconds * 500)], stdout=subprocess.DEVNULL,
            env={**os.environ, "XDG_RUNTIME_DIR": self.directory})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, output

    def status(self, process):
        done = check.greenprof("status", process.pid, "--json", env={**os.environ, "XDG_RUNTIME_DIR": self.directory})
        return json.loads(done.stdout) if done.returncode == 0 else {}

    wait_for = staticmethod(check.until)

    def test_fewer_samples(self):
        """At 20 kHz signals alone take more than a hundredth on every machine."""
        process, output = self.start(1, 2)
        self.assertEqual(process.wait(check.LIMIT_SECONDS), 0)
        capture = Capture(output)
        self.assertTrue(capture.whole)
        self.assertLess(capture.sampled_ns / 1e9, capture.process_cpu_ns / 1e9 * 1.001)
        self.near("sampled", capture.sampled_ns / 1e9, capture.process_cpu_ns / 1e9, 0.03, 0.2)
        said = check.greenprof("info", output).stdout.decode()
        self.assertRegex(said, r"budget +1% of the program's CPU time; greenprof took \d+\.\d+%, with \d+ samples a second")
        rate, = re.findall(r"with (\d+) samples a second", said)
        self.assertLess(int(rate), 10000)
        self.assertRegex(said, r"signals 0\.\d+ s \(\d+\.\d us each, as measured at the start\)")
        self.assertNotIn("alone cost", said)

    def test_hooks_alone(self):
        """A program that does little but switch: no rate of samples brings it within a thousandth."""
        if subprocess.run([PYTHON, "-c", "import greenlet"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no greenlet for /usr/bin/python3")
        output = os.path.join(self.directory, "switches.greenprof")
        done = subprocess.run([check.GREENPROF, "run", "--budget", "0.1%", "-o", output, "--", PYTHON, "-c", SWITCHES],
                              capture_output=True, text=True, timeout=check.LIMIT_SECONDS, check=True,
                              env={**os.environ, "XDG_RUNTIME_DIR": self.directory})
        self.assertRegex(done.stderr, r"the hooks of \d+ switches a second alone cost \S+ %, more than the budget of 0\.1 %")
        for command in ("info", "report"):
            said = check.greenprof(command, output).stdout.decode()
            rate, percent = re.findall(r"budget +0\.1%.*; the hooks of (\d+) switches a second alone cost (\S+)%", said)[0]
            self.assertGreater(float(percent), 0.1)
        capture = Capture(output)
        recorded_s = (capture.process_cpu_ns - capture.counters["rest_cpu_ns"]) / 1e9
        self.near("switches", int(rate) * recorded_s, capture.counters["switches"], 0.01)
        if capture.counters["rests"] == 0:
            self.near("switches", capture.counters["switches"], 2 * ROUNDS, 0.01)

    def test_slows_down(self):
        """What greenprof's own threads take alone is too much: they look and write less often, unless it is said how
        often."""
        slow, _ = self.start(1, 60, "0.1%")
        said, _ = self.start(2, 60, "0.1%", ("--flush", "400"))
        self.wait_for(lambda: self.status(slow).get("slowed_percent", 0) > 300)
        self.wait_for(lambda: self.status(said).get("lowered_to_hz") == 10)
        self.assertEqual(self.status(said)["slowed_percent"], 100)
        self.assertRegex(check.greenprof("status", slow.pid, env={**os.environ, "XDG_RUNTIME_DIR": self.directory}).stdout.decode(),
                         r"rate lowered to 10 Hz to stay within it, looked and written \d\.\d times as seldom")

    def test_places_of_creation(self):
        """Where hooks take more than the budget, few creations are looked at, and the others counted; all coroutines are there,
        with all of their switches. Without a budget each one has its place."""
        if subprocess.run([PYTHON, "-c", "import greenlet"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no greenlet for /usr/bin/python3")
        for budget in (["--budget", "0.1%"], []):
            output = os.path.join(self.directory, f"births{len(budget)}.greenprof")
            subprocess.run([check.GREENPROF, "run", "-q", *budget, "-o", output, "--", PYTHON, "-c", BIRTHS], check=True,
                           timeout=check.LIMIT_SECONDS, env={**os.environ, "XDG_RUNTIME_DIR": self.directory})
            capture = Capture(output)
            born = [coro for coro in capture.coros.values() if coro.parent != 0]
            left_out = capture.counters["spawns_left_out"]
            if capture.counters["rests"] == 0:
                self.assertEqual(len(born), LIVES)
                self.assertEqual({capture.ledger[coro.id][1] for coro in born}, {1})
            self.assertLessEqual(len(born), LIVES)  # those of rests are not known
            self.assertLessEqual({capture.ledger[coro.id][1] for coro in born}, {0, 1})
            self.assertEqual(sum(stack != 0 for stack in capture.origins.values()), len(born) - left_out)
            said = check.greenprof("info", output).stdout.decode()
            if budget:
                self.assertGreater(left_out, len(born) // 10)
                self.assertLess(left_out, LIVES)
                self.assertIn(f"{left_out} coroutines whose place of creation was left out, to stay within the budget", said)
            else:
                self.assertEqual(left_out, 0)
                self.assertNotIn("left out", said)

    def test_processes_share(self):
        """And one that was killed is forgotten."""
        first, _ = self.start(1, 60)
        second, _ = self.start(2, 60)
        self.wait_for(lambda: self.status(first).get("budget_processes") == 2)
        self.wait_for(lambda: self.status(second).get("budget_processes") == 2)
        self.assertEqual(self.status(first)["budget_ppm"], 10000)
        second.send_signal(signal.SIGKILL)
        self.wait_for(lambda: self.status(first).get("budget_processes") == 1)


if __name__ == "__main__":
    check.main()
