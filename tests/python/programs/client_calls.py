# SPDX-License-Identifier: MIT
"""Calls each client that is installed within a request, on objects that know next to nothing: the library fails, the span is there.
Prints the libraries as JSON. With "rounds", a request a line of input."""
import asyncio
import contextlib
import importlib
import inspect
import json
import sqlite3
import subprocess
import sys

import greenprof


class Stub:
    command_stack, _query, _method, routing_key = [1, 2], "SELECT 'secret', 7", b"/pkg.Service/Do", "key"
    method, url, name, db, coll, args, returncode = "GET", "http://me@host/path?secret", "find", "base", "things", ["/bin/nothing"], None
    scheme, host, port, headers = "http", "host", 80, {}


SQL = "SELECT 'secret', 7"
CALLS = {  # library: module, method, arguments
    "aiohttp": [("aiohttp.client", "ClientSession._request", "GET", Stub.url)],
    "asyncpg": [("asyncpg.connection", "Connection.execute", SQL), ("asyncpg.connection", "Connection._execute", SQL, (), 0, None),
                ("asyncpg.prepared_stmt", "PreparedStatement.fetch")],
    "grpc": [("grpc._channel", "_UnaryUnaryMultiCallable.__call__", b""), ("grpc._channel", "_StreamUnaryMultiCallable.with_call", b"")],
    "httpx": [("httpx._client", "Client.send", Stub()), ("httpx._client", "AsyncClient.send", Stub())],
    "kombu": [("kombu.messaging", "Producer.publish", "secret")],
    "memcache": [("memcache", "Client._get", "get", "secret"), ("memcache", "Client.delete", "secret")],
    "oslo_concurrency": [("oslo_concurrency.processutils", "execute", "/bin/nothing", "secret")],
    "pika": [("pika.adapters.blocking_connection", "BlockingChannel.basic_publish", "exchange", "key", b"secret")],
    "psycopg": [("psycopg.cursor", "Cursor.execute", SQL), ("psycopg.cursor_async", "AsyncCursor.execute", SQL)],
    "pymemcache": [("pymemcache.client.base", "Client._fetch_cmd", b"get", ["secret"], False)],
    "pymongo": [("pymongo.pool", "SocketInfo.command", "base", {"insert": "things", "documents": ["secret"]}),
                ("pymongo.server", "Server.run_operation_with_response", Stub(), Stub())],
    "pymysql": [("pymysql.cursors", "Cursor.execute", SQL), ("pymysql.cursors", "Cursor.executemany", SQL, [])],
    "redis": [("redis.client", "Redis.execute_command", "GET", "secret"), ("redis.client", "Pipeline.execute"),
              ("redis.asyncio.client", "Redis.execute_command", "GET", "secret")],
    "subprocess": [("subprocess", "run", ["/bin/nothing", "secret"]), ("subprocess", "Popen.wait")],
    "urllib3": [("urllib3.connectionpool", "HTTPConnectionPool.urlopen", "GET", "/path?secret")],
}


def call(module, path, *arguments):
    owner = module
    for part in path.split("."):
        owner, outer = getattr(owner, part), owner
    arguments = (Stub(), *arguments) if inspect.isclass(outer) else arguments
    with contextlib.suppress(Exception):
        result = owner(*arguments)
        if inspect.iscoroutine(result):
            asyncio.run(result)


def rounds():
    import redis.client  # the first that is noticed
    connection = sqlite3.connect(":memory:")
    print("ready", flush=True)
    for line in sys.stdin:
        with greenprof.span("request", line.strip()):
            connection.execute("SELECT 1").fetchall()
            call(redis.client, "Redis.execute_command", "GET", "x")
        print("done", flush=True)


def main():
    modules = {}
    for library, calls in CALLS.items():
        with contextlib.suppress(ImportError):
            modules[library] = [importlib.import_module(name) for name, *_ in calls]
    for library, found in modules.items():
        with greenprof.span("request", library):
            for module, (_, *rest) in zip(found, CALLS[library]):
                call(module, *rest)
    with greenprof.span("request", "whole"):
        subprocess.run(["/bin/true"], check=True)
    print(json.dumps({library: len(CALLS[library]) for library in modules}))


rounds() if sys.argv[1:] == ["rounds"] else main()
