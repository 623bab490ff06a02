# SPDX-License-Identifier: MIT
"""Debian's nginx with its Lua module, unchanged: requests by URI, their latencies, what their light threads wait for, and
which Lua function kept the worker."""
import collections
import glob
import http.client
import os
import shutil
import signal
import socket
import statistics
import subprocess
import threading
import time

from shares import check
from helpers import free_ports
import shares

HERE = os.path.dirname(os.path.abspath(__file__))
# Where the Lua module's packages are unpacked (tools/setup): installed, they would take the place of luajit's.
ROOTS = (os.environ.get("GREENPROF_NGINX_LUA", "/var/cache/greenprof/nginx-lua"), "/")
MODULE = "usr/lib/nginx/modules/ngx_http_lua_module.so"
PATHS = ("computes", "sleeps", "asks", "splits", "captures", "plain")
CLIENTS, ROUNDS = 6, 25
CONFIGURATION = """
load_module {root}/usr/lib/nginx/modules/ndk_http_module.so;
load_module {root}/{module};
daemon off;
user {user};
worker_processes 2;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
  log_format times '$uri $status $request_time';
  access_log {folder}/access.log times;
  lua_package_path '{here}/?.lua;{root}/usr/share/lua/5.1/?.lua;;';
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
  uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{
    listen 127.0.0.1:{port};
    set $other {other};
    location /inner {{ internal; content_by_lua_block {{ require("nginx_app").sleeps() }} }}
    location /plain {{ return 200 "plain\\n"; }}
    location /fails {{ return 503; }}
    {locations}
  }}
}}
"""


def slow_service(listener, seconds):
    """Answers each line after a while."""
    def answer(connection):
        with connection:
            connection.recv(100)
            time.sleep(seconds)
            connection.sendall(b"an answer\n")
    while True:
        try:
            threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
        except OSError:
            return


class Nginx(shares.Shares):
    SLOW_SECONDS = 0.02

    def setUp(self):
        super().setUp()
        self.nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin")
        check.need(self.nginx is not None, "nginx is not installed")
        roots = [root for root in ROOTS if os.path.exists(os.path.join(root, MODULE))]
        check.need(roots, "nginx's Lua module is not there: tools/setup test")
        self.root = roots[0].rstrip("/")
        self.port, other = free_ports(2)
        self.listener = socket.create_server(("127.0.0.1", other))
        self.addCleanup(self.listener.close)
        threading.Thread(target=slow_service, args=(self.listener, self.SLOW_SECONDS), daemon=True).start()
        locations = "\n".join(f'location /{path} {{ content_by_lua_block {{ require("nginx_app").{path}() }} }}' for path in PATHS[:-1])
        with open(self.path("nginx.conf"), "w") as file:
            file.write(CONFIGURATION.format(root=self.root, module=MODULE, folder=self.directory, here=HERE, port=self.port,
                                            other=other, locations=locations, user=subprocess.getoutput("id -un")))

    def path(self, name):
        return os.path.join(self.directory, name)

    def start(self):
        libraries = self.root + "/usr/lib/x86_64-linux-gnu"
        command = [check.GREENPROF, "run", "-o", self.path("out"), "-F", "1000", "--", self.nginx, "-c", self.path("nginx.conf")]
        server = subprocess.Popen(command, cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env={**os.environ, **({"LD_LIBRARY_PATH": libraries} if self.root else {})})
        self.addCleanup(lambda: (server.poll() is None and server.kill(), server.communicate()))
        check.until(lambda: os.path.exists(self.path("pid")) and os.path.getsize(self.path("pid")) > 0)
        return server

    def stop(self, server):
        with open(self.path("pid")) as file:
            os.kill(int(file.read()), signal.SIGQUIT)
        return server.communicate(timeout=check.LIMIT_SECONDS)[1].decode()

    def ask(self, connection, path):
        begin = time.monotonic()
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return answer.status, time.monotonic() - begin

    def load(self):
        """Seconds of each request by its path; all are answered."""
        seen, failed = {}, []

        def client(number):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            for i in range(ROUNDS * len(PATHS)):
                path = f"/{PATHS[(i + number) % len(PATHS)]}/{number}.{i}"
                status, seen[path] = self.ask(connection, path)
                if status != 200:
                    failed.append((path, status))
            connection.close()
        clients = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
        for each in clients:
            each.start()
        for each in clients:
            each.join()
        self.assertEqual(failed, [])
        self.assertEqual(len(seen), CLIENTS * ROUNDS * len(PATHS))
        return seen

    def captures(self):
        return {path: check.Capture(path) for path in glob.glob(self.path("out.*")) if not path.endswith(".old")}

    def check_latencies(self, spans, seen):
        """As the client has them, but for its way to the worker and back; and the log, which has whole ms of a clock that is
        read once a round of the loop, so that a handler that computes takes none there. A processor that is busy, or a worker
        that computes for another request, comes between the two's readings now and then."""
        with open(self.path("access.log")) as file:
            log = {uri: float(seconds) for uri, _, seconds in map(str.split, file)}
        differences, longer = collections.defaultdict(list), 0
        for uri, span in spans.items():
            seconds = (span.end_ns - span.start_ns) / 1e9
            longer += seconds > 1.02 * seen[uri] + 0.001
            kind = uri.split("/")[1]
            differences[kind].append(abs(seconds - log[uri]) - 0.02 * log[uri])
        self.at_most("requests that take longer than for the client", longer, 0.1 * len(spans))
        for kind in PATHS[1:]:
            self.at_most(f"seconds beyond 2 % of the log's, {kind}, in the middle", statistics.median(differences[kind]), 0.001)

    def test_requests(self):
        server = self.start()
        seen = self.load()
        told = self.stop(server)
        self.assertNotIn("could not be patched", told)
        captures = self.captures()
        spans = [(span, path) for path, capture in captures.items() for span in capture.spans]
        main = {span.name.split()[-1]: span for span, _ in spans if not span.name.endswith("/inner")}
        self.assertEqual({uri: span.name for uri, span in main.items()}, {uri: f"GET {uri}" for uri in seen})
        self.assertEqual({span.fields["http.status_code"] for span in main.values()}, {"200"})
        self.check_latencies(main, seen)
        inner = [span for span, _ in spans if span.name == "GET /inner"]
        self.assertEqual(len(inner), CLIENTS * ROUNDS)
        by_id = {span.id: span for span in main.values()}
        self.assertEqual({by_id[span.parent].name.split("/")[1] for span in inner}, {"captures"})
        self.check_where(list(captures))

    def check_where(self, paths):
        wall, cpu = collections.Counter(), collections.Counter()
        for path in paths:
            for clock, into in (("wall", wall), ("cpu", cpu)):
                text = check.greenprof("export", path, "--format", "folded", "--clock", clock, check=True).stdout.decode()
                for line in text.splitlines():
                    stack, _, weight = line.rpartition(" ")
                    into[stack] += int(weight) / 1e6
        parked = sum((wall[stack] for stack in ("main chunk;app.sleeps;ngx.sleep;[parked]", "app.sleeps;ngx.sleep;[parked]")))
        self.assertGreater(parked, 0, wall.most_common(20))
        self.assertGreater(wall["main chunk;app.asks;socket.receive;[parked]"], 0, wall.most_common(20))
        self.assertGreater(wall["naps;ngx.sleep;[parked]"], 0, wall.most_common(20))
        burns = sum(seconds for stack, seconds in cpu.items() if "burns" in stack.split(";"))
        self.at_least("seconds of what computes", burns, 0.5 * sum(cpu.values()))

    def test_explain(self):
        """A request that computes keeps the worker from others."""
        server = self.start()
        self.load()
        self.stop(server)
        told = "".join(check.greenprof("explain", path, check=True).stdout.decode() for path in self.captures())
        self.assertRegex(told, r"burns \(nginx_app\.lua:[678]\) computes for up to [\d.]+ ms at a time and kept the\s+loop")

    def test_failed(self):
        """A status is what the client has."""
        server = self.start()
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        self.assertEqual(self.ask(connection, "/fails")[0], 503)
        self.assertEqual(self.ask(connection, "/none")[0], 404)
        connection.close()
        self.stop(server)
        found = {span.name: span.fields for capture in self.captures().values() for span in capture.spans}
        self.assertEqual({name: fields["http.status_code"] for name, fields in found.items()}, {"GET /fails": "503", "GET /none": "404"})
        self.assertEqual([name for name, fields in found.items() if "error.type" in fields], ["GET /fails"])


if __name__ == "__main__":
    check.main()
