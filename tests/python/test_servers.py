# SPDX-License-Identifier: MIT
"""Requests of web servers that know nothing of greenprof: which there are, by which name, how long, and how they ended."""
import glob
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import support

support.require_package()

NAP = 0.02   # of programs/servers.py
FAILED = 16  # enum gp_span_flag


def can_connect(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False



def need(*modules):
    """Skip the test where a module is missing."""
    for module in modules:
        if subprocess.run([support.PYTHON, "-c", f"import {module}"], capture_output=True).returncode != 0:
            raise unittest.SkipTest(f"{module} is not installed")


class Server:
    """A server under `greenprof run`. ask() says the status and the seconds that a request took."""

    def __init__(self, kind, **environment):
        self.directory = tempfile.TemporaryDirectory(prefix="greenprof-servers-")
        self.port, = support.helpers.free_ports(1)
        output = os.path.join(self.directory.name, "x.greenprof")
        program = os.path.join(support.PROGRAMS, "servers.py")
        self.process = subprocess.Popen(
            [support.GREENPROF, "run", "-q", "-o", output, "--", support.PYTHON, "-B", program, kind, str(self.port)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **environment})
        support.helpers.until(lambda: can_connect(self.port), "the server", self.process, pause=0.05)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.directory.cleanup()

    def ask(self, path, headers={}, leave=False):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        begun = time.monotonic()
        connection.request("GET", path, headers=headers)
        its_socket = connection.sock
        answer = connection.getresponse()
        answer.read(1 if leave else None)
        took = time.monotonic() - begun
        if leave:
            its_socket.shutdown(socket.SHUT_RDWR)
        answer.close()
        connection.close()
        return answer.status, took

    def requests(self):
        """{name: [(latency, has failed, trace, fields)]} of all that ended."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)
        found = {}
        for capture in glob.glob(os.path.join(self.directory.name, "x.greenprof*")):
            for line in support.helpers.run([os.environ["LIST_SPANS"], capture]).stdout.splitlines():
                span = json.loads(line)
                if span["is_root"]:
                    found.setdefault(span["name"], []).append(((span["end_ns"] - span["start_ns"]) / 1e9, bool(span["flags"] & FAILED),
                                                               span["trace"], dict(span["fields"])))
        return found


class Plain(unittest.TestCase):
    """Servers without a framework: requests are called by their paths."""

    def check(self, kind):
        with Server(kind) as server:
            took = {path: server.ask(path)[1] for path in ("/plain", "/plain", "/stream", "/fail")}
            self.assertEqual(server.ask("/raise")[0], 500)
            trace = "4bf92f3577b34da6a3ce929d0e0e4736"
            server.ask("/plain", {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
            server.ask("/long", leave=True)
            time.sleep(1)  # for the server to meet the end of the connection
            found = server.requests()
        self.assertEqual({name: len(all_) for name, all_ in found.items()},
                         {"GET /plain": 3, "GET /stream": 1, "GET /fail": 1, "GET /raise": 1, "GET /long": 1})
        self.assertEqual([failed for name in ("/plain", "/stream", "/fail", "/raise", "/long") for _, failed, *_ in found["GET " + name]],
                         [False, False, False, False, True, True, True])
        self.assertIn(trace, [request[2] for request in found["GET /plain"]])
        for path, seconds in took.items():
            latency, _, _, fields = found["GET " + path][-1 if path != "/plain" else 1]
            self.assertLessEqual(latency, seconds + 0.001)
            self.assertGreaterEqual(latency, 0.7 * NAP)
            self.assertEqual(fields["http.status_code"], "503" if path == "/fail" else "200")
        self.assertEqual(found["GET /long"][0][3]["error.type"], "ClientGone")

    def test_wsgiref(self):
        self.check("wsgiref")

    def test_gunicorn(self):
        need("gunicorn")
        for worker in "sync", "gthread":
            with self.subTest(worker):
                self.check("gunicorn-" + worker)

    def test_gunicorn_on_green_threads(self):
        need("gunicorn", "eventlet", "gevent")
        for worker in "eventlet", "gevent":
            with self.subTest(worker):
                self.check("gunicorn-" + worker)

    def test_eventlet(self):
        need("eventlet")
        self.check("eventlet")

    def test_gevent(self):
        need("gevent")
        self.check("gevent")

    def test_cheroot(self):
        need("cheroot")
        self.check("cheroot")

    def test_werkzeug(self):
        need("werkzeug")
        self.check("werkzeug")

    def test_uvicorn(self):
        need("uvicorn")
        self.check("uvicorn")

    def test_hypercorn(self):
        need("hypercorn")
        self.check("hypercorn")

    def test_aiohttp(self):
        need("aiohttp")
        self.check("aiohttp")


class Attached(Server):
    """A server that runs already; its worker where it has one."""

    def __init__(self, kind):
        self.directory = tempfile.TemporaryDirectory(prefix="greenprof-servers-")
        self.port, = support.helpers.free_ports(1)
        self.process = subprocess.Popen([support.PYTHON, "-B", os.path.join(support.PROGRAMS, "servers.py"), kind, str(self.port)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        support.helpers.until(lambda: can_connect(self.port), "the server", self.process, pause=0.05)
        children = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True).stdout.split()
        self.pid = children[0] if kind.startswith("gunicorn") else str(self.process.pid)
        self.keeps_open = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.keep("/before")
        support.command("attach", self.pid, "-o", os.path.join(self.directory.name, "x.greenprof"))

    def keep(self, path):
        self.keeps_open.request("GET", path)
        self.keeps_open.getresponse().read()

    def requests(self):
        support.command("detach", self.pid)
        self.keep("/after")
        self.keeps_open.close()
        return super().requests()


class Late(unittest.TestCase):
    """Attached to: requests that begin afterwards, also on a connection that was there before."""

    def check(self, kind, path="/plain", name="GET /plain"):
        with Attached(kind) as server:
            server.ask("/first")  # by then the interpreter has come by
            server.keep("/first")
            for _ in range(3):
                self.assertEqual(server.ask(path)[0], 200)
                server.keep(path)
            found = server.requests()
        self.assertEqual(len(found.get(name, [])), 6, found)
        self.assertLessEqual(set(found), {name, "GET /first"})
        self.assertEqual([failed for requests in found.values() for _, failed, *_ in requests].count(True), 0)

    def test_wsgi(self):
        for kind, *modules in (("wsgiref",), ("werkzeug", "werkzeug"), ("cheroot", "cheroot"), ("gunicorn-sync", "gunicorn"), ("gunicorn-gthread", "gunicorn")):
            with self.subTest(kind):
                need(*modules)
                self.check(kind)

    def test_green_threads(self):
        for kind in "eventlet", "gevent":
            with self.subTest(kind):
                need(kind)
                self.check(kind)

    def test_asgi(self):
        need("uvicorn", "starlette", "aiohttp")
        self.check("uvicorn")
        self.check("uvicorn+starlette", "/users/anne", "GET /users/{id}")
        self.check("aiohttp", "/users/anne", "GET /users/{id}")


class Routes(unittest.TestCase):
    """Frameworks: requests are called by the template of their route."""

    def check(self, kind, user, item):
        with Server(kind) as server:
            for path in "/users/anne", "/users/bert", "/api/items/7", "/api/items/8":
                self.assertEqual(server.ask(path)[0], 200)
            self.assertEqual(server.ask("/none/such")[0], 404)
            found = server.requests()
        self.assertEqual({name: len(all_) for name, all_ in found.items()}, {f"GET {user}": 2, f"GET {item}": 2, "GET /none/such": 1})
        self.assertEqual(found[f"GET {user}"][0][3]["http.route"], user)

    def test_starlette(self):
        need("uvicorn", "starlette")
        self.check("uvicorn+starlette", "/users/{id}", "/api/items/{n:int}")

    def test_flask(self):
        need("flask")
        self.check("werkzeug+flask", "/users/<id>", "/api/items/<int:n>")

    def test_django(self):
        need("django")
        self.check("wsgiref+django", "/users/<id>", "/api/items/<int:n>")

    def test_aiohttp(self):
        need("aiohttp")
        self.check("aiohttp", "/users/{id}", "/api/items/{n}")


class Guest(unittest.TestCase):
    def test_switched_off(self):
        with Server("wsgiref", GREENPROF_REQUESTS="0") as server:
            server.ask("/plain")
            self.assertEqual(server.requests(), {})

    def test_without_a_server(self):
        """A program that imports none of them has nothing of greenprof's package in it."""
        script = "import sys, asyncio, http.client; print([name for name in sys.modules if name.startswith('greenprof')], len(sys.meta_path))"
        with tempfile.TemporaryDirectory() as directory:
            run = (support.GREENPROF, "run", "-q", "-o", os.path.join(directory, "x.greenprof"), "--")
            plain, under = (support.helpers.run([*before, support.PYTHON, "-c", script]).stdout for before in ((), run))
        self.assertEqual(under, plain)

    def test_paste_filter(self):
        need("paste.deploy")
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "api-paste.ini")
            with open(path, "w") as file:
                file.write("[filter:main]\npaste.filter_factory = greenprof.wsgi:Tracing.filter_factory\n")
            script = "import sys, paste.deploy; print(type(paste.deploy.loadfilter('config:' + sys.argv[1])(print)).__name__)"
            self.assertEqual(support.helpers.run([support.PYTHON, "-c", script, path]).stdout, "Tracing\n")

    def test_own_tracing(self):
        """Where the program says itself what its requests are called, each is one request, called so."""
        script = """if True:
            import greenprof.wsgi, io, wsgiref.handlers
            def site(environ, start_response):
                start_response("200 OK", [])
                return [b"."]
            site = greenprof.wsgi.Tracing(site, name=lambda environ: "mine")
            environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/x"}
            wsgiref.handlers.SimpleHandler(io.BytesIO(), io.BytesIO(), io.StringIO(), environ).run(site)"""
        with tempfile.TemporaryDirectory() as directory:
            output = os.path.join(directory, "x.greenprof")
            support.helpers.run([support.GREENPROF, "run", "-q", "-o", output, "--", support.PYTHON, "-c", script])
            text = support.command("report", output, "--by", "request")
        self.assertEqual(re.findall(r"\bok .* rest_dispatch (.*)", text), ["mine"])


if __name__ == "__main__":
    support.helpers.main(at_once=3)
