# SPDX-License-Identifier: MIT
"""The demo service as an HTTP server: what the demo and the benchmark of latencies ask it."""

import concurrent.futures
import contextlib
import gzip
import json
import signal
import time
import unittest

from service import ServiceTest, ask

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Endpoints(ServiceTest):
    def setUp(self):
        super().setUp()
        self.service = self.start("--rows", "2000")

    def get_json(self, path):
        status, _, body = self.service.get(path)
        self.assertEqual(status, 200)
        return json.loads(body)

    def test_reports_count_every_order(self):
        for path in ("/report", "/report?by=customer"):
            lines = self.get_json(path)["lines"]
            self.assertEqual(sum(line["orders"] for line in lines), 2000)

    def test_gzipped_on_request_only(self):
        _, headers, plain = self.service.get("/report")
        self.assertNotIn("Content-Encoding", headers)
        _, headers, packed = self.service.get("/report", Accept_Encoding="deflate, gzip;q=1.0")
        self.assertEqual((headers["Content-Encoding"], gzip.decompress(packed)), ("gzip", plain))

    def test_search_is_no_injection(self):
        self.assertTrue(self.get_json("/search?q=urgent")["hits"])
        self.assertEqual(self.get_json("/search?q='DROP")["hits"], [])

    def test_what_waits_and_what_computes_meanwhile(self):
        start = time.monotonic()
        self.assertEqual(len(self.get_json("/proxy?delay=150")["warehouses"]), 12)
        self.assertGreaterEqual(time.monotonic() - start, 0.15)
        answer = self.get_json("/mixed?delay=20")
        self.assertLess(answer["forecast"]["low"], answer["forecast"]["high"])

    def test_what_it_cannot_do(self):
        lost = self.start("--rows", "10", "--scheduler", "1")
        for service, path, expected in ((self.service, "/nope", 404), (lost, "/proxy", 502), (lost, "/mixed", 502)):
            status, _, body = service.get(path)
            self.assertEqual((status, "error" in json.loads(body)), (expected, True))

    def test_ids_are_taken_or_made(self):
        _, headers, _ = self.service.get("/health", traceparent=TRACEPARENT)
        self.assertEqual(headers["X-Trace-Id"], TRACEPARENT[3:35])
        made = [self.service.get("/health", traceparent="rubbish")[1] for _ in range(2)]
        self.assertRegex(made[0]["X-Trace-Id"], "^[0-9a-f]{32}$")
        for name in ("X-Trace-Id", "X-Request-Id"):
            self.assertNotEqual(made[0][name], made[1][name])


class Connections(ServiceTest):
    def test_many_clients_keep_their_connections(self):
        service = self.start("--rows", "500", "--threads", "2")
        paths = ["/health", "/report", "/search?q=urgent", "/proxy?delay=30", "/mixed?delay=30"]
        expected = {path: service.get(path)[2] for path in paths}

        def client(number):
            with contextlib.closing(service.connect()) as connection:
                for turn in range(5):
                    path = paths[(number + turn) % len(paths)]
                    status, _, body = ask(connection, path)
                    self.assertEqual((status, body), (200, expected[path]))

        with concurrent.futures.ThreadPoolExecutor(96) as clients:
            for result in [clients.submit(client, number) for number in range(96)]:
                result.result()

    def test_both_signals_end_it(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            service = self.start("--rows", "10", "--threads", "2")
            with contextlib.closing(service.connect()) as idle:
                ask(idle, "/health")
                self.assertEqual(service.stop(number), 0)


if __name__ == "__main__":
    unittest.main()
