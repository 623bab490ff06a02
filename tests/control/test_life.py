# SPDX-License-Identifier: MIT
"""Rest, fork, exec and exit: what costs nothing while nothing is asked, and leaves nothing behind."""
import os
import signal
import time
import unittest

from support import SERVICE, Case, Service


def switches(pid):
    """Voluntary context switches of the threads but the main one."""
    counts = {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/status", encoding="ascii") as status:
            lines = dict(line.split(":\t", 1) for line in status if ":\t" in line)
        if int(tid) != pid:
            counts[tid] = int(lines["voluntary_ctxt_switches"])
    return counts


class Life(Case):
    def rests(self, pid):
        """Do no threads of greenprof's own wake up for a second?"""
        before = switches(pid)
        time.sleep(1)  # what is measured, not waited for
        return before == switches(pid)

    def test_at_rest(self):
        service = Service(self, SERVICE, "--stopped", "-o", "capture")
        self.wait_until(lambda: self.rests(service.pid), "rest before the first start")
        self.do("start", service.pid)
        service.burn(100)
        self.do("stop", service.pid)
        self.wait_until(lambda: self.rests(service.pid), "rest after a stop")
        self.do("top", service.pid, "--once", "--interval", "50")
        self.wait_until(lambda: self.rests(service.pid), "rest after top")

    def test_fork(self):
        service = Service(self, SERVICE, "--stopped", "-o", "capture")
        self.do("start", service.pid)
        child, = service.tell("fork", "child")
        self.wait_until(lambda: self.socket_of(child), "a socket of the child's own")
        status = self.status(child)
        self.assertEqual((status["pid"], status["state"]), (child, "recording"))
        self.do("stop", service.pid)
        self.assertEqual(self.status(child)["state"], "recording")
        self.do("stop", child)
        self.do("start", child, "-o", "of-child")
        self.assertEqual(self.status(child)["file"], os.path.join(self.dir, "of-child"))
        self.assertEqual(self.status(service.pid)["state"], "stopped")
        service.tell("reap", "reaped")
        self.assertEqual(self.sockets(), self.socket_of(service.pid))
        self.assertTrue(os.path.exists(os.path.join(self.dir, "of-child")))

    def test_fork_at_rest(self):
        service = Service(self, SERVICE, "--stopped", "-o", "capture")
        child, = service.tell("fork", "child")
        self.wait_until(lambda: self.socket_of(child), "a socket of the child's own")
        self.do("start", child)
        self.assertEqual(self.status(child)["file"], os.path.join(self.dir, f"capture.{child}"))
        self.assertEqual(self.status(service.pid)["state"], "stopped")
        service.tell("reap", "reaped")

    def test_forks_that_are_not_followed(self):
        service = Service(self, SERVICE, "--control", "--follow", "none", "-o", "capture")
        child, = service.tell("fork", "child")
        self.refused("greenprof run --control", "status", child)
        service.tell("reap", "reaped")

    def test_exec(self):
        service = Service(self, SERVICE, "--control", "-o", "capture")
        service.tell("again", "ready")
        self.assertEqual(self.status(service.pid)["state"], "recording")
        self.assertEqual(len(self.sockets()), 1)
        service.tell("fail", "failed")
        self.wait_until(lambda: self.socket_of(service.pid), "a socket after an exec that failed")
        self.assertEqual(self.status(service.pid)["state"], "recording")
        service.process.stdin.write("bare\n")
        service.process.stdin.flush()
        self.wait_until(lambda: os.readlink(f"/proc/{service.pid}/exe").endswith("sleep"), "another program")
        self.addCleanup(service.process.kill)
        self.assertEqual(self.sockets(), [])
        self.refused("greenprof run --control", "status", service.pid)

    def test_exit(self):
        service = Service(self, SERVICE, "--control", "-o", "capture")
        self.assertEqual(len(self.sockets()), 1)
        self.assertEqual(service.end(), 0)
        self.assertEqual(os.listdir(self.place), [])

    def test_killed(self):
        service = Service(self, SERVICE, "--control", "-o", "capture")
        os.kill(service.pid, signal.SIGKILL)
        service.process.wait()
        self.assertEqual(len(self.sockets()), 1)
        again = Service(self, SERVICE, "--control", "-o", "capture")
        self.assertEqual(self.sockets(), self.socket_of(again.pid))

    def test_closed_descriptors(self):
        service = Service(self, SERVICE, "--control", "-o", "capture")
        for _ in range(3):
            self.assertEqual(service.tell("close", "closed"), [0])
            self.assertEqual(self.status(service.pid)["state"], "recording")
        self.do("dump", service.pid)


if __name__ == "__main__":
    unittest.main()
