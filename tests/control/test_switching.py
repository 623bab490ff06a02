# SPDX-License-Identifier: MIT
"""greenprof start, stop, dump and status on running services: what is recorded is what they did meanwhile."""
import json
import os
import signal
import subprocess
import time
import unittest

from support import EVENTLET, GREENPROF, SERVICE, Capture, Case, Service, has_eventlet, main

END_EXIT, END_ASKED = 0, 6  # capture/format.h


class Switching(Case):
    def check_start_and_stop(self, service):
        first, second = os.path.join(self.dir, "capture"), os.path.join(self.dir, "capture.2")
        self.assertEqual(self.status(service.pid)["state"], "stopped")
        service.burn(300)
        self.assertFalse(os.path.exists(first))
        self.assertEqual(self.do("start", service.pid), f"recording to {first}\n")
        burned = service.burn(600)
        self.assertEqual(self.do("stop", service.pid).split(",")[0], "stopped")
        self.check_capture(first, burned)
        kept = self.content(first)
        service.burn(300)
        self.assertEqual(self.do("start", service.pid), f"recording to {second}\n")
        burned = service.burn(600)
        self.do("stop", service.pid)
        self.check_capture(second, burned)
        self.assertEqual(self.content(first), kept)
        for path in (first, second):
            capture = Capture(path)
            self.assertTrue(capture.whole)
            self.assertEqual(capture.end, END_ASKED)
            self.assertEqual(capture.counters["signals"], capture.counters["samples"] + capture.drops)
            self.assertEqual(len(capture.samples), capture.counters["samples"])

    def test_by_an_agent(self):
        """greenprof mcp: what its tools say of a process is what it does."""
        def call(name, **given):
            request = {"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": {"name": name, "arguments": given}}
            server.stdin.write(json.dumps(request) + "\n")
            server.stdin.flush()
            answer = json.loads(server.stdout.readline())
            self.assertEqual(answer["id"], name)
            self.assertFalse(answer["result"]["isError"], answer)
            return answer["result"]["content"][0]["text"]
        service = Service(self, SERVICE, "--stopped", "-o", "capture")
        with subprocess.Popen([GREENPROF, "mcp", "--control", str(service.pid)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
            self.assertEqual(json.loads(call("status"))["state"], "stopped")
            self.assertIn("recording to", call("start"))
            burned = service.burn(600)
            self.assertEqual(json.loads(call("status"))["state"], "recording")
            rows = {row["function"]: row["total_ns"] / 1e9 for row in json.loads(call("report"))["rows"]}
            for name, seconds in zip(("burn_a", "burn_b"), burned):
                self.near(name, rows[name], seconds, 0.12, 0.01)
            self.assertEqual(json.loads(call("explain"))["version"], 1)
            self.assertTrue(json.loads(call("coroutines"))["coroutines"])
            self.assertIn("stopped", call("stop"))
        self.assertEqual((server.returncode, service.end()), (0, 0))

    def test_start_and_stop(self):
        service = Service(self, SERVICE, "--stopped", "-o", "capture")
        self.check_start_and_stop(service)
        self.assertEqual(service.end(), 0)

    def check_dump(self, service, path="capture"):
        burned = service.burn(600)
        before = self.functions_after_dump(service, path, "copy")
        more = service.burn(600)
        after = self.functions_after_dump(service, path, "later")
        for name, one, other in zip(("burn_a", "burn_b"), burned, more):
            self.near(name + " at first", before[name], one, 0.12, 0.01)
            self.near(name + " in the end", after[name], one + other, 0.12, 0.01)
        self.assertEqual(self.status(service.pid)["state"], "recording")
        self.assertEqual(service.end(), 0)
        self.assertEqual(Capture(os.path.join(self.dir, path)).end, END_EXIT)

    def functions_after_dump(self, service, path, name):
        self.do("dump", service.pid)
        live = self.functions(path)
        self.do("dump", service.pid, "-o", name)
        copy = self.functions(name)
        self.near("the copy", copy[""], live[""], 0.02, 0.01)
        self.assertTrue(Capture(os.path.join(self.dir, name)).whole)
        return copy

    def test_dump(self):
        self.check_dump(Service(self, SERVICE, "--control", "-o", "capture"))

    @unittest.skipUnless(has_eventlet(), "python3-eventlet is not installed")
    def test_eventlet(self):
        """Both, with one service."""
        service = Service(self, EVENTLET, "--stopped", "-o", "capture")
        self.check_start_and_stop(service)
        self.do("start", service.pid)
        self.check_dump(service, "capture.3")

    def test_options(self):
        service = Service(self, SERVICE, "--stopped", "-o", "capture")
        named = os.path.join(self.dir, "%d.named" % service.pid)
        self.assertEqual(self.do("start", service.pid, "-o", "%p.named", "-F", "250", "--clock", "wall"),
                         f"recording to {named}\n")
        status = self.status(service.pid)
        self.assertEqual((status["file"], status["frequency_hz"], status["clock"]), (named, 250, "wall"))
        self.refused("recorded already", "start", service.pid, "-o", "other")
        self.assertFalse(os.path.exists(os.path.join(self.dir, "other")))
        burned = service.burn(800)
        self.do("stop", service.pid)
        capture = Capture(named)
        self.assertEqual(capture.frequency_hz, 250)
        self.near("samples", len(capture.samples), sum(burned) * 250, 0.15, 2)
        self.refused("not being recorded", "stop", service.pid)
        self.refused("not being recorded", "dump", service.pid)
        self.refused("No such file or directory", "start", service.pid, "-o", "nowhere/capture")
        self.refused("is empty", "start", service.pid, "-o", "")
        self.assertEqual(self.status(service.pid)["state"], "stopped")
        self.do("start", service.pid)  # after one that failed

    def test_status(self):
        service = Service(self, SERVICE, "--control", "-o", "capture")
        service.burn(300)
        self.do("dump", service.pid)
        status, text = self.status(service.pid), self.do("status", service.pid)
        self.assertEqual((status["pid"], status["state"], status["threads"]), (service.pid, "recording", 1))
        self.assertEqual(status["file"], os.path.join(self.dir, "capture"))
        self.assertLessEqual(status["bytes"], os.path.getsize(status["file"]))
        self.assertGreater(status["bytes"], 0)
        self.at_least("samples", status["samples"], 200)
        self.assertLess(abs(status["started"] - time.time()), 1000)
        self.assertIn(f"{service.pid}: recording since ", text)

    def test_no_name_for_a_file(self):
        service = Service(self, SERVICE, "--stopped", "-o", "capture")
        self.assertEqual(service.end(), 0)
        self.assertEqual(os.listdir(self.dir), ["greenprof"])  # nothing was asked for

    def test_killed_and_full(self):
        service = Service(self, SERVICE, "--control", "-o", "capture", "--max-size", "64K")
        self.wait_until(lambda: service.burn(200) and self.status(service.pid)["state"] == "full", "full")
        self.refused("not being recorded", "stop", service.pid)
        self.do("start", service.pid)
        self.assertEqual(self.status(service.pid)["file"], os.path.join(self.dir, "capture.2"))
        service.process.kill()
        service.process.wait()
        self.refused("no such process", "status", service.pid)

    def test_signal(self):
        service = Service(self, SERVICE, "--stopped", "-o", "capture", GREENPROF_TOGGLE_SIGNAL="USR2")
        os.kill(service.pid, signal.SIGUSR2)
        self.wait_until(lambda: self.status(service.pid)["state"] == "recording", "recording")
        burned = service.burn(600)
        os.kill(service.pid, signal.SIGUSR2)
        self.wait_until(lambda: self.status(service.pid)["state"] == "stopped", "stopped")
        service.burn(300)
        self.check_capture(os.path.join(self.dir, "capture"), burned)

    def test_signal_alone(self):
        service = Service(self, SERVICE, "-o", "capture", GREENPROF_TOGGLE_SIGNAL="RTMIN+3")
        self.assertEqual(self.sockets(), [])
        os.kill(service.pid, signal.SIGRTMIN + 3)
        capture = os.path.join(self.dir, "capture")
        self.wait_until(lambda: Capture(capture).end == END_ASKED, "stopped")
        os.kill(service.pid, signal.SIGRTMIN + 3)
        self.wait_until(lambda: os.path.exists(capture + ".2"), "started again")


if __name__ == "__main__":
    main(partial=0, at_once=2)
