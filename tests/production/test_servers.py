# SPDX-License-Identifier: MIT
"""Prefork servers: a capture for each worker, with what the worker did."""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

from support import GREENPROF, Case, example

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import fastcgi  # noqa: E402

LIMIT_S = 120
APPLICATION = """
import os

def burn_cpu():
    n = 0
    while n < 1000000:
        n += 1

def application(environ, start_response):
    burn_cpu()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"pid %d;" % os.getpid()]
"""
SCRIPT = "<?php function burn_cpu() { for ($n = 0; $n < 30000000; $n++); } burn_cpu(); echo 'pid ', getmypid(), ';';"


def over_unix(path, request):
    """All that the server answers until it closes."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(LIMIT_S)
        link.connect(path)
        link.sendall(request)
        answer = b""
        while part := link.recv(65536):
            answer += part
    return answer


def http(path):
    return over_unix(path, b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")


class Servers(Case):
    def start(self, line):
        """The server of an example."""
        self.socket = self.path("app.sock")
        line = self.fill(line.strip()).replace("/run/app.sock", self.socket)
        variables, _, command = re.fullmatch(r"((\w+=\S+ +)+)(.*)", line).groups()
        environment = {**os.environ, **dict(pair.split("=", 1) for pair in variables.split())}
        with open(self.path("log"), "wb") as log:
            server = subprocess.Popen(command.split(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, env=environment)
        self.addCleanup(self.stop, server)
        return server

    def stop(self, server):
        if server.poll() is None:
            server.terminate()
        server.wait(LIMIT_S)

    def log(self):
        with open(self.path("log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def workers(self, server, ask, count):
        """Ids of the workers, each of which has served a request."""
        found, end = set(), time.monotonic() + LIMIT_S
        while len(found) < count:
            self.assertLess(time.monotonic(), end, self.log())
            self.assertIsNone(server.poll(), self.log())
            try:
                found |= set(map(int, re.findall(rb"pid (\d+);", ask(self.socket))))
            except (FileNotFoundError, ConnectionRefusedError):
                time.sleep(0.02)  # it does not listen yet; nothing tells when it does
        return found

    def check(self, server, workers, function, last=signal.SIGTERM):
        server.send_signal(last)
        server.wait(LIMIT_S)
        for pid in [server.pid, *workers]:
            self.assertIn(os.path.join(self.captures, f"{pid}.greenprof"), self.recorded(), self.log())
        for pid in workers:
            report = self.report(os.path.join(self.captures, f"{pid}.greenprof"))
            self.assertIn(function, report)
            self.assertNotIn("the capture has no end", report)
        for begin in ("greenprof report", "greenprof merge"):
            line = next(line for line in example("Prefork servers", "greenprof report").splitlines() if line.startswith(begin))
            self.run_shell(self.fill(line).replace("greenprof", GREENPROF, 1))
        self.assertIn(function, self.report(self.path("all.greenprof")))

    def test_gunicorn(self):
        if shutil.which("gunicorn") is None:
            self.skipTest("no gunicorn")
        with open(self.path("app.py"), "w", encoding="utf-8") as file:
            file.write(APPLICATION)
        server = self.start(example("Prefork servers", "gunicorn "))
        self.check(server, self.workers(server, http, 2), "burn_cpu")

    def test_uwsgi(self):
        if shutil.which("uwsgi") is None:
            self.skipTest("no uWSGI")
        with open(self.path("app.py"), "w", encoding="utf-8") as file:
            file.write(APPLICATION)
        server = self.start(example("Prefork servers", "uwsgi "))
        self.check(server, self.workers(server, http, 2), "burn_cpu")

    def test_php_fpm(self):
        line = example("Prefork servers", "php-fpm").strip()
        program = shutil.which(re.search(r"php-fpm[\d.]*", line)[0])
        if program is None:
            self.skipTest("no php-fpm")
        script = self.path("page.php")
        for path, text in ((script, SCRIPT), (self.path("fpm.conf"), self.fpm_conf())):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        as_root = " --allow-to-run-as-root" if os.geteuid() == 0 else ""
        server = self.start(line + f" --fpm-config {self.path('fpm.conf')}{as_root}")
        self.check(server, self.workers(server, lambda path: fastcgi.ask(path, script, limit=LIMIT_S), 2), "execute_ex", signal.SIGQUIT)

    def fpm_conf(self):
        user = "user = nobody\ngroup = nogroup\nlisten.owner = nobody\n" if os.geteuid() == 0 else ""
        return (f"[global]\nprocess_control_timeout = 60\nerror_log = {self.path('fpm.log')}\npid = {self.path('fpm.pid')}\n[www]\nlisten = {self.path('app.sock')}\n{user}"
                "pm = static\npm.max_children = 2\n")


if __name__ == "__main__":
    unittest.main(argv=["test_servers.py"])
