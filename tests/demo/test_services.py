# SPDX-License-Identifier: MIT
"""The demo's three services: one trace through all of them, and latencies that are those of the client."""

import http.client
import json
import os
import pathlib
import secrets
import signal
import subprocess
import sys
import time
import unittest

from service import GREENPROF, PATIENCE, PROGRAM, ServiceTest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
from capture import Capture  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
REST_CALL, REST_DISPATCH, DATABASE, CACHE, RPC_CALL = 2, 3, 6, 7, 4


class Services(ServiceTest):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.temporary.name)
        self.processes = []
        self.addCleanup(self.stop_all)

    def start_one(self, name, ready, *command, profiled=True, **environment):
        capture = self.folder / f"{name}.greenprof"
        wrapper = [GREENPROF, "run", "--quiet", "-o", str(capture), "--clock", "wall", "--"] if profiled else []
        process = subprocess.Popen([*wrapper, *command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   env={**os.environ, "GREENPROF_SERVICE": name, **environment})
        self.processes.append(process)
        deadline = time.monotonic() + PATIENCE
        while not (self.folder / ready).exists():
            self.assertIsNone(process.poll(), name)
            self.assertLess(time.monotonic(), deadline, name)
            time.sleep(0.01)

    def port(self, name):
        return (self.folder / f"{name}.port").read_text().strip()

    def start_all(self):
        self.start_one("redis", "redis.socket", "redis-server", "--port", "0", "--unixsocket", str(self.folder / "redis.socket"),
                       "--save", "", "--dir", str(self.folder), "--logfile", str(self.folder / "redis.log"), profiled=False)
        self.start_one("conductor", "conductor.port", "/usr/bin/python3", str(ROOT / "tools/demo-service/conductor.py"),
                       "--redis", str(self.folder / "redis.socket"), "--port-file", str(self.folder / "conductor.port"),
                       PYTHONPATH=os.environ["GREENPROF_PYTHON"])
        self.start_one("scheduler", "scheduler.port", PROGRAM, "--port", "0",
                       "--port-file", str(self.folder / "scheduler.port"), "--conductor", self.port("conductor"))
        self.start_one("api", "api.port", PROGRAM, "--port", "0", "--port-file", str(self.folder / "api.port"),
                       "--rows", "2000", "--scheduler", self.port("scheduler"))

    def stop_all(self):
        """From the first that a request reaches to the last."""
        statuses = []
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            statuses.append(process.wait(PATIENCE))
        self.processes = []
        return statuses

    def ask(self, path):
        """Returns the trace id, and the seconds that it took."""
        trace = secrets.token_hex(16)
        connection = http.client.HTTPConnection("127.0.0.1", int(self.port("api")), timeout=PATIENCE)
        connection.connect()
        start = time.monotonic()
        connection.request("GET", path, headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
        response = connection.getresponse()
        response.read()
        seconds = time.monotonic() - start
        connection.close()
        self.assertEqual(response.status, 200, path)
        return trace, seconds

    def spans(self, name, trace):
        return [span for span in Capture(self.folder / f"{name}.greenprof").spans if span.trace == trace]

    def path_seconds(self, name, trace):
        """The sum of a request's critical path."""
        done = subprocess.run([GREENPROF, "export", str(self.folder / f"{name}.greenprof"), "--format", "json", "--by", "critical-path",
                               "--trace", trace], capture_output=True, text=True, check=True)
        return sum(row["weight_ns"] for row in json.loads(done.stdout)["rows"]) / 1e9

    def test_one_trace_through_all(self):
        self.start_all()
        asked = {path: self.ask(path) for path in ("/proxy?delay=60", "/mixed?delay=60", "/report")}
        self.assertEqual(self.stop_all(), [0, 0, 0, 0])
        for path, (trace, seconds) in asked.items():
            api, scheduler, conductor = (self.spans(name, trace) for name in ("api", "scheduler", "conductor"))
            request = next(span for span in api if span.kind == REST_DISPATCH)
            self.assertEqual((request.name, request.parent), ("GET " + path.split("?")[0], 0x00f067aa0ba902b7))
            self.near(f"latency of {path}", (request.end_ns - request.start_ns) / 1e9, seconds, 0.02, 0.001)
            self.near(f"critical path of {path}", self.path_seconds("api", trace), (request.end_ns - request.start_ns) / 1e9, 0.001, 2e-6)
            if path == "/report":
                self.assertEqual((scheduler, conductor), ([], []))
                continue
            call = next(span for span in api if span.kind == REST_CALL)
            self.assertEqual(call.parent, request.id)
            dispatch = next(span for span in scheduler if span.kind == REST_DISPATCH)
            self.assertEqual(dispatch.parent, call.id)
            onward = next(span for span in scheduler if span.kind == REST_CALL)
            self.assertEqual(onward.parent, dispatch.id)
            place = next(span for span in conductor if span.kind == REST_DISPATCH)
            self.assertEqual(place.parent, onward.id)
            self.assertEqual({span.parent for span in conductor if span is not place}, {place.id})
            self.assertLessEqual({CACHE, RPC_CALL}, {span.kind for span in conductor})
            self.assertGreaterEqual(place.end_ns - place.start_ns, 60e6)


if __name__ == "__main__":
    unittest.main()
