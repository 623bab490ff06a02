# SPDX-License-Identifier: MIT
"""Debian's redis-server, on a port of its own."""
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from helpers import free_ports, skip, until  # noqa: E402
from kept import die_with_parent  # noqa: E402

for tool in ("redis-server", "redis-cli", "osprofiler"):
    if shutil.which(tool) is None:
        skip(f"there is no {tool}")
if importlib.util.find_spec("osprofiler") is None:
    skip("this Python has no osprofiler")


class Redis:
    """A server that keeps nothing when it ends. more: options, or the name of a configuration file first."""

    def __init__(self, folder, *more, port=None):
        self.folder, self.more, self.port = folder, more, port
        self.password = more[more.index("--requirepass") + 1] if "--requirepass" in more else None

    def start(self):
        port = self.port or free_ports(1)[0]
        self.process = subprocess.Popen(["redis-server", *self.more, "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                                         "--dir", tempfile.mkdtemp(dir=self.folder), "--logfile", "redis.log"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        preexec_fn=die_with_parent)
        login = f":{urllib.parse.quote(self.password, safe='')}@" if self.password else ""
        self.pid, self.port, self.url = self.process.pid, port, f"redis://{login}127.0.0.1:{port}"
        until(lambda: self.process.poll() is not None or self.ask("PING") == "PONG", "redis-server answers")

    def __enter__(self):
        wanted = self.port
        for _ in range(5):
            self.port = wanted
            self.start()
            if self.process.poll() is None:
                return self
            # Another process has taken the port in between.
        raise AssertionError("redis-server does not start")

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()

    def ask(self, *words):
        password = ["-a", self.password, "--no-auth-warning"] if self.password else []
        return subprocess.run(["redis-cli", "-p", str(self.port), *password, *words], capture_output=True, text=True,
                              env={**os.environ, "LC_ALL": "C"}, timeout=60).stdout.strip()
