# SPDX-License-Identifier: MIT
"""Calls of Python libraries as spans of the request that makes them.

    import greenprof.libraries
    greenprof.libraries.instrument()                      # all of NAMES that are installed
    greenprof.libraries.instrument("sqlalchemy", "redis")
    greenprof.libraries.restore()

Under `greenprof run` all but osprofiler are recorded without it, as GREENPROF_SPANS and `greenprof start PID --spans` say (doc/requests.md).
What instrument() was asked for also carries the trace to the other side (HTTP, gRPC, kombu, oslo.messaging, whose dispatcher begins a request
below the call); for the others the switch `headers` says so.

Outside of requests nothing is recorded. No values are kept: of a statement its text with placeholders, of a command its name,
of an address neither user nor query. Within a call, another one of its kind is part of it: a statement is one span.

Points of OSProfiler are spans of the same trace and, in OSProfiler's own store, of the same id: `greenprof trace show` shows
both as one, and OSProfiler's driver goes on as before. A statement that both are told of by SQLAlchemy is one span.
"""
import contextlib
import contextvars
import functools
import importlib
import inspect
import os
import re
import urllib.parse
import uuid

import greenprof
from greenprof._greenprof import client_is_on, may_call

_CARRIER = "greenprof_context"  # key in the context of a call by oslo.messaging
_undo = {}  # (name, module): what takes it back
_named = set()  # by instrument()
_quiet = contextvars.ContextVar("greenprof_quiet", default=False)  # what is called is no work of the request's


def instrument(*names):
    """Record the calls of these libraries from now on; of all that are installed where none is named. Names that were given
    before are passed over. ValueError: no such name; ImportError: it was named, and is not installed."""
    for name in names or NAMES:
        if name not in NAMES:
            raise ValueError(f"{name}: it can be {', '.join(NAMES)}")
        missing = None
        for module, _ in _CLIENTS[name]:
            try:
                _change(name, importlib.import_module(module))
            except ImportError as error:
                missing = error
        if any((name, module) in _undo for module, _ in _CLIENTS[name]):
            _named.add(name)
        elif names:
            raise missing


def restore(*names):
    """Let libraries be as they were; all of them where none is named."""
    for name, module in reversed(list(_undo)):
        if name in (names or NAMES):
            for step in _undo.pop((name, module)):
                step()
            _named.discard(name)


def _change(name, module):
    if (name, module.__name__) not in _undo:
        _undo[name, module.__name__] = dict(_CLIENTS[name])[module.__name__](name, module)


def _came(module):
    """A module of a client's is there."""
    for name, rows in _CLIENTS.items():
        if module.__name__ in dict(rows):
            _change(name, module)


def _replace(owner, attribute, make):
    """Put make(what is there) in its place. Returns what takes that back, unless another one has been put there since."""
    original = getattr(owner, attribute)
    ours = functools.wraps(original)(make(original))
    setattr(owner, attribute, ours)
    return lambda: getattr(owner, attribute, None) is ours and setattr(owner, attribute, original)


class _Call:
    """A span that is told an exception's class alone: its text has addresses, arguments and values."""
    __slots__ = ("span",)

    def __init__(self, span):
        self.span = span

    def __enter__(self):
        return self.span.begin()

    def __exit__(self, kind, error, traceback):
        if kind is not None and not issubclass(kind, GeneratorExit):
            self.span.fail(kind)
        self.span.end()


_statement = contextvars.ContextVar("greenprof_statement", default=None)  # (its text, the span that was there first)


class _Shared:
    """A statement's span in the hands of who told of it second: who told first ends it."""

    def __init__(self, span):
        self.id = span.id

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def fail(self, *error):
        pass


def _begin_once(statement, begin):
    """The span of a statement about to be executed: a new one, or another listener's of the same execution."""
    told = _statement.get()
    if told is not None and told[0] == statement and told[1].id is not None and told[1].id == greenprof.current_span():
        return _Shared(told[1])
    span = begin().begin()
    _statement.set((statement, span))
    return span


def _end_once(span):
    told = _statement.get()
    if told is not None and told[1] is span:
        _statement.set(None)


def _is_open():
    return not _quiet.get() and greenprof.current_span() is not None


def _is_wanted(name, kind):
    return may_call(name, kind) and not _quiet.get()


def _headers_of(name):
    """What goes with a call of this library."""
    return greenprof.context_headers() if name in _named or client_is_on("headers") else {}


@contextlib.contextmanager
def _quietly():
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


def _verb(text, otherwise):
    match = re.match(r"\s*([A-Za-z]{1,15})\b", text)
    return match[1].upper() if match else otherwise


_NUMBER = r"|(?<![\w$%:])\d+(?:\.\d+)?"
_ESCAPED = r"{0}[^{0}\\]*(?:\\.[^{0}\\]*)*(?:{0}|\\?\Z)"  # by a backslash; or cut
_VALUES = {"mysql": re.compile(_ESCAPED.format("'") + "|" + _ESCAPED.format('"') + _NUMBER, re.S),
           "postgresql": re.compile(r"\b[eE]" + _ESCAPED.format("'") + r"|'[^']*(?:''[^']*)*(?:'|\Z)|\$(\w*)\$.*?(?:\$\1\$|\Z)" + _NUMBER, re.S)}


def _plain(statement, system):
    """Its beginning without texts and numbers."""
    text = statement[:4096].decode("utf-8", "replace") if isinstance(statement, bytes) else str(statement)[:4096]
    return _VALUES[system].sub("?", text)[:512]


def _calls(methods, kind, tell, carry=None, answer=lambda span, result: None, forget=lambda args: None):
    """A change of a module: calls of these methods, or functions, are spans.

    tell(*arguments):         the name and the fields; None: this one is none
    carry(headers, args, kw): the arguments, with headers among them
    answer(span, result):     note what came of it
    forget(args):             take back what carry() did to them
    """
    def make(name, original):
        def begin(args, kw):
            try:
                told = tell(*args, **kw) if _is_wanted(name, kind) else None
            except Exception:  # arguments that are not understood: it is for the library to say so
                told = None
            return told and greenprof.span(kind, told[0], client_call=True, **told[1])

        def carried(args, kw):
            headers = _headers_of(name) if carry is not None else None
            try:
                return carry(headers, list(args), kw) if headers else (args, kw)
            except Exception:
                return args, kw

        def ended(span, result):
            with contextlib.suppress(Exception):
                answer(span, result)
            return result

        def call(*args, **kw):
            span = begin(args, kw)
            if not span:
                return original(*args, **kw)
            with _Call(span):
                args, kw = carried(args, kw)
                try:
                    return ended(span, original(*args, **kw))
                finally:
                    forget(args)

        async def awaited(*args, **kw):
            span = begin(args, kw)
            if not span:
                return await original(*args, **kw)
            with _Call(span):
                args, kw = carried(args, kw)
                try:
                    return ended(span, await original(*args, **kw))
                finally:
                    forget(args)
        return awaited if inspect.iscoroutinefunction(original) else call

    def change(name, module):
        undo = []
        for path in methods.split():
            *owners, method = path.split(".")
            owner = functools.reduce(lambda at, part: getattr(at, part, None), owners, module)
            if getattr(owner, method, None) is not None:  # else another version
                undo.append(_replace(owner, method, functools.partial(make, name)))
        return undo
    return change


def _tell_sql(system):
    def tell(self, statement, *args, **kw):
        plain = _plain(statement, system)
        return f"{system} {_verb(plain, 'execute')}", {"db.system": system, "db.statement": plain}
    return tell


def _tell_prepared(self, *args, **kw):
    return _tell_sql("postgresql")(self, self._query)


def _tell_url(method, url):
    parts = urllib.parse.urlsplit(str(url))
    address = parts.netloc.rpartition("@")[2]
    return f"{method.upper()} {parts.hostname}", {"http.url": f"{parts.scheme}://{address}{parts.path}"}


def _tell_command(system, command):
    return f"{system} {_verb(command.decode('utf-8', 'replace') if isinstance(command, bytes) else str(command), 'command')}", {}


def _tell_mongo(command, database, collection):
    fields = {"db.system": "mongodb", "db.name": database}
    return f"mongodb {command}", {**fields, "db.collection": collection} if isinstance(collection, str) else fields


def _tell_program(command):
    if isinstance(command, (str, bytes)):  # of a shell, perhaps: a variable that it begins with is no name
        word = os.fsdecode((command.split(None, 1) or [""])[0])
        return os.path.basename(word) if re.fullmatch(r"[\w./+-]+", word) else "shell", {}
    if isinstance(command, (list, tuple)):  # another iterable may be read once only: by Popen
        return os.path.basename(os.fsdecode(command[0])), {}
    return os.path.basename(os.fsdecode(command)) if isinstance(command, os.PathLike) else "command", {}


def _tell_child(self, *args, **kw):
    return _tell_program(self.args) if self.returncode is None else None  # else it is over, and does not wait


def _carry_at(place, keyword="headers"):
    def carry(headers, args, kw):
        given = args[place] if len(args) > place else kw.get(keyword)
        if given is None and place == 4:  # urllib3's pools have some for all
            given = args[0].headers
        if given is not None and not hasattr(given, "items"):
            return args, kw
        given = given.copy() if given is not None else {}
        if not any(name.lower() == "traceparent" for name in given):
            given.update(headers)  # W3C's: what is signed would follow redirects to other hosts
        if len(args) > place:
            args[place] = given
        else:
            kw = {**kw, keyword: given}
        return args, kw
    return carry


def _carry_httpx(headers, args, kw):
    mine = [name for name in headers if name not in args[1].headers]
    args[1].headers.update({name: headers[name] for name in mine})
    args[1].__dict__["greenprof_headers"] = mine
    return args, kw


def _forget_httpx(args):
    """The request is the program's, which may send it again."""
    for name in getattr(args[1], "__dict__", {}).pop("greenprof_headers", ()) if len(args) > 1 else ():
        args[1].headers.pop(name, None)


def _carry_grpc(headers, args, kw):
    if len(args) <= 3:
        kw = {**kw, "metadata": tuple(kw.get("metadata") or ()) + tuple(headers.items())}
    return args, kw


def _note_status(span, response):
    span.set("http.status_code", getattr(response, "status", None) or response.status_code)


def _note_exit(span, result):
    code = getattr(result, "returncode", result)
    if isinstance(code, int):
        span.set("process.exit_code", code)


def _tell_urllib3(self, method, url, *args, **kw):
    return f"{method} {self.host}", {"http.url": f"{self.scheme}://{self.host}:{self.port}{urllib.parse.urlsplit(url).path}"}


def _oslo_messaging(name, module):
    transport = importlib.import_module("oslo_messaging.transport").Transport
    dispatcher = importlib.import_module("oslo_messaging.rpc.dispatcher").RPCDispatcher

    def make_send(original):
        def send(self, target, ctxt, message, *args, **kw):
            if not _is_wanted(name, "rpc_call") or not isinstance(ctxt, dict) or "method" not in message:
                return original(self, target, ctxt, message, *args, **kw)
            with _Call(greenprof.span("rpc_call", str(message["method"]), client_call=True, **{"messaging.destination": target.topic})):
                headers = _headers_of(name)
                return original(self, target, {**ctxt, _CARRIER: headers} if headers else ctxt, message, *args, **kw)
        return send

    def make_dispatch(original):
        def dispatch(self, incoming):
            carried = incoming.ctxt.pop(_CARRIER, None) if isinstance(incoming.ctxt, dict) else None
            context = greenprof.context_read(carried) if isinstance(carried, dict) else None
            if context is None:
                return original(self, incoming)
            with context.span("rpc_dispatch", str(incoming.message.get("method"))):
                return original(self, incoming)
        return dispatch

    return [_replace(transport, "_send", make_send), _replace(dispatcher, "dispatch", make_dispatch)]


_POINTS = {"wsgi": "rest_dispatch", "db": "database", "http": "rest_call", "requests": "rest_call"}


def _begin_point(profiler, name, info, is_first):
    """The span of a point, begun. The first in a process is a request, below the caller's point, if nothing is open."""
    kind = _POINTS.get(name) or ("task" if name != "rpc" else "rpc_dispatch" if is_first else "rpc_call")
    told = info if isinstance(info, dict) else {}
    request, function = (told.get(key) if isinstance(told.get(key), dict) else {} for key in ("request", "function"))
    text = f"{request.get('method')} {request.get('path')}" if request else str(function.get("name") or name)
    statement = told["db"].get("statement") if isinstance(told.get("db"), dict) else None
    fields = {} if statement is None else {"db.statement": str(statement)}
    if statement is not None:
        text = "db " + _verb(str(statement), "execute")
        if not is_first or _is_open():
            return _begin_once(str(statement), lambda: greenprof.span(kind, text, client_call=True, **fields))
    if not is_first or _is_open():
        return greenprof.span(kind, text, **fields).begin()
    parent = uuid.UUID(str(profiler.get_id()))
    base = uuid.UUID(str(profiler.get_base_id()))
    if parent == base:
        return greenprof.span(kind, text, trace=base.hex, remote_parent=0, **fields).begin()
    if parent.int >> 64:
        fields["osprofiler.parent"] = str(parent)
    return greenprof.span(kind, text, trace=base.hex, remote_parent=parent.int & 0xFFFFFFFFFFFFFFFF, **fields).begin()


def _osprofiler(client, module):
    profiler = module._Profiler

    def make_start(original):
        def start(self, name, info=None):
            points = self.__dict__.setdefault("greenprof_points", [])
            try:
                is_on = client in _named or client_is_on(client)
                span = _begin_point(self, name, info, not points) if is_on else None
            except ValueError:  # a trace whose id is no UUID
                span = None
            points.append(span)
            return original(self, name, info)
        return start

    def make_stop(original):
        def stop(self, info=None):
            points = self.__dict__.get("greenprof_points")
            span = points.pop() if points else None
            try:
                return original(self, info)
            finally:
                if span is not None:
                    if info and info.get("etype"):
                        span.fail(str(info["etype"]), str(info.get("message", "")))
                    _end_once(span)
                    span.__exit__(None, None, None)
        return stop

    def make_notify(original):
        def notify(self, name, info):
            points = self.__dict__.get("greenprof_points")
            if name.endswith("-start") and points and points[-1] is not None and points[-1].id:
                self._trace_stack[-1] = str(uuid.UUID(int=points[-1].id))
            with _quietly():  # its driver's statements
                return original(self, name, info)
        return notify

    return [_replace(profiler, "start", make_start), _replace(profiler, "stop", make_stop), _replace(profiler, "_notify", make_notify)]


def _begin_statement(connection, cursor, statement, parameters, context, executemany):
    if context is None or not _is_wanted("sqlalchemy", "database"):
        return
    system = connection.dialect.name
    context.greenprof_span = _begin_once(statement, lambda: greenprof.span(
        "database", f"{system} {_verb(statement, 'execute')}", client_call=True, **{"db.system": system, "db.statement": statement}))


def _end_statement(connection, cursor, statement, parameters, context, executemany):
    span = context.__dict__.pop("greenprof_span", None) if context is not None else None
    if span is not None:
        _end_once(span)
        span.__exit__(None, None, None)


def _fail_statement(failure):
    context = failure.execution_context
    span = context.__dict__.pop("greenprof_span", None) if context is not None else None
    if span is not None:
        _end_once(span)
        span.fail(type(failure.original_exception))
        span.__exit__(None, None, None)


def _sqlalchemy(name, module):
    event = importlib.import_module("sqlalchemy.event")
    listeners = {"before_cursor_execute": _begin_statement, "after_cursor_execute": _end_statement,
                 "handle_error": _fail_statement}
    for event_name, function in listeners.items():
        event.listen(module.Engine, event_name, function)
    return [functools.partial(event.remove, module.Engine, *listener) for listener in listeners.items()]


_REDIS = (_calls("Redis.execute_command", "cache", lambda self, command, *args, **kw: _tell_command("redis", command)),
          _calls("Pipeline.execute", "cache", lambda self, *args, **kw: ("redis pipeline", {"cache.commands": len(self.command_stack)})))
_POSTGRESQL = _calls("Cursor.execute Cursor.executemany AsyncCursor.execute AsyncCursor.executemany", "database", _tell_sql("postgresql"))


def _redis(name, module):
    return [step for change in _REDIS for step in change(name, module)]


def _memcache(name, module):
    by_command = _calls("Client._get Client._set Client._incrdecr", "cache", lambda self, command, *args, **kw: _tell_command("memcached", command))
    steps = by_command(name, module)
    for method in "delete", "get_multi", "set_multi", "delete_multi":
        steps += _calls("Client." + method, "cache", lambda *args, word=f"memcached {method.upper()}", **kw: (word, {}))(name, module)
    return steps


def _grpc(name, module):
    return _calls(" ".join(f"_{one}UnaryMultiCallable.{how}" for one in ("Unary", "Stream") for how in ("__call__", "with_call")), "rpc_call",
                  lambda self, *args, **kw: (os.fsdecode(self._method), {}), carry=_carry_grpc)(name, module)


def _pymongo(name, module):
    return _calls("SocketInfo.command Connection.command", "database",
                  lambda self, database, spec, *args, **kw: _tell_mongo(next(iter(spec)), database, spec[next(iter(spec))]))(name, module) + _calls(
        "SocketInfo.write_command Connection.write_command", "database", lambda self, *args, **kw: _tell_mongo("write", "", None))(name, module)


# Modules, and what changes each of them; imports.c has those of which the first import is noticed.
_CLIENTS = {
    "aiohttp": [("aiohttp.client", _calls("ClientSession._request", "rest_call", lambda self, method, url, *args, **kw: _tell_url(method, url),
                                          carry=_carry_at(99), answer=_note_status))],
    "asyncpg": [("asyncpg.connection", _calls("Connection.execute Connection._execute Connection._executemany", "database", _tell_sql("postgresql"))),
                ("asyncpg.prepared_stmt", _calls(" ".join(f"PreparedStatement.{how}" for how in ("fetch", "fetchval", "fetchrow", "executemany")),
                                                 "database", _tell_prepared))],
    "grpc": [("grpc._channel", _grpc)],
    "httpx": [("httpx._client", _calls("Client.send AsyncClient.send", "rest_call", lambda self, request, **kw: _tell_url(request.method, request.url),
                                       carry=_carry_httpx, answer=_note_status, forget=_forget_httpx))],
    "kombu": [("kombu.messaging", _calls("Producer.publish", "rpc_call", lambda self, body, routing_key=None, *args, **kw: (
        "kombu publish", {"messaging.destination": routing_key or self.routing_key}), carry=_carry_at(10)))],
    "memcache": [("memcache", _memcache)],
    "oslo_concurrency": [("oslo_concurrency.processutils", _calls("execute", "external_command", lambda *command, **kw: _tell_program(command)))],
    "oslo_messaging": [("oslo_messaging", _oslo_messaging)],
    "osprofiler": [("osprofiler.profiler", _osprofiler)],
    "pika": [("pika.adapters.blocking_connection", _calls("BlockingChannel.basic_publish", "rpc_call", lambda self, exchange, routing_key, *args, **kw: (
        "pika publish", {"messaging.destination": exchange or routing_key})))],
    "psycopg": [("psycopg.cursor", _POSTGRESQL), ("psycopg.cursor_async", _POSTGRESQL)],
    "pymemcache": [("pymemcache.client.base", _calls("Client._fetch_cmd Client._store_cmd", "cache",
                                                     lambda self, command, *args, **kw: _tell_command("memcached", command)))],
    "pymongo": [("pymongo.pool", _pymongo), ("pymongo.synchronous.pool", _pymongo),
                ("pymongo.server", _calls("Server.run_operation_with_response Server.run_operation", "database",
                                          lambda self, connection, operation, *args, **kw: _tell_mongo(operation.name, operation.db, operation.coll)))],
    "pymysql": [("pymysql.cursors", _calls("Cursor.execute Cursor.executemany", "database", _tell_sql("mysql")))],
    "redis": [("redis.client", _redis), ("redis.asyncio.client", _redis)],
    "sqlalchemy": [("sqlalchemy.engine", _sqlalchemy)],
    "subprocess": [("subprocess", _calls("run call Popen.communicate Popen.wait", "external_command", lambda first, *args, **kw: (
        _tell_child(first) if hasattr(first, "returncode") else _tell_program(first)), answer=_note_exit))],
    "urllib3": [("urllib3.connectionpool", _calls("HTTPConnectionPool.urlopen", "rest_call", _tell_urllib3, carry=_carry_at(4), answer=_note_status))],
}
NAMES = tuple(_CLIENTS)
MODULES = frozenset(module for rows in _CLIENTS.values() for module, _ in rows)
