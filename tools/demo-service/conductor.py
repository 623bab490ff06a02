#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The conductor: the third service of the demo, on eventlet, with a cache in Redis and its data in SQLite.

    conductor.py --port-file FILE --redis SOCKET [--port PORT] [--delay-max MS]

GET /place?delay=MS answers with the host on which a thing is to be placed. Each request runs on a green thread of its own;
the connection to Redis is shared, so that requests wait for one another there.
"""
import eventlet
eventlet.monkey_patch()

import argparse
import json
import os
import random
import signal
import sqlite3
import tempfile
import urllib.parse

import eventlet.wsgi
import redis

import greenprof
import greenprof.libraries
import greenprof.wsgi

greenprof.libraries.instrument("redis")

HOSTS = 400
CACHED_SECONDS = 1


def make_database(path):
    """A table of hosts with their load."""
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE hosts(name TEXT, zone INTEGER, memory_mb INTEGER, load REAL)")
        rows = [(f"host-{number}", number % 8, 1024 * (number % 64), number * 37 % 100 / 100) for number in range(HOSTS)]
        database.executemany("INSERT INTO hosts VALUES (?, ?, ?, ?)", rows)


class Conductor:
    def __init__(self, database, cache):
        self.database, self.cache = database, cache

    def hosts(self, zone):
        """The hosts of a zone: from the cache, else from the database; greenprof sees the calls of both."""
        key = f"hosts:{zone}"
        cached = self.cache.get(key)
        if cached is not None:
            return json.loads(cached)
        rows = self.database.execute("SELECT name, memory_mb, load FROM hosts WHERE zone = ?", (zone,)).fetchall()
        self.cache.set(key, json.dumps(rows), ex=CACHED_SECONDS)
        return rows

    def weigh(self, hosts):
        """The best host: what Nova calls filters and weighers."""
        best = None
        for _ in range(20):
            for name, memory, load in hosts:
                weight = memory / 65536 - load + len(json.dumps({"name": name})) / 1000
                best = max(best or (weight, name), (weight, name))
        return best[1]

    def ask_host(self, host, delay_ms):
        """The host itself is somewhere else: it takes its time."""
        with greenprof.span("rpc_call", "claim", host=host):
            eventlet.sleep(delay_ms / 1000)

    def place(self, query):
        delay_ms = int(query.get("delay", "0") or 0) or random.randint(50, 200)
        host = self.weigh(self.hosts(random.randrange(8)))
        self.ask_host(host, min(delay_ms, 10000))
        return {"host": host}

    def __call__(self, environ, start_response):
        query = dict(urllib.parse.parse_qsl(environ.get("QUERY_STRING", "")))
        body = json.dumps(self.place(query)).encode()
        start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]


def write_port(path, port):
    """The file appears with its contents."""
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(f"{port}\n")
    os.rename(path + ".new", path)


def wait_for_sigterm():
    """Parks the calling green thread: the signal wakes the hub through a pipe."""
    readable, writable = os.pipe()
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable)
    signal.signal(signal.SIGTERM, lambda *_: None)
    eventlet.hubs.trampoline(readable, read=True)


def main():
    parser = argparse.ArgumentParser(description="The demo's conductor.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", required=True)
    parser.add_argument("--redis", required=True, metavar="SOCKET")
    options = parser.parse_args()
    listener = eventlet.listen(("127.0.0.1", options.port))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "hosts.db")
        make_database(path)
        conductor = Conductor(sqlite3.connect(path), redis.Redis(unix_socket_path=options.redis))
        site = greenprof.wsgi.Tracing(conductor)
        server = eventlet.spawn(eventlet.wsgi.server, listener, site, log_output=False)
        write_port(options.port_file, listener.getsockname()[1])
        wait_for_sigterm()
        server.kill()


if __name__ == "__main__":
    main()
