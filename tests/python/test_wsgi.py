# SPDX-License-Identifier: MIT
"""A .prof for each request of a WSGI server: overlapping requests on eventlet's and gevent's, and the examples."""
import contextlib
import http.client
import json
import os
import pstats
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import support
import measured

support.require_package()
support.require("eventlet", "gevent")

EXAMPLES = os.path.join(os.path.dirname(support.PROGRAMS), "../../runtime-hooks/cpython/examples")
COUNT = 12


class Overlapping(measured.Case):
    def check(self, kind):
        with tempfile.TemporaryDirectory() as directory:
            said = support.python("wsgi_requests.py", kind, COUNT, directory)
            seen = json.loads(said)
            self.assertNotIn("greenprof:", seen["log"])
            for i, (status, body, length) in enumerate(seen["answers"]):
                if i % 3 != 2:  # those fail on purpose while they are sent
                    self.assertEqual((status, body), (200, str(i)))
                    self.assertEqual(length is not None, i % 3 == 0)  # servers know the length of what is there as a whole
            names = sorted(os.listdir(directory), key=lambda name: int(name.split("-")[0]))
            self.assertEqual([int(name.split("-")[0]) for name in names], list(range(1, COUNT + 1)))
            numbers = [int(re.fullmatch(r"\d+-(?:GET|A_\.\._0)_\.\._servers_(\d+)\.prof", name)[1]) for name in names]
            self.assertEqual(sorted(numbers), list(range(COUNT)))
            for i, name in zip(numbers, names):
                self.check_request(i, seen["times"][i], os.path.join(directory, name))

    def check_request(self, i, truth, path):
        stats = pstats.Stats(path)
        # Its own work is known; the cost of spawning, sleeping and sending is not.
        self.at_least(f"total of {i}", stats.total_tt, 0.97 * truth, 0.003)
        self.at_most(f"total of {i}", stats.total_tt, 1.03 * truth, 0.005)
        self.assertLessEqual({key[0] for key in stats.stats if key[0].startswith("request_")}, {f"request_{i}"})
        rows = {key[2]: row for key, row in stats.stats.items()}
        self.near(f"own_{i}", rows[f"own_{i}"][3], truth, 0.05)
        self.assertIn(f"child_{i}", rows)
        self.assertIn(f"handle_{i}", rows)
        self.assertEqual(f"stream_{i}" in rows, i % 3 != 0)
        support.read_as_snakeviz(path)

    def test_on_eventlet(self):
        self.check("eventlet")

    def test_on_gevent(self):
        self.check("gevent")


def ask(port, answers):
    for _ in range(200):
        try:
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
                connection.request("GET", "/servers")
                answers.append(connection.getresponse().read().decode())
            return
        except ConnectionRefusedError:
            time.sleep(0.1)


class Examples(measured.Case):
    def check(self, name, ending):
        with tempfile.TemporaryDirectory() as directory:
            (port,), answers = support.helpers.free_ports(1), []
            server = subprocess.Popen([support.PYTHON, "-B", os.path.join(EXAMPLES, name), str(port), directory],
                                      stderr=subprocess.PIPE, text=True)
            try:
                ask(port, answers)
                threads = [threading.Thread(target=ask, args=(port, answers)) for _ in range(COUNT - 1)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                # A client has its answer before the file of its request is written.
                support.helpers.until(lambda: sum(name.endswith(".prof") for name in os.listdir(directory)) >= COUNT, "all files", server)
            finally:
                server.send_signal(signal.SIGTERM)
                errors = server.communicate(timeout=support.LIMIT_SECONDS)[1]
            self.assertIn(server.returncode, ending, errors)
            self.assertNotIn("greenprof:", errors)
            self.assertEqual(len(answers), COUNT, errors)
            self.assertEqual({len(answer) for answer in answers}, {3 * 65})
            files = sorted(os.listdir(directory))
            self.assertEqual(files, [f"{number:06d}-GET_servers.prof" for number in range(1, COUNT + 1)], errors)
            for file in files:
                rows = support.read_as_snakeviz(os.path.join(directory, file))
                self.assertTrue(any("(check)" in row for row in rows), rows)

    def test_eventlet(self):
        self.check("eventlet_wsgi.py", (-signal.SIGTERM,))

    @unittest.skipUnless(os.path.isdir("/usr/lib/python3/dist-packages/oslo_service"), "python3-oslo.service is not installed")
    def test_oslo_service(self):
        self.check("oslo_wsgi.py", (0,))


if __name__ == "__main__":
    unittest.main(verbosity=2)
