# SPDX-License-Identifier: MIT
"""The demo service as an HTTP server: real clients, good and bad ones."""

import concurrent.futures
import contextlib
import gzip
import json
import signal
import socket
import threading
import time
import unittest

from service import PATIENCE, ServiceTest, ask

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Endpoints(ServiceTest):
    def setUp(self):
        super().setUp()
        self.service = self.start("--rows", "2000")

    def get_json(self, path, **headers):
        status, _, body = self.service.get(path, **headers)
        self.assertEqual(status, 200)
        return json.loads(body)

    def test_health(self):
        self.assertEqual(self.get_json("/health"), {"status": "ok"})

    def test_report_counts_every_order(self):
        lines = self.get_json("/report")["lines"]
        self.assertEqual(sum(line["orders"] for line in lines), 2000)
        turnovers = [line["turnover"] for line in lines]
        self.assertEqual(turnovers, sorted(turnovers, reverse=True))

    def test_report_by_column(self):
        for column in ("product", "customer", "day"):
            lines = self.get_json("/report?by=" + column)["lines"]
            self.assertEqual(sum(line["orders"] for line in lines), 2000)
        for column in ("", "note", "day;DROP TABLE orders"):
            self.assertEqual(self.service.get("/report?by=" + column.replace(" ", "+"))[0], 400)

    def test_report_is_gzipped_on_request_only(self):
        _, headers, plain = self.service.get("/report")
        self.assertNotIn("Content-Encoding", headers)
        _, headers, packed = self.service.get("/report", Accept_Encoding="deflate, gzip;q=1.0")
        self.assertEqual(headers["Content-Encoding"], "gzip")
        self.assertEqual(gzip.decompress(packed), plain)

    def test_search_decodes_its_query(self):
        answer = self.get_json("/search?q=second%20floor&x=1")
        self.assertEqual(answer["query"], "second floor")
        self.assertTrue(answer["hits"])
        for hit in answer["hits"]:
            self.assertIn("second floor", hit["note"])

    def test_search_is_no_injection(self):
        self.assertEqual(self.get_json("/search?q=%27%3B%20DROP%20TABLE%20orders")["hits"], [])
        self.assertTrue(self.get_json("/report")["lines"])

    def test_search_wants_a_good_query(self):
        for query in ["", "?q=", "?q=%zz", "?q=%0", "?q=%00", "?q=" + "x" * 200]:
            status, _, body = self.service.get("/search" + query)
            self.assertEqual(status, 200 if query == "?q=" else 400, query)
            self.assertIn("hits" if query == "?q=" else "error", json.loads(body))

    def test_proxy_waits_for_the_upstream(self):
        start = time.monotonic()
        answer = self.get_json("/proxy?delay=150")
        self.assertGreaterEqual(time.monotonic() - start, 0.15)
        self.assertEqual(len(answer["warehouses"]), 12)

    def test_mixed_joins_both_children(self):
        answer = self.get_json("/mixed?delay=20")
        self.assertLess(answer["forecast"]["low"], answer["forecast"]["high"])
        self.assertEqual(len(answer["warehouses"]), 12)

    def test_upstream_timeout_is_504(self):
        impatient = self.start("--rows", "10", "--upstream", "300")
        status, _, body = impatient.get("/proxy?delay=1000")
        self.assertEqual((status, "error" in json.loads(body)), (504, True))

    def test_unknown_path_is_404(self):
        self.assertEqual(self.service.get("/nope")[0], 404)

    def test_ids_are_taken_or_made(self):
        _, headers, _ = self.service.get("/health", traceparent=TRACEPARENT, X_Request_Id="my-1")
        self.assertEqual(headers["X-Trace-Id"], TRACEPARENT[3:35])
        self.assertEqual(headers["X-Request-Id"], "my-1")
        made = [self.service.get("/health", traceparent="rubbish")[1] for _ in range(2)]
        self.assertRegex(made[0]["X-Trace-Id"], "^[0-9a-f]{32}$")
        self.assertNotEqual(made[0]["X-Trace-Id"], made[1]["X-Trace-Id"])
        self.assertNotEqual(made[0]["X-Request-Id"], made[1]["X-Request-Id"])


class Connections(ServiceTest):
    def test_many_clients_keep_their_connections(self):
        service = self.start("--rows", "500", "--threads", "2")
        paths = ["/health", "/report", "/search?q=urgent", "/proxy?delay=30", "/mixed?delay=30"]
        expected = {path: service.get(path)[2] for path in paths}

        def client(number):
            with contextlib.closing(service.connect()) as connection:
                for turn in range(5):
                    path = paths[(number + turn) % len(paths)]
                    status, headers, body = ask(connection, path, X_Request_Id=f"{number}-{turn}")
                    self.assertEqual((status, headers["X-Request-Id"]), (200, f"{number}-{turn}"))
                    self.assertEqual(body, expected[path])
                    self.assertEqual(headers["Connection"], "keep-alive")

        with concurrent.futures.ThreadPoolExecutor(96) as clients:
            for result in [clients.submit(client, number) for number in range(96)]:
                result.result()

    def test_waiting_requests_do_not_wait_for_each_other(self):
        service = self.start("--rows", "500")
        start = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(64) as clients:
            answers = list(clients.map(lambda _: service.get("/mixed?delay=1500")[0], range(64)))
        self.assertEqual(answers, [200] * 64)
        self.at_most("seconds", time.monotonic() - start, 0.25 * 64 * 1.5, 0.25 * 64 * 1.5)

    def test_close_is_obeyed(self):
        service = self.start("--rows", "10")
        for request in [
            b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
            b"GET /health HTTP/1.0\r\n\r\n",
        ]:
            self.assertIn(b"Connection: close\r\n", service.raw(request))

    def test_http10_keep_alive(self):
        service = self.start("--rows", "10")
        again = b"GET /health HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"
        answer = service.raw(again + b"GET /health HTTP/1.0\r\n\r\n")
        self.assertEqual(answer.count(b"HTTP/1.1 200 OK"), 2)

    def test_pipelined_requests_are_answered_in_order(self):
        service = self.start("--rows", "500")
        one = "GET {} HTTP/1.1\r\nHost: x\r\nX-Request-Id: {}\r\n{}\r\n"
        data = one.format("/proxy?delay=50", "a", "") + one.format("/health", "b", "")
        data += one.format("/nope", "c", "Connection: close\r\n")
        answer = service.raw(data.encode())
        places = [answer.index(b"X-Request-Id: " + name) for name in (b"a", b"b", b"c")]
        self.assertEqual(places, sorted(places))

    def test_request_in_single_bytes(self):
        service = self.start("--rows", "10")
        with socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE) as peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n":
                peer.sendall(bytes([byte]))
            self.assertTrue(peer.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n"))

    def test_client_that_leaves_early(self):
        service = self.start("--rows", "500")
        for path in ["/report", "/proxy?delay=100"] * 10:
            with socket.create_connection(("127.0.0.1", service.port)) as peer:
                peer.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        self.assertEqual(service.get("/health")[0], 200)


class BadRequests(ServiceTest):
    def setUp(self):
        super().setUp()
        self.service = self.start("--rows", "10", "--timeout", "300", "--idle", "600")

    def status_of(self, data):
        answer = self.service.raw(data)
        return int(answer.split(b" ", 2)[1]) if answer else None

    def test_malformed(self):
        for data in [
            b"rubbish\r\n\r\n",
            b"\r\n\r\n",
            b"GET\r\n\r\n",
            b"GET /health\r\n\r\n",
            b"GET health HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET  /health HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /health HTTP/1.1 \r\nHost: x\r\n\r\n",
            b"G\x01T /health HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /he\0alth HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /health HTTP/1.1\r\n\r\n",
            b"GET /health HTTP/1.1\r\nHost x\r\n\r\n",
            b"GET /health HTTP/1.1\r\nHost: x\r\nBad Name: 1\r\n\r\n",
            b"GET /health HTTP/1.1\r\nHost: x\r\nX-Request-Id: a\nb\r\n\r\n",
            b"GET /health HTTP/1.1\r\nHost: x\r\n folded: 1\r\n\r\n",
        ]:
            self.assertIn(self.status_of(data), (400, 505), data)

    def test_what_it_does_not_do(self):
        head = b" /health HTTP/1.1\r\nHost: x\r\n"
        self.assertEqual(self.status_of(b"POST" + head + b"\r\n"), 405)
        self.assertEqual(self.status_of(b"GET" + head + b"Content-Length: 5\r\n\r\nhello"), 413)
        self.assertEqual(self.status_of(b"GET" + head + b"Transfer-Encoding: chunked\r\n\r\n"), 501)
        self.assertEqual(self.status_of(b"GET /health HTTP/3.0\r\nHost: x\r\n\r\n"), 505)

    def test_heads_that_are_too_big(self):
        head = b"GET /health HTTP/1.1\r\nHost: x\r\n"
        self.assertEqual(self.status_of(head + b"X: " + b"y" * 100000 + b"\r\n\r\n"), 431)
        self.assertEqual(self.status_of(head + b"X: y\r\n" * 100 + b"\r\n"), 431)
        self.assertEqual(self.status_of(head + b"X: " + b"y" * 8000 + b"\r\n\r\n"), 200)

    def test_slow_clients_time_out(self):
        self.assertEqual(self.status_of(b"GET /health HTT"), 408)
        self.assertIsNone(self.status_of(b""))

    def test_slow_clients_do_not_disturb_others(self):
        slow = [
            socket.create_connection(("127.0.0.1", self.service.port)) for _ in range(200)
        ]
        for peer in slow:
            peer.sendall(b"GET /")
        self.assertEqual(self.service.get("/health")[0], 200)
        for peer in slow:
            peer.close()

    def test_client_that_does_not_read(self):
        peer = socket.socket()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        with peer:
            peer.connect(("127.0.0.1", self.service.port))
            one = b"GET /proxy?delay=1 HTTP/1.1\r\nHost: x\r\n\r\n"
            peer.sendall(one * 100)
            time.sleep(1)
            self.assertEqual(self.service.get("/health")[0], 200)


class Shutdown(ServiceTest):
    def test_both_signals_end_it(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            service = self.start("--rows", "10", "--threads", "2")
            with contextlib.closing(service.connect()) as idle:
                ask(idle, "/health")
                self.assertEqual(service.stop(number), 0)

    def test_requests_in_flight_are_finished(self):
        service = self.start("--rows", "500")
        answers = []
        clients = [
            threading.Thread(target=lambda: answers.append(service.get("/mixed?delay=1000")))
            for _ in range(20)
        ]
        for client in clients:
            client.start()
        time.sleep(0.5)
        self.assertEqual(service.stop(), 0)
        for client in clients:
            client.join()
        self.assertEqual([status for status, _, _ in answers], [200] * 20)
        self.assertEqual({headers["Connection"] for _, headers, _ in answers}, {"close"})

    def test_a_stubborn_client_is_not_waited_for_long(self):
        service = self.start("--rows", "10", "--timeout", "3600000")
        with socket.create_connection(("127.0.0.1", service.port)) as peer:
            peer.sendall(b"GET /health HT")
            time.sleep(0.2)
            self.assertEqual(service.stop(), 0)


if __name__ == "__main__":
    unittest.main()
