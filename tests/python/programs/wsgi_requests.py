# SPDX-License-Identifier: MIT
"""A WSGI server with overlapping requests, behind greenprof.wsgi.Middleware. Arguments: eventlet or gevent, how many, a directory.

Request i calls own_<i>() itself and in green threads that it spawns. Prints as JSON what each one really burnt, its answer, and
what the server wrote to wsgi.errors.
"""
import json
import sys
import time

kind, count, directory = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if kind == "eventlet":
    import eventlet
    eventlet.monkey_patch()
    import eventlet.wsgi
    spawn, sleep = eventlet.spawn, eventlet.sleep
    wait = lambda threads: [thread.wait() for thread in threads]
else:
    import gevent.monkey
    gevent.monkey.patch_all()
    import gevent
    import gevent.pywsgi
    spawn, sleep, wait = gevent.spawn, gevent.sleep, gevent.joinall
import http.client
import socket

import greenprof.wsgi  # after the patches: its hooks must find the real functions

TEMPLATE = """
def own_{i}(ms):
    times[{i}] += burn(ms)
def child_{i}(ms):
    for _ in range(5):
        own_{i}(ms)
        sleep(0)
def handle_{i}(start_response):
    children = [spawn(child_{i}, 4), spawn(child_{i}, 2)]
    for _ in range(10):
        own_{i}(6 + 2 * ({i} % 3))
        sleep(0.001)
    wait(children)
    start_response("200 OK", [("Content-Type", "text/plain")])
    if {i} % 3 == 0:
        return [b"{i}"]
    return stream_{i}()
def stream_{i}():
    own_{i}(2)
    yield b"{i}"
    sleep(0.001)
    own_{i}(2)
    if {i} % 3 == 2:
        raise ValueError("request {i} fails while it is sent")
"""
times = [0] * count


def burn(ms):
    begin = time.thread_time_ns()
    while time.thread_time_ns() < begin + ms * 1000000:
        for _ in range(100):
            pass
    return (time.thread_time_ns() - begin) / 1e9


for i in range(count):
    exec(compile(TEMPLATE.format(i=i), f"request_{i}", "exec"))


def application(environ, start_response):
    return globals()["handle_" + environ["QUERY_STRING"]](start_response)


class Log:
    text = ""

    def write(self, text):
        self.text += text

    flush = lambda self: None


def ask(port, i, answers):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    headers = {"traceparent": f"00-{i + 1:032x}-00f067aa0ba902b7-01"} if i % 2 else {}
    connection.request(f"A/../{i}" if i == 0 else "GET", f"/../servers/{i}?{i}", headers=headers)
    response = connection.getresponse()
    length = response.getheader("Content-Length")
    try:
        body = response.read().decode()
    except http.client.IncompleteRead as error:
        body = error.partial.decode()
    answers[i] = (response.status, body, length)


log, answers = Log(), {}
site = greenprof.wsgi.Middleware(application, directory, "{number}-{method}{path}.prof", frequency=2000)
listener = socket.create_server(("127.0.0.1", 0))
if kind == "eventlet":
    serving = spawn(eventlet.wsgi.server, listener, site, log=log)
else:
    listener.setblocking(0)
    serving = spawn(gevent.pywsgi.WSGIServer(listener, site, log=log, error_log=log).serve_forever)
wait([spawn(ask, listener.getsockname()[1], i, answers) for i in range(count)])
serving.kill()
print(json.dumps({"times": times, "answers": [answers[i] for i in range(count)], "log": log.text}))
