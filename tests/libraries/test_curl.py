# SPDX-License-Identifier: MIT
"""The trace goes with libcurl's transfers where that is asked for, and the program's own headers are as they were."""
import base64
import hashlib
import hmac
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
from capture import Capture  # noqa: E402

GREENPROF, PROGRAM = os.environ["GREENPROF"], os.environ["CURL_CALLS"]
TRACE, REST_CALL = "0af7651916cd43dd8448eb211c80319c", 2
ALL = ["outside", "own", "none", "copy", "given", "reset", "signed", "follows", "multi", "multi-none", "copy-of-busy", "after", "after-none"]


class Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        headers = {}
        for name, value in self.headers.items():
            headers.setdefault(name.lower(), []).append(value)
        self.server.told[self.path.strip("/")] = headers
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


class Headers(unittest.TestCase):
    def record(self, spans):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
        server.daemon_threads, server.told = True, {}
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        if spans is not None:
            environment["GREENPROF_SPANS"] = spans
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "capture")
            done = subprocess.run([GREENPROF, "run", "--quiet", "-o", path, "--", PROGRAM, f"http://127.0.0.1:{server.server_port}"],
                                  stdin=subprocess.DEVNULL, capture_output=True, timeout=120, env=environment)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"done\n", b""))
            self.spans = Capture(path).spans
        self.assertEqual(sorted(server.told), sorted(ALL))
        return server.told

    def check_own(self, told):
        """The program's headers, whether greenprof adds any or not."""
        with_own = {"outside", "own", "copy", "signed", "multi", "copy-of-busy", "after"}
        for path, headers in told.items():
            expected = (["a"], ["b"]) if path in with_own else (None, None)
            self.assertEqual((headers.get("x-own"), headers.get("x-more")), expected, path)
        self.assertEqual(told["given"]["traceparent"], ["mine"])

    def test_trace_in_headers(self):
        told = self.record("libcurl,libcurl-headers")
        self.check_own(told)
        sent = {path: headers.get("traceparent") for path, headers in told.items() if path != "given"}
        within = {"own", "none", "copy", "reset", "signed", "follows", "multi", "multi-none", "copy-of-busy"}
        for path, values in sent.items():
            if path not in within:
                self.assertIsNone(values, path)
                continue
            self.assertEqual(len(values), 1, path)
            self.assertRegex(values[0], rf"^00-{TRACE}-[0-9a-f]{{16}}-01$")
        parents = {path: int(values[0].split("-")[2], 16) for path, values in sent.items() if values is not None}
        calls = {re.sub(".*/", "", span.fields["http.url"]): span.id for span in self.spans if span.kind == REST_CALL and "http.url" in span.fields}
        request = next(span.id for span in self.spans if span.name == "request")
        for path, parent in parents.items():
            self.assertEqual(parent, request if path.startswith("multi") else calls[path], path)
        self.assertEqual({path for path, headers in told.items() if "x-trace-info" in headers}, {"signed"})
        info, mac = told["signed"]["x-trace-info"][0], told["signed"]["x-trace-hmac"][0]
        self.assertEqual(mac, hmac.new(b"KEY", info.encode(), hashlib.sha1).hexdigest())
        self.assertEqual(json.loads(base64.urlsafe_b64decode(info)),
                         {"base_id": "0af76519-16cd-43dd-8448-eb211c80319c",
                          "parent_id": f"00000000-0000-0000-{parents['signed'] >> 48:04x}-{parents['signed'] & (1 << 48) - 1:012x}"})

    def test_nothing_unless_named(self):
        for spans in (None, "all"):
            told = self.record(spans)
            self.check_own(told)
            self.assertEqual({path for path, headers in told.items() if "traceparent" in headers}, {"given"})
            self.assertEqual(sum(span.kind == REST_CALL and span.name == "libcurl transfer" for span in self.spans), 8)


if __name__ == "__main__":
    unittest.main()
