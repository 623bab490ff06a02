# SPDX-License-Identifier: MIT
"""Starts the demo service for a test, and speaks HTTP with it."""

import contextlib
import http.client
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import measured  # noqa: E402

GREENPROF = os.environ.get("GREENPROF", "greenprof")
PROGRAM = os.environ.get("DEMO_SERVICE", "demo-service")
# Sanitizers and valgrind make everything slower.
PATIENCE = float(os.environ.get("DEMO_PATIENCE", "60"))


class Service:
    """A running service; port and folder of its profiles."""

    def __init__(self, folder, *options, profiles=False, wrapper=()):
        self.folder = pathlib.Path(folder)
        self.profile_dir = self.folder / "profiles"
        self.profile_dir.mkdir()
        port_file = self.folder / "port"
        command = [*wrapper, PROGRAM, "--port", "0", "--port-file", str(port_file), *options]
        if profiles:
            command += ["--profile-dir", str(self.profile_dir)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE
        while not port_file.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise AssertionError(f"the service did not start: {self.process.wait()}")
            time.sleep(0.01)
        self.port = int(port_file.read_text())

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def get(self, path, **headers):
        """One request on a connection of its own: status, headers, body."""
        with contextlib.closing(self.connect()) as connection:
            return ask(connection, path, **headers)

    def stop(self, signal_number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


def ask(connection, path, **headers):
    """One request on a connection that may be kept."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET", path, headers=named)
    response = connection.getresponse()
    body = response.read()
    return response.status, response.headers, body


class ServiceTest(measured.Case):
    """A test case that starts services and leaves none behind."""

    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)

    def start(self, *options, **keywords):
        folder = tempfile.mkdtemp(dir=self.temporary.name)
        service = Service(folder, *options, **keywords)
        self.addCleanup(lambda: self.assertEqual(service.stop(), 0))
        return service
