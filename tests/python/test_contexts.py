# SPDX-License-Identifier: MIT
"""Contexts in headers between greenprof and OSProfiler: its client, its WSGI middleware, and everything that is refused."""
import glob
import json
import os
import subprocess
import tempfile
import unittest

import support

support.require_package()
support.require("osprofiler", "webob")

KEY = "a-key-to-look-for"

CLIENT = f"""
import greenprof
from osprofiler import profiler, web
greenprof.set_hmac_keys("another,{KEY}")
trace, parent = "4bf92f35-77b3-4da6-a3ce-929d0e0e4736", "11111111-2222-4333-8444-555555555555"
profiler.init("{KEY}", base_id=trace, parent_id=parent)
headers = web.get_trace_id_headers()
context = greenprof.context_read(headers)
assert context.trace == trace.replace("-", ""), context
assert context.parent_uuid == parent and context.parent_id == 0x8444555555555555, context
assert context.signed and context.profile and context.sampled and not context.refused, context

# All ways in which frameworks hand headers on.
environ = {{"HTTP_" + name.upper().replace("-", "_"): value.decode() if isinstance(value, bytes) else value
           for name, value in headers.items()}}
assert greenprof.context_read(environ | {{"wsgi.input": object(), "REQUEST_METHOD": "GET"}}) == context
pairs = [(name.lower().encode(), value if isinstance(value, bytes) else value.encode()) for name, value in headers.items()]
assert greenprof.context_read([(b"host", b"x")] + pairs) == context

# Written contexts go on as they came.
again = {{name: value.decode() if isinstance(value, bytes) else value for name, value in headers.items()}}
greenprof.set_hmac_keys("{KEY}")
assert greenprof.context_headers("osprofiler", context) == again, greenprof.context_headers("osprofiler", context)
"""

SERVER = f"""
import greenprof, webob
from osprofiler import profiler, web
greenprof.set_hmac_keys("{KEY},old")
seen = []

@webob.dec.wsgify
def application(request):
    seen.append(profiler.get() and profiler.get().get_base_id())
    return "done"

middleware = web.WsgiMiddleware(application, hmac_keys="else,{KEY}", enabled=True)
trace = "4bf92f35-77b3-4da6-a3ce-929d0e0e4736"
greenprof.set_trace(trace)
headers = greenprof.context_headers("osprofiler")
def send(headers):
    request = webob.Request.blank("/")
    request.headers.update(headers)
    assert request.get_response(middleware).status_int == 200
    return seen.pop()
assert send(headers) == trace, headers
assert send({{}}) is None
assert send(headers | {{"X-Trace-HMAC": headers["X-Trace-HMAC"][:-1] + "g"}}) is None
assert sorted(headers) == ["X-Trace-HMAC", "X-Trace-Info"]
"""

REFUSED = f"""
import greenprof
greenprof.set_hmac_keys("{KEY}")
greenprof.set_trace("4bf92f35-77b3-4da6-a3ce-929d0e0e4736")
headers = greenprof.context_headers("greenprof")
w3c = greenprof.context_headers()
before = greenprof.context_counts()
assert greenprof.context_read(headers).profile
assert greenprof.context_read(headers) is None  # a replay
context = greenprof.context_read(headers | w3c)
assert context.refused and not context.signed and not context.profile and context.trace in w3c["traceparent"], context
(name, value), = headers.items()
for bad in (value[:-1], value + "0", value.replace("parent=0", "parent=1"), "", "\\0", "\\ud800", "v1;" * 10000, 7, None, b"\\xff"):
    assert greenprof.context_read({{name: bad}}) is None, bad
counts = greenprof.context_counts()
change = {{key: counts[key] - before[key] for key in counts if counts[key] != before[key]}}
assert change["replayed"] == 2 and change["accepted"] == 2 and change["signed"] == 1, change
assert change["oversized"] == 1 and change["signature"] == 3 and change["malformed"] == 6, change
assert greenprof.context_read({{}}) is None and greenprof.context_read([]) is None
for wrong in (lambda: greenprof.context_headers("b3"), lambda: greenprof.set_policy("nearly"), lambda: greenprof.set_policy(""),
              lambda: greenprof.set_hmac_keys("{KEY}" * 100), lambda: greenprof.set_hmac_keys(",".join(["{KEY}"] * 17))):
    try:
        wrong()
    except ValueError as error:
        assert "{KEY}" not in repr(error), error
    else:
        raise AssertionError(wrong)
try:
    greenprof.set_hmac_keys(b"{KEY}")
except TypeError as error:
    assert "{KEY}" not in repr(error)
greenprof.set_policy("never")
assert not greenprof.context_read(greenprof.context_headers("greenprof")).profile
greenprof.set_hmac_keys(None)
assert greenprof.context_headers("greenprof") == {{}} and greenprof.context_headers("osprofiler") == {{}}
greenprof.set_trace(None)
assert greenprof.context_headers() == {{}}
"""

REQUEST = f"""
import greenprof
with_state = greenprof.context_read({{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "a=b"}})
with with_state.span("rest_dispatch", "GET /x") as request:
    headers = greenprof.context_headers("w3c", with_state)
    assert headers["tracestate"] == "a=b"
    assert headers["traceparent"] == f"00-{{with_state.trace}}-{{greenprof.current_span():016x}}-01", headers
    signed = greenprof.context_read(greenprof.context_headers("greenprof"))
    assert signed.signed and signed.parent_id == greenprof.current_span()
with signed.span("rest_dispatch", "GET /y"):
    sum(range(2000000))
"""


POLICIES = f"""
import greenprof, time
greenprof.set_hmac_keys("{KEY}")
greenprof.set_policy("{{policy}}")
greenprof.set_trace("4bf92f3577b34da6a3ce929d0e0e4736")
headers = greenprof.context_headers("greenprof")
greenprof.set_trace(None)
greenprof.consumer("file://{{directory}}")
def below(name):
    with greenprof.span("native_call", "below " + name):
        pass
with greenprof.span("rest_dispatch", "fast", trace="1" * 32):
    below("fast")
with greenprof.span("rest_dispatch", "slow", trace="2" * 32, start_unix_ns=time.time_ns() - 20 * 10**9):
    below("slow")
with greenprof.context_read(headers).span("rest_dispatch", "asked"):
    below("asked")
greenprof.consumer_close()
"""


MIDDLEWARE = f"""
import greenprof, greenprof.wsgi, os, tempfile
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PLAIN = {{"traceparent": "00-" + TRACE + "-00f067aa0ba902b7-01"}}
seen, directory = [], tempfile.mkdtemp()

def application(environ, start_response):
    start_response("200 OK", [])
    seen.append(greenprof.context_headers())
    return [b""]

def call(wrapped, headers):
    environ = {{"HTTP_" + name.upper().replace("-", "_"): value for name, value in headers.items()}}
    body = wrapped({{"PATH_INFO": "/", "REQUEST_METHOD": "GET", **environ}}, lambda *more: None)
    list(body)
    if hasattr(body, "close"):
        body.close()
    greenprof.flush()
    return sorted(os.listdir(directory))

# A service that records nothing hands on what came in, and nothing else.
tracing = greenprof.wsgi.Tracing(application)
call(tracing, PLAIN)
call(tracing, {{}})
greenprof.set_hmac_keys("{KEY}")
call(tracing, PLAIN)
assert seen == [PLAIN, {{}}, PLAIN], seen

# With keys, a file is made for what is signed alone.
files = greenprof.wsgi.Middleware(application, directory, "{{number}}-{{trace}}")
assert call(files, {{}}) == call(files, PLAIN) == []
greenprof.set_trace(TRACE)
replayed, once = greenprof.context_headers("osprofiler"), greenprof.context_headers("greenprof")
greenprof.set_trace(None)
assert call(files, replayed) == ["1-" + TRACE]
assert call(files, {{**replayed, "X-Trace-HMAC": "0" * 40}}) == ["1-" + TRACE]
both = greenprof.wsgi.Middleware(tracing, directory, "own-{{trace}}")  # the header is read once
assert call(both, once) == ["1-" + TRACE, "own-" + TRACE], os.listdir(directory)
assert call(both, once) == ["1-" + TRACE, "own-" + TRACE]
assert greenprof.context_counts()["replayed"] == 1
for policy, count in ("never", 2), ("signed", 2), ("always", 3), ("1/2", 4):
    greenprof.set_policy(policy)
    call(files, {{}})
    assert len(call(files, {{}}) if policy == "1/2" else os.listdir(directory)) == count, policy
greenprof.set_policy("never")
call(files, replayed)
assert len(os.listdir(directory)) == 4

# Only the files of requests as long as this are written, and of requests asked for, as is known at their end.
class Clock:
    now, time = 0, staticmethod(lambda: 1.5)
    monotonic_ns = staticmethod(lambda: Clock.now)

def takes(ms, environ, start_response, is_stream=False):
    start_response("200 OK", [])
    def later():
        Clock.now += int(ms * 1e6)
        yield b""
    return later() if is_stream else list(later())

greenprof.wsgi.time = Clock
for policy, ms, is_kept in (("slower=20ms", 19.9, False), ("slower=20ms", 20, True), ("slower=.5s", 400, False), ("slower=.5s", 501, True),
                            ("slower=1e3us", .9, False), ("slower=1e3us", 1.1, True), ("slower=0ns", 0, True)):
    greenprof.set_policy(policy)
    for is_stream in False, True:
        before = len(os.listdir(directory))
        slow = greenprof.wsgi.Middleware(lambda *both: takes(ms, *both, is_stream), directory, f"{{policy}}-{{ms}}-{{is_stream}}-{{{{number}}}}")
        assert len(call(slow, PLAIN)) == before + is_kept, (policy, ms, is_stream)
greenprof.set_policy("slower=20ms")
greenprof.set_trace(TRACE)
again = greenprof.context_headers("greenprof")
greenprof.set_trace(None)
before = len(os.listdir(directory))
assert len(call(greenprof.wsgi.Middleware(application, directory, "asked-{{number}}"), again)) == before + 1
def fails(environ, start_response):
    raise RuntimeError
try:
    call(greenprof.wsgi.Middleware(fails, directory, "failed-{{number}}"), PLAIN)
except RuntimeError:
    assert len(os.listdir(directory)) == before + 1
"""


def run(program, *before, **environment):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GREENPROF_HMAC")} | environment
    return subprocess.run([*before, support.PYTHON, "-B", "-c", program], capture_output=True, text=True, env=environment,
                          stdin=subprocess.DEVNULL, timeout=support.LIMIT_SECONDS)


class Contexts(unittest.TestCase):
    maxDiff = None

    def check(self, program, *before, **environment):
        done = run(program, *before, **environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_reads_osprofilers_client(self):
        self.check(CLIENT)

    def test_osprofilers_middleware_reads_ours(self):
        self.check(SERVER)

    def test_middleware(self):
        self.check(MIDDLEWARE)

    def test_refusals(self):
        self.check(REFUSED)

    def test_capture_has_the_trace_and_no_key(self):
        with tempfile.TemporaryDirectory() as directory:
            capture = os.path.join(directory, "out.greenprof")
            done = run(REQUEST, support.GREENPROF, "run", "-o", capture, "--", GREENPROF_HMAC_KEYS=f"old,{KEY}")
            self.assertEqual(done.returncode, 0, done.stderr)
            listing = support.command("report", capture, "--by", "trace")
            self.assertIn("4bf92f35", listing)
            for name in os.listdir(directory):
                with open(os.path.join(directory, name), "rb") as file:
                    self.assertNotIn(KEY.encode(), file.read())
            self.assertNotIn(KEY, done.stdout + done.stderr + listing)

    def test_policies_choose_what_consumers_get(self):
        """By policy: the names of the requests that are in files. Those called "slow" began 20 s before they were read."""
        expected = {"always": {"fast", "slow", "asked"}, "signed": {"asked"}, "never": set(), "slower=10s": {"slow", "asked"},
                    "1/2": {"fast", "asked"}}
        for policy, names in expected.items():
            with self.subTest(policy=policy), tempfile.TemporaryDirectory() as directory:
                self.check(POLICIES.format(policy=policy, directory=directory))
                seen = {}
                for path in glob.glob(os.path.join(directory, "*", "*.jsonl")):
                    with open(path, encoding="utf-8") as file:
                        for line in map(json.loads, file):
                            seen.setdefault(line["trace"], set()).add(line["name"])
                self.assertEqual(sorted(map(sorted, seen.values())), sorted(sorted(["below " + name, name]) for name in names))

    def test_environment(self):
        read = f'import greenprof; greenprof.set_trace("4bf92f3577b34da6a3ce929d0e0e4736"); h = greenprof.context_headers("greenprof"); ' \
               'print(greenprof.context_read(h).profile if h else "no key")'
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "keys")
            for text in (KEY, f"{KEY}\nold\n", f"  {KEY} , old,,\r\n"):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                done = run(read, GREENPROF_HMAC_KEYS_FILE=path)
                self.assertEqual((done.stdout, done.stderr), ("True\n", ""))
            done = run(read, GREENPROF_HMAC_KEYS=KEY, GREENPROF_POLICY="never")
            self.assertEqual((done.stdout, done.stderr), ("False\n", ""))
            done = run(read, GREENPROF_HMAC_KEYS=KEY, GREENPROF_POLICY="nearly")
            self.assertEqual((done.stdout, done.stderr.count("\n")), ("True\n", 1))
            self.assertIn("greenprof: GREENPROF_POLICY: nearly: ", done.stderr)
            done = run(read, GREENPROF_HMAC_KEYS_FILE=path + ".not")
            self.assertEqual(done.stdout, "no key\n")
            self.assertEqual(done.stderr, f"greenprof: GREENPROF_HMAC_KEYS_FILE: {path}.not: No such file or directory\n")
            done = run(read, GREENPROF_HMAC_KEYS=KEY * 100)
            self.assertEqual(done.stdout, "no key\n")
            self.assertEqual(done.stderr, "greenprof: GREENPROF_HMAC_KEYS: more than 16 keys, or one of more than 256 bytes\n")
            done = run(read)
            self.assertEqual((done.stdout, done.stderr), ("no key\n", ""))


if __name__ == "__main__":
    unittest.main()
