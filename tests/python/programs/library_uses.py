# SPDX-License-Identifier: MIT
"""Calls libraries within a request, on servers of its own. Prints as JSON what the other sides were told."""
import http.server
import json
import socketserver
import threading

import greenprof
import greenprof.libraries
import greenprof.wsgi
import oslo_messaging
import redis
import sqlalchemy
import urllib3
from oslo_config import cfg

TRACE = "0af7651916cd43dd8448eb211c80319c"
told = {"traceparents": []}


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        told["traceparents"].append(self.headers.get("traceparent"))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


class Cache(socketserver.StreamRequestHandler):
    """As much of Redis as two commands need: OK to everything but one."""

    def handle(self):
        while line := self.rfile.readline():
            words = []
            for _ in range(int(line[1:])):
                length = int(self.rfile.readline()[1:])
                words.append(self.rfile.read(length + 2)[:-2])
            self.wfile.write(b"-ERR no\r\n" if words[0] == b"BAD" else b"+OK\r\n")


class Endpoint:
    def add(self, ctxt, a, b):
        told["context"] = sorted(ctxt)
        with greenprof.span("task", "adding"):
            return a + b


def serve(server):
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def fails(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:
        return type(error).__name__
    return None


def use(engine, cache, port, client):
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text("SELECT :secret"), {"secret": "secret"}).fetchall()
        told["statement"] = fails(connection.execute, sqlalchemy.text("NONSENSE"))
    cache.set("key", "secret")
    told["command"] = fails(cache.execute_command, "BAD", "secret")
    with cache.pipeline(transaction=False) as pipeline:
        pipeline.set("a", 1).set("b", 2).execute()
    urllib3.PoolManager().request("GET", f"http://127.0.0.1:{port}/path?token=secret")
    told["sum"] = client.call({"user": "me"}, "add", a=1, b=2)


def application(environ, start_response):
    start_response("200 OK", [])
    greenprof.span("task", "within").__enter__()
    return (part for part in [b"a", b"b"])


def main():
    greenprof.libraries.instrument()
    greenprof.libraries.instrument("redis")  # once more changes nothing
    told["names"] = fails(greenprof.libraries.instrument, "nonsense")
    engine = sqlalchemy.create_engine("sqlite://")
    cache = redis.Redis(port=serve(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Cache)))
    port = serve(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page))
    cfg.CONF([], project="greenprof", default_config_files=[])
    transport = oslo_messaging.get_rpc_transport(cfg.CONF, "fake://")
    target = oslo_messaging.Target(topic="sums", server="here")
    server = oslo_messaging.get_rpc_server(transport, target, [Endpoint()], executor="threading")
    server.start()
    client = oslo_messaging.get_rpc_client(transport, oslo_messaging.Target(topic="sums"))
    use(engine, cache, port, client)  # outside of a request
    with greenprof.span("request", "request", trace=TRACE):
        use(engine, cache, port, client)
    greenprof.libraries.restore()
    with greenprof.span("request", "restored"):
        use(engine, cache, port, client)
    server.stop()
    server.wait()
    traced = greenprof.wsgi.Tracing(application)
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/page", "HTTP_TRACEPARENT": f"00-{TRACE}-00f067aa0ba902b7-01"}
    body = traced(environ, lambda status, headers: None)
    told["body"] = [part.decode() for part in body]
    body.close()
    told["after"] = greenprof.current_span()
    print(json.dumps(told))


main()
