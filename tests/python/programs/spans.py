# SPDX-License-Identifier: MIT
"""Spans of known shape. Argument: eventlet, gevent, asyncio or threads. Prints as JSON what they are, by name."""
import json
import sys
import time

kind = sys.argv[1]
if kind == "eventlet":
    import eventlet
    eventlet.monkey_patch()
elif kind == "gevent":
    import gevent.monkey
    gevent.monkey.patch_all()
import threading

import greenprof

REQUESTS, CHILDREN, TURNS = 20, 3, 5
seen = {}  # name: (id, id of the parent)


def trace_of(i):
    return f"{i + 1:032x}"


def note(span, name):
    assert span.id is not None and greenprof.current_span() == span.id, name
    seen[name] = span.id


def child(i, c, sleep, parent):
    with greenprof.span("task", f"child-{i}-{c}", parent=parent) as span:
        note(span, f"child-{i}-{c}")
        for t in range(TURNS):
            sleep()
            with greenprof.span("cache", f"get-{i}-{c}-{t}", key=(i, c), turn=t) as inner:
                note(inner, f"get-{i}-{c}-{t}")
                sleep()


def request(i, spawn, join, sleep):
    with greenprof.span("rest_dispatch", f"request-{i}", trace=trace_of(i), remote_parent=i) as span:
        note(span, f"request-{i}")
        # A thread works for no request unless it is told.
        parent = span.id if kind == "threads" else None
        started = [spawn(child, i, c, sleep, parent) for c in range(CHILDREN)]
        for _ in range(TURNS):
            sleep()
            assert greenprof.current_span() == span.id
        join(started)
        span.set("http.status", 200)
    assert greenprof.current_span() is None


def run(spawn, join, sleep):
    join([spawn(request, i, spawn, join, sleep) for i in range(REQUESTS)])


async def child_task(i, c, sleep):
    with greenprof.span("task", f"child-{i}-{c}") as span:
        note(span, f"child-{i}-{c}")
        for t in range(TURNS):
            await sleep(0.0005)
            with greenprof.span("cache", f"get-{i}-{c}-{t}", key=(i, c), turn=t) as inner:
                note(inner, f"get-{i}-{c}-{t}")
                await sleep(0.0005)


async def request_task(i, create, sleep):
    with greenprof.span("rest_dispatch", f"request-{i}", trace=trace_of(i), remote_parent=i) as span:
        note(span, f"request-{i}")
        started = [create(child_task(i, c, sleep)) for c in range(CHILDREN)]
        for _ in range(TURNS):
            await sleep(0.0005)
            assert greenprof.current_span() == span.id
        for task in started:
            await task
        span.set("http.status", 200)
    assert greenprof.current_span() is None


async def run_tasks(asyncio):
    await asyncio.gather(*[asyncio.create_task(request_task(i, asyncio.create_task, asyncio.sleep)) for i in range(REQUESTS)])


def start_thread(function, *args):
    thread = threading.Thread(target=function, args=args)
    thread.start()
    return thread


def join_threads(threads):
    for thread in threads:
        thread.join()


if kind == "eventlet":
    run(eventlet.spawn, lambda threads: [thread.wait() for thread in threads], lambda: eventlet.sleep(0.0005))
elif kind == "gevent":
    run(gevent.spawn, gevent.joinall, lambda: gevent.sleep(0.0005))
elif kind == "asyncio":
    import asyncio
    asyncio.run(run_tasks(asyncio))
else:
    run(start_thread, join_threads, lambda: time.sleep(0.0005))
json.dump(seen, sys.stdout)
