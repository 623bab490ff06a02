# SPDX-License-Identifier: MIT
"""Where the CPU time of a request goes, also when it shares its threads with thousands of others.

    profile = greenprof.Profile()
    profile.start()              # this greenlet (or thread), and the greenlets that it spawns
    handle(request)
    profile.stop()
    profile.dump_stats("request.prof")

A Profile takes the place of cProfile.Profile and of eventlet.green.profile.Profile. Any number of them run at once, each for
its own request; the program is sampled and pays next to nothing.
"""
import collections
import contextlib
import contextvars
import functools
import inspect
import itertools
import marshal
import os
import re
import tempfile
import warnings

from greenprof import _greenprof
from greenprof._greenprof import (__version__, consumer, context_counts, coro_idle, current_span, detach, dump_coroutines, set_hmac_keys, set_name,
                                  set_trace)

__all__ = ["Context", "Coroutine", "Frame", "Profile", "consumer", "consumer_close", "consumer_flush", "consumer_status",
           "context_counts", "context_headers", "context_read", "coro_idle", "coroutines", "current_span", "detach", "dump_coroutines",
           "flush", "run", "runctx", "set_hmac_keys", "set_name", "set_policy", "set_trace", "span"]

_SCOPES = {"request": 0, "thread": 1, "process": 2}
_CLOCKS = {"cpu": 0, "wall": 1}
_MODES = {"sample": 0, "exact": 1}


def _choice(what, choices, value):
    try:
        return choices[value]
    except (KeyError, TypeError):  # TypeError: it cannot be a key
        raise ValueError(f"{what}={value!r}: it can be {', '.join(choices)}") from None


def _steps(profile, generator):
    """A generator with its own steps profiled, and not what its user does between two of them."""
    step, value = generator.send, None
    while True:
        try:
            with profile:
                result = step(value)
        except StopIteration as end:
            return end.value
        try:
            step, value = generator.send, (yield result)
        except GeneratorExit:
            with profile:
                generator.close()
            raise
        except BaseException as error:
            step, value = generator.throw, error


async def _awaited_steps(generator, profile=contextlib.nullcontext(), life=contextlib.nullcontext()):
    """The same of an asynchronous one, and all its life in another context."""
    step, value = generator.asend, None
    with life:
        while True:
            try:
                with profile:
                    result = await step(value)
            except StopAsyncIteration:
                return
            try:
                step, value = generator.asend, (yield result)
            except GeneratorExit:
                with profile:
                    await generator.aclose()
                raise
            except BaseException as error:
                step, value = generator.athrow, error


def _calls_within(func, context):
    """A function, each call of it in what context() returns then."""
    if inspect.iscoroutinefunction(func):
        async def within(*args, **kw):
            with context():
                return await func(*args, **kw)
    else:
        def within(*args, **kw):
            with context():
                return func(*args, **kw)
    return functools.wraps(func)(within)


class Profile:
    """A profile of a request, a thread or the process.

    scope:     'request' (the calling greenlet or thread, and the greenlets spawned from it, and from those; never a hub, even
               if the request caused its creation; and calls that these hand to the threads of a pool), 'thread' or 'process'
    mode:      'sample', or 'exact': every call of Python and built-in functions is counted and timed, as cProfile does, but for
               each green thread by itself, at about cProfile's price
    frequency: samples per second of CPU time and thread, 1 to 20000
    native:    native frames between the Python ones; while such a profile runs, all others show them as well
    timer and what follows it are accepted for the sake of cProfile and eventlet, and not used: times are exact CPU seconds.

    In what it writes, call counts are numbers of samples, but in exact mode. Times are CPU time, or by clock='wall' elapsed time,
    in which the green thread waited included.
    """

    def __init__(self, timer=None, *unused, scope="request", clock="cpu", mode="sample", frequency=1000, name=None,
                 native=False, bias=None, timeunit=0.0, subcalls=True, builtins=True):
        if not isinstance(frequency, int) or not 1 <= frequency <= 20000:
            raise ValueError(f"frequency={frequency!r}: it is a whole number from 1 to 20000")
        self._profile = _greenprof.Profile(_choice("scope", _SCOPES, scope), _choice("clock", _CLOCKS, clock),
                                           _choice("mode", _MODES, mode), frequency, name or "python")
        self._depth, self._native, self._exact, self._stats = 0, native, mode == "exact", None

    def start(self, name="start"):
        """Start, or let a stopped profile go on. Nested starts count."""
        if self._depth == 0:
            if self._native:
                _greenprof.native(+1)
            try:
                self._profile.start()
            except BaseException:
                if self._native:
                    _greenprof.native(-1)
                raise
        self._depth += 1

    def stop(self):
        """Stop. All earlier samples are in the profile when this returns."""
        if self._depth == 1:
            self._warn_of_taken_calls()
            self._profile.stop()
            self._stopped()
        if self._depth > 0:
            self._depth -= 1

    def _warn_of_taken_calls(self):
        if self._exact and _greenprof.calls_are_taken():
            warnings.warn("another profiler took the place of this one (not by sys.setprofile or cProfile): calls are missing",
                          RuntimeWarning, stacklevel=3)

    def _stopped(self):
        if self._native:
            _greenprof.native(-1)
        if _greenprof.has_yielded():
            warnings.warn("sampling ended early: the program handles every signal that could be used for it", RuntimeWarning, stacklevel=3)

    def finish(self, path, format=None):
        """Stop, and have the file written soon, by a thread of greenprof's own: the request and the hub go on at once, where dump()
        returns when the file is there. greenprof.flush() waits for it; so does the end of the process, for 3 seconds. After that
        this is a new profile, which was never started."""
        format = format or format_of(path)
        if self._depth > 0:
            self._warn_of_taken_calls()
        self._profile.finish(path, format)
        if self._depth > 0:
            self._stopped()
        self._depth, self._stats = 0, None

    def enable(self, subcalls=True, builtins=True):
        if self._depth == 0:
            self.start()

    def disable(self):
        while self._depth > 0:
            self.stop()

    @property
    def total(self):
        """Exact CPU seconds of the scope so far."""
        return self._profile.total_ns / 1e9

    @property
    def running(self):
        return self._depth > 0

    def dump(self, path, format=None):
        """Write the profile; where no format is given it is that of the file's suffix, pstats without one; ValueError: that is
        no format's."""
        self._profile.dump(path, format or format_of(path))

    def dump_stats(self, file):
        """Write the profile as pstats reads it: python3 -m pstats, SnakeViz, gprof2dot."""
        self.disable()
        self._stats = None
        self._profile.dump(file, "pstats")

    def create_stats(self):
        self.disable()
        self.snapshot_stats()

    def snapshot_stats(self):
        """Let self.stats be what there is so far."""
        with tempfile.TemporaryDirectory(prefix="greenprof-") as directory:
            path = os.path.join(directory, "stats.prof")
            self._profile.dump(path, "pstats")
            with open(path, "rb") as file:
                self._stats = marshal.load(file)

    @property
    def stats(self):
        """What create_stats() or snapshot_stats() found; after dump_stats() what there is when it is first asked for: a service
        that only writes files has none of these objects made, which its garbage collector would have to go through."""
        if self._stats is None:
            self.snapshot_stats()
        return self._stats

    @stats.setter
    def stats(self, stats):  # pstats.Stats() takes them away
        self._stats = stats

    def print_stats(self, sort=-1):
        import pstats
        pstats.Stats(self).strip_dirs().sort_stats(*(sort if isinstance(sort, tuple) else (sort,))).print_stats()

    def run(self, cmd):
        import __main__
        return self.runctx(cmd, __main__.__dict__, __main__.__dict__)

    def runctx(self, cmd, globals, locals):
        with self:
            exec(cmd, globals, locals)
        return self

    def runcall(self, func, /, *args, **kw):
        with self:
            return func(*args, **kw)

    def __call__(self, func):
        """As a decorator: profile each call of a function, all into this profile; of a generator, what it does itself, not what
        its user does between. Calls that overlap on several green threads or tasks each need a profile of their own."""
        if inspect.isgeneratorfunction(func):
            def profiled(*args, **kw):
                return (yield from _steps(self, func(*args, **kw)))
        elif inspect.isasyncgenfunction(func):
            def profiled(*args, **kw):
                return _awaited_steps(func(*args, **kw), profile=self)
        else:
            return _calls_within(func, lambda: self)
        return functools.wraps(func)(profiled)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exception):
        self.stop()


class span(_greenprof.Span):
    """An operation with a beginning and an end, on the calling green thread, asyncio task or thread.

        with greenprof.span("database", "SELECT servers", **{"db.system": "sqlite"}) as span:
            rows = connection.execute(statement).fetchall()
            span.set("rows", len(rows))

    It nests in what is open there, also where that is open on the green thread that spawned this one; without any it is a
    request. An exception that leaves the block marks it as failed. As a decorator, each call is a span of its own; of a
    generator, its life from the first step to the last. Where nothing is recorded it costs less than a microsecond.

    kind:          'request', 'rest_call', 'rest_dispatch', 'rpc_call', 'rpc_dispatch', 'database', 'cache', 'native_call', 'task',
                   'external_command', 'thread_spawn' or 'thread_main' (these two come by themselves)
    name:          of the operation, as 'GET /servers': few different ones
    trace:         of a request: UUID, 32 hex digits, or a traceparent; else that of the green thread, or a new one
    parent:        the id of another span of this process
    remote_parent: the id of a span of another process, or 0: this span is a request
    start_unix_ns: when it began, if that was earlier
    profile:       record this request whatever the policy says
    stack:         keep the stack at which it begins
    fields:        more that is known of it; values are str(value)
    """
    __slots__ = ()

    def __call__(self, func):
        if inspect.isgeneratorfunction(func):
            def spanned(*args, **kw):
                with self.another():
                    return (yield from func(*args, **kw))
        elif inspect.isasyncgenfunction(func):
            def spanned(*args, **kw):
                return _awaited_steps(func(*args, **kw), life=self.another())
        else:
            return _calls_within(func, self.another)
        return functools.wraps(func)(spanned)


class Context(collections.namedtuple("Context", "trace parent_id parent_uuid tracestate flags refused")):
    """What the headers of a request say of its trace.

    trace:       32 hex digits
    parent_id:   the caller's span; 0 = not known
    parent_uuid: the same as OSProfiler calls it, or ''
    tracestate:  of W3C, to be handed on, or ''
    refused:     there was a signed header, and it was no good: this is from an unsigned one
    """
    __slots__ = ()

    @property
    def sampled(self):
        """Does the caller record it?"""
        return bool(self.flags & _greenprof.CONTEXT_SAMPLED)

    @property
    def signed(self):
        """By one of our keys?"""
        return bool(self.flags & _greenprof.CONTEXT_SIGNED)

    @property
    def profile(self):
        """Is this request to be profiled: signed, and allowed by the policy?"""
        return bool(self.flags & _greenprof.CONTEXT_PROFILE)

    def span(self, kind, name, **fields):
        """A greenprof.span for the request: in its trace, below the caller's span."""
        if self.parent_uuid and not self.parent_uuid.startswith("00000000-0000-0000-"):
            fields.setdefault("osprofiler.parent", self.parent_uuid)
        return span(kind, name, trace=self.trace, remote_parent=self.parent_id, profile=self.profile, **fields)


class _Request:
    """A request that a server is working for, its span open: called by its route once that is known."""
    __slots__ = ("span", "method", "template", "is_named", "status", "is_complete", "is_over")

    def __init__(self, span, method, is_named=False):
        self.span, self.method, self.is_named = span, method, is_named
        self.template = self.status = None
        self.is_complete = self.is_over = False

    def route(self, template):
        if template and not self.is_over:
            self.template = template
            if not self.is_named:
                self.span.rename(f"{self.method} {template}")

    def answer(self, status, reason=""):
        self.status = code = str(status)
        self.span.set("http.status_code", code)
        if code.startswith("5"):
            self.span.fail(f"HTTP {code}", reason)

    def end(self, *exception):
        """exception: as of __exit__(); without one, and with no whole response, the client has gone."""
        if self.is_over:
            return
        self.is_over = True
        if self.template:
            self.span.set("http.route", self.template)
        if not self.is_complete and not any(exception):
            self.span.fail("ClientGone", "the response was not sent to its end")
        self.span.__exit__(*(exception or (None, None, None)))


def _begin_request(context, name, method, is_named=False):
    begin = context.span if context is not None else functools.partial(span, remote_parent=0)
    return _Request(begin("rest_dispatch", name).begin(), method, is_named)


_request = contextvars.ContextVar("greenprof_request", default=None)  # the _Request that is worked for
_incoming = contextvars.ContextVar("greenprof_incoming", default=None)  # Context of the request that is worked for
_policy = None  # as set_policy() had it
_requests = itertools.count()


def set_policy(policy):
    """Which requests consumers, and files of greenprof.wsgi.Middleware, are of: 'always', 'never', 'signed', '1/N', 'slower=20ms'."""
    global _policy
    _greenprof.set_policy(policy)
    _policy = policy


def _is_chosen(context):
    """Is a request with this Context, or None, to have a file of its own? As consumers are asked (doc/wire.md)."""
    asked = [name for name in ("GREENPROF_HMAC_KEYS", "GREENPROF_HMAC_KEYS_FILE") if os.environ.get(name)]
    policy = _policy or os.environ.get("GREENPROF_POLICY")
    if policy == "never":
        return False
    if context is not None and context.profile:
        return True
    if not policy:  # keys that cannot be read let no request in
        return not asked and not _greenprof.context_write("greenprof", ("1" * 32, 0, "", "", 0, False))
    if policy.startswith("1/") and policy[2:].isdigit() and int(policy[2:]) > 0:
        return next(_requests) % int(policy[2:]) == 0
    return policy == "always" or _least_ns(policy) is not None


def _least_ns(policy):
    """What a request must take by the policy slower=; None: it is another policy, or none at all."""
    match = re.fullmatch(r"slower=((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(s|ms|us|ns)", policy or "")
    return float(match[1]) * {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1}[match[2]] if match else None


def _is_kept(context, ns):
    """Is the file of a request that was chosen and took so long to be written? A signed one's is, however long it took."""
    least = _least_ns(_policy or os.environ.get("GREENPROF_POLICY"))
    return least is None or ns >= least or (context is not None and context.profile)


_CONTEXT_HEADERS = frozenset(("traceparent", "tracestate", "x-trace-info", "x-trace-hmac", "x-greenprof-context"))


def _text(value):
    return value.decode("latin-1") if isinstance(value, bytes) else value


def context_read(headers):
    """The Context of a request, or None.

    headers: a mapping of names to values, a WSGI environ, or pairs (ASGI's bytes as well)
    """
    pairs = []
    for name, value in headers.items() if hasattr(headers, "items") else headers:
        name = _text(name)
        if isinstance(name, str):
            if name.startswith("HTTP_"):
                name = name[5:].replace("_", "-")
            if name.lower() in _CONTEXT_HEADERS:
                pairs.append((name, _text(value)))
    context = _greenprof.context_read(pairs) if pairs else None
    return context and Context(*context)


def context_headers(format="w3c", context=None):
    """The headers of a call to another service: a dict, empty where there is no trace, or no key to sign with.

    format:  'w3c', 'osprofiler' or 'greenprof'; the last two are signed: the other service profiles what it does for this call
    context: of the request that is worked for, so that its tracestate goes on; None: the trace and the span of the calling
             green thread, task or thread; where these are not recorded, what the request came with to greenprof.wsgi.Tracing
    """
    if context is not None:
        context = tuple(context._replace(parent_id=current_span() or context.parent_id))
    headers = _greenprof.context_write(format, context)
    if not headers and context is None and _incoming.get() is not None:
        headers = _greenprof.context_write(format, tuple(_incoming.get()))
    return headers


class Frame(collections.namedtuple("Frame", "function file line")):
    def __str__(self):
        return f"{self.file}:{self.line}({self.function})"


class Coroutine(collections.namedtuple("Coroutine", "id name state seconds spawner trace is_thread stack")):
    """A green thread, an asyncio task, or a thread's own stack, as coroutines() found it.

    state:   'running', 'blocked' (its thread sleeps in the kernel), 'ready', 'parked', 'waiting' (one of the two: it is unknown
             which), 'new', 'away' (a thread's own stack while something else runs on it), 'unknown' (not sampled)
    seconds: in that state; of 'unknown', its age
    spawner: id of the one that made it, or None
    stack:   Frames, innermost first; of one that runs, none
    """

    def __str__(self):
        what = "thread" if self.is_thread else "coroutine"
        lines = [f"{what} {self.id} {self.name}: {self.state} for {self.seconds:.3f} s"]
        return "\n".join(lines + [f"    {frame}" for frame in self.stack])


def coroutines():
    """Every green thread, asyncio task and thread there is, with the Python frames where it waits."""
    return [Coroutine(*values, [Frame(*frame) for frame in stack]) for *values, stack in _greenprof.coroutines()]


# As src/export/formats.h has them, the longer ones first; then names that people give what cProfile writes.
_FORMATS = {".speedscope.json": "speedscope", ".firefox.json": "firefox", ".trace.json": "chrome", ".json": "json", ".folded": "folded",
            ".svg": "flamegraph", ".html": "html", ".htm": "html", ".pb.gz": "pprof", ".pprof": "pprof", ".callgrind": "callgrind",
            ".otlp": "otlp",
            **dict.fromkeys((".prof", ".pstats", ".stats", ".profile", ".cprof", ".cprofile", ".out", ".dat", ".bin"), "pstats")}


def consumer_close(url=None):
    """Close a consumer, or all of them: what is queued is sent or spooled within 3 s, else TimeoutError."""
    _greenprof.consumer_close(url)


def consumer_flush(seconds=1.0):
    """Wait until the spans that are over were sent or spooled; TimeoutError."""
    _greenprof.consumer_flush(seconds)


def consumer_status(url=None):
    """What became of the spans given to a consumer, or to all of them: a dict, see prof_consumer_status_t."""
    return _greenprof.consumer_status(url)


def flush(seconds=3.0):
    """Wait until every profile that was finished is written; TimeoutError, or the OSError of the first that could not be."""
    _greenprof.flush(seconds)


def format_of(path):
    """The format that a file name asks for by its suffix; pstats where it has none. ValueError: it has another one."""
    name = os.path.basename(os.fsdecode(path))
    form = next((form for suffix, form in _FORMATS.items() if name.lower().endswith(suffix)), None)
    if form is None and os.path.splitext(name)[1][1:2].isalpha():
        raise ValueError(f"{name}: no format has this suffix, give one of {', '.join(_FORMATS)}, or format=")
    return form or "pstats"


def _finish(profile, filename, sort):
    if filename is None:
        profile.print_stats(sort)
    else:
        profile.dump(filename)


def run(statement, filename=None, sort=-1):
    """Run a statement under a profile, as cProfile.run() does."""
    import __main__
    runctx(statement, __main__.__dict__, __main__.__dict__, filename, sort)


def runctx(statement, globals, locals, filename=None, sort=-1):
    if filename is not None:
        format_of(filename)  # which may be none
    profile = Profile()
    try:
        profile.runctx(statement, globals, locals)
    except SystemExit:
        pass
    finally:
        _finish(profile, filename, sort)
