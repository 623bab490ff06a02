# SPDX-License-Identifier: MIT
"""Calls of Python libraries as spans of the request that makes them.

    import greenprof.libraries
    greenprof.libraries.instrument()                      # all of NAMES that are installed
    greenprof.libraries.instrument("sqlalchemy", "redis")
    greenprof.libraries.restore()

Outside of requests nothing is recorded. No values are kept: of a statement its text with placeholders, of a command its name,
of an address neither user nor query. urllib3 (and requests, which is built on it) and oslo_messaging carry the trace to the
other side, where oslo_messaging's dispatcher begins a request below the call.

Points of OSProfiler are spans of the same trace and, in OSProfiler's own store, of the same id: `greenprof trace show` shows
both as one, and OSProfiler's driver goes on as before. A statement that both are told of by SQLAlchemy is one span.
"""
import contextlib
import contextvars
import functools
import importlib
import re
import urllib.parse
import uuid

import greenprof

NAMES = ("oslo_messaging", "osprofiler", "redis", "sqlalchemy", "urllib3")

_CARRIER = "greenprof_context"  # key in the context of a call by oslo.messaging
_undo = {}  # name: what takes it back
_quiet = contextvars.ContextVar("greenprof_quiet", default=False)  # what is called is no work of the request's


def instrument(*names):
    """Record the calls of these libraries from now on; of all that are installed where none is named. Names that were given
    before are passed over. ValueError: no such name; ImportError: it was named, and is not installed."""
    for name in names or NAMES:
        if name not in NAMES:
            raise ValueError(f"{name}: it can be {', '.join(NAMES)}")
        if name in _undo:
            continue
        try:
            _undo[name] = globals()["_" + name]()
        except ImportError:
            if names:
                raise


def restore(*names):
    """Let libraries be as they were; all of them where none is named."""
    for name in names or list(_undo):
        undo = _undo.pop(name, None)
        if undo is not None:
            undo()


def _replace(owner, attribute, make):
    """Put make(what is there) in its place. Returns what takes that back."""
    original = getattr(owner, attribute)
    setattr(owner, attribute, functools.wraps(original)(make(original)))
    return lambda: setattr(owner, attribute, original)


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


def _is_wanted():
    return not _quiet.get() and greenprof.current_span() is not None


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


def _oslo_messaging():
    transport = importlib.import_module("oslo_messaging.transport").Transport
    dispatcher = importlib.import_module("oslo_messaging.rpc.dispatcher").RPCDispatcher

    def make_send(original):
        def send(self, target, ctxt, message, *args, **kw):
            if not _is_wanted() or not isinstance(ctxt, dict) or "method" not in message:
                return original(self, target, ctxt, message, *args, **kw)
            with greenprof.span("rpc_call", str(message["method"]), topic=target.topic):
                carried = {**ctxt, _CARRIER: greenprof.context_headers()}
                return original(self, target, carried, message, *args, **kw)
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

    undo = [_replace(transport, "_send", make_send), _replace(dispatcher, "dispatch", make_dispatch)]
    return lambda: [step() for step in undo]


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
        if not is_first or _is_wanted():
            return _begin_once(str(statement), lambda: greenprof.span(kind, text, **fields))
    if not is_first or _is_wanted():
        return greenprof.span(kind, text, **fields).begin()
    parent = uuid.UUID(str(profiler.get_id()))
    base = uuid.UUID(str(profiler.get_base_id()))
    if parent == base:
        return greenprof.span(kind, text, trace=base.hex, remote_parent=0, **fields).begin()
    if parent.int >> 64:
        fields["osprofiler.parent"] = str(parent)
    return greenprof.span(kind, text, trace=base.hex, remote_parent=parent.int & 0xFFFFFFFFFFFFFFFF, **fields).begin()


def _osprofiler():
    profiler = importlib.import_module("osprofiler.profiler")._Profiler

    def make_start(original):
        def start(self, name, info=None):
            points = self.__dict__.setdefault("greenprof_points", [])
            try:
                span = _begin_point(self, name, info, not points)
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

    undo = [_replace(profiler, "start", make_start), _replace(profiler, "stop", make_stop), _replace(profiler, "_notify", make_notify)]
    return lambda: [step() for step in undo]


def _redis():
    client = importlib.import_module("redis.client")

    def make_execute(original):
        def execute_command(self, *args, **kw):
            if not _is_wanted() or not args:
                return original(self, *args, **kw)
            command = args[0].decode("utf-8", "replace") if isinstance(args[0], bytes) else str(args[0])
            with greenprof.span("cache", "redis " + _verb(command, "command")):
                return original(self, *args, **kw)
        return execute_command

    def make_pipeline(original):
        def execute(self, *args, **kw):
            if not _is_wanted():
                return original(self, *args, **kw)
            with greenprof.span("cache", "redis pipeline", commands=len(self.command_stack)):
                return original(self, *args, **kw)
        return execute

    undo = [_replace(client.Redis, "execute_command", make_execute), _replace(client.Pipeline, "execute", make_pipeline)]
    return lambda: [step() for step in undo]


def _begin_statement(connection, cursor, statement, parameters, context, executemany):
    if context is None or not _is_wanted():
        return
    system = connection.dialect.name
    context.greenprof_span = _begin_once(statement, lambda: greenprof.span(
        "database", f"{system} {_verb(statement, 'execute')}", **{"db.system": system, "db.statement": statement}))


def _end_statement(connection, cursor, statement, parameters, context, executemany):
    span = context.__dict__.pop("greenprof_span", None) if context is not None else None
    if span is not None:
        _end_once(span)
        span.__exit__(None, None, None)


def _fail_statement(failure):
    context = failure.execution_context
    span = context.__dict__.pop("greenprof_span", None) if context is not None else None
    if span is not None:
        error = failure.original_exception
        _end_once(span)
        span.__exit__(type(error), error, None)


def _sqlalchemy():
    event = importlib.import_module("sqlalchemy.event")
    engine = importlib.import_module("sqlalchemy.engine").Engine
    listeners = {"before_cursor_execute": _begin_statement, "after_cursor_execute": _end_statement,
                 "handle_error": _fail_statement}
    for name, function in listeners.items():
        event.listen(engine, name, function)
    return lambda: [event.remove(engine, name, function) for name, function in listeners.items()]


def _urllib3():
    pool = importlib.import_module("urllib3.connectionpool").HTTPConnectionPool

    def make(original):
        def urlopen(self, method, url, body=None, headers=None, *args, **kw):
            if not _is_wanted():
                return original(self, method, url, body, headers, *args, **kw)
            path = urllib.parse.urlsplit(url).path
            with greenprof.span("rest_call", f"{method} {self.host}", **{"http.url": f"{self.scheme}://{self.host}:{self.port}{path}"}) as span:
                carried = dict(self.headers if headers is None else headers)
                if not any(name.lower() == "traceparent" for name in carried):
                    carried.update(greenprof.context_headers())  # W3C's: what is signed would follow redirects to other hosts
                response = original(self, method, url, body, carried, *args, **kw)
                span.set("http.status_code", response.status)
                return response
        return urlopen

    return _replace(pool, "urlopen", make)
