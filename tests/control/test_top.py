# SPDX-License-Identifier: MIT
"""greenprof top: the ledgers of a running service, in a pipe, as JSON and on a terminal."""
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import termios
import unittest

from support import EVENTLET, GREENPROF, SERVICE, Case, Service, has_eventlet

LEAVE = b"\033[?25h\033[?1049l"


class Top(Case):
    def top(self, pid, *arguments, interval=100):
        return json.loads(self.do("top", pid, "--once", "--json", "--interval", interval, *arguments))

    def test_ledger(self):
        service = Service(self, SERVICE, "--stopped", "-o", "capture")
        self.do("start", service.pid)
        burned = service.burn(500)
        top = self.top(service.pid, "-n", 0)
        self.assertEqual((top["pid"], top["state"], top["threads"]), (service.pid, "recording", 1))
        self.near("the ledgers", sum(row["total"]["cpu_seconds"] for row in top["rows"]), sum(burned), 0.05, 0.06)
        self.near("the interval", top["interval_seconds"], 0.1, 0.0, 5)
        self.assertEqual(len([row for row in top["rows"] if "tid" in row]), 1)
        self.assertEqual(top["coroutines"], len([row for row in top["rows"] if "tid" not in row]))
        self.assertEqual(sum(top["states"].values()), top["coroutines"])
        for row in top["rows"]:
            self.assertLessEqual(row["interval"]["cpu_seconds"], row["total"]["cpu_seconds"])
        self.assertEqual(top["coroutines"], 2)
        ledgers = sorted(row["total"]["cpu_seconds"] for row in top["rows"] if "tid" not in row)
        self.near("a to b", ledgers[1], 2 * ledgers[0], 0.1, 0.01)

    def check_at_work(self, service, state):
        service.process.stdin.write("burn 1000000\n")
        service.process.stdin.flush()
        top = self.top(service.pid, interval=1000)
        self.assertEqual(top["state"], state)
        shares = [row["interval"]["cpu_seconds"] for row in top["rows"]]
        self.assertEqual(shares, sorted(shares, reverse=True))
        self.near("at work", sum(shares), top["process_cpu_seconds"], 0.1, 0.02)
        self.assertEqual(os.path.exists(os.path.join(self.dir, "capture")), state == "recording")
        longest = self.top(service.pid, "-n", 1, "--sort", "longest")["rows"]
        self.assertEqual(len(longest), 1)
        service.process.kill()
        service.process.wait()
        return top

    def test_at_work(self):
        self.assertEqual(self.check_at_work(Service(self, SERVICE, "--stopped", "-o", "capture"), "stopped")["coroutines"], 2)

    @unittest.skipUnless(has_eventlet(), "python3-eventlet is not installed")
    def test_eventlet(self):
        """A hub that waits has its thread for long, and is no hog; then green threads at work."""
        service = Service(self, EVENTLET, "--control", "-o", "capture")
        service.tell("rest 300", "rested")
        top = self.top(service.pid, "-n", 0)
        longest = [row["longest_seconds"] for row in top["rows"] if row["name"] == "[hub]"]
        self.assertEqual(len(longest), 1, top["rows"])
        self.at_least("the hub's slice", longest[0], 0.25)
        self.assertEqual(top["hogs"], 0)
        top = self.check_at_work(service, "recording")
        burners = [row["interval"]["cpu_seconds"] for row in top["rows"] if "tid" not in row]
        self.near("green threads at work", sum(burners), top["process_cpu_seconds"], 0.2, 0.02)

    def test_in_a_pipe(self):
        service = Service(self, SERVICE, "--control", "-o", "capture")
        top = subprocess.Popen([GREENPROF, "top", str(service.pid), "--interval", "50"], env=self.env, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        heads = 0
        while heads < 3:
            line = top.stdout.readline()
            self.assertNotEqual(line, "")
            self.assertNotIn("\033", line)
            heads += line.endswith(" NAME\n")
        service.end()
        _, error = top.communicate(timeout=100)
        self.assertEqual(top.returncode, 1)
        self.assertIn("process", error)

    def on_terminal(self, end):
        """(status, output, are the settings as they were) of a top that `end` ends."""
        service = Service(self, SERVICE, "--control", "-o", "capture")
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 70, 0, 0))
        before = termios.tcgetattr(slave)
        top = subprocess.Popen([GREENPROF, "top", str(service.pid), "--interval", "50"], env=self.env, stdin=slave, stdout=slave)
        output = b""
        while output.count(b"NAME") < 2:
            output += os.read(master, 65536)
        end(master, top)
        while not output.endswith(LEAVE):
            output += os.read(master, 65536)
        status, after = top.wait(100), termios.tcgetattr(slave)
        os.close(master)
        os.close(slave)
        service.end()
        return status, output, before == after

    def test_on_a_terminal(self):
        def keys(master, top):
            os.write(master, b"rplcq")
        status, output, is_restored = self.on_terminal(keys)
        self.assertEqual((status, is_restored), (0, True))
        self.assertTrue(output.startswith(b"\033[?1049h"))

    NAMED = """import threading, sys
for name in ("a-worker-with-a-name-that-is-1", "a-worker-with-a-name-that-is-2", "short"):
    threading.Thread(target=lambda: sys.stdin.readline(), name=name, daemon=True).start()
print("ready", flush=True)
sys.stdin.readline()
"""

    def test_narrow(self):
        """Names have room, and keep their ends; no line is longer than the terminal; the page has all its lines."""
        service = Service(self, ["/usr/bin/python3", "-c", self.NAMED], "--control", "-o", "capture")
        for columns in (60, 70, 80, 100, 140):
            master, slave = pty.openpty()
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            top = subprocess.Popen([GREENPROF, "top", str(service.pid), "--interval", "50"], env=self.env, stdin=slave, stdout=slave)
            output = b""
            while output.count(b"\033[J") < 2:
                output += os.read(master, 65536)
            os.write(master, b"q")
            top.wait(100)
            os.close(slave)
            os.close(master)
            page = output.decode().split("\033[J")[0].split("\033[H")[-1].replace("\033[K", "").split("\r\n")
            self.assertLessEqual(max(map(len, page)), columns, page)
            self.assertLessEqual(len(page), 24, page)
            heads = next(line for line in page if line.endswith(" NAME")).split()
            for head in ("ID", "STATE", "CPU%"):
                self.assertIn(head, heads)
            self.assertEqual("LONG" in heads, columns >= 70, heads)
            self.assertEqual("SWITCH/s" in heads, columns >= 140, heads)
            names = [line[line.find("[thread"):] if "[thread" in line else line.split()[-1] for line in page if line.endswith("]")]
            for end in "that-is-1]", "that-is-2]", "[thread short]":
                self.assertEqual(sum(name.endswith(end) for name in names), 1, page)
        service.end()

    def test_signals(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            status, _, is_restored = self.on_terminal(lambda _, top, number=number: top.send_signal(number))
            self.assertEqual((status, is_restored), (-number, True))


if __name__ == "__main__":
    unittest.main()
