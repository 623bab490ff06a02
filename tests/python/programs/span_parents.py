# SPDX-License-Identifier: MIT
"""Spans below parents that are over, and where spans begin. Argument: the directory of a file consumer, where the run has one."""
import asyncio
import os
import sys
import threading

import greenprof

span = greenprof.span
if len(sys.argv) > 1:
    greenprof.consumer("file://" + sys.argv[1])


def leaf(name, parent):
    with span("native_call", "leaf of " + name, parent=parent, stack=True):
        pass


def mid(name, parent):
    leaf(name, parent)


def outer(name, parent):
    with span("task", name, parent=parent):
        mid(name + " by mid", None)
        leaf(name + " at once", None)


def noise(count=50):
    for _ in range(count):
        with span("task", "noise"):
            pass


def in_thread(*call):
    thread = threading.Thread(target=outer, args=call)
    thread.start()
    thread.join()


async def in_task(*call):
    await asyncio.create_task(asyncio.to_thread(outer, *call))


with span("request", "request", trace="1" * 32) as request:
    with span("task", "spawn") as spawn:
        pass
    noise()
    in_thread("parent over", spawn.id)
    with span("task", "between"):
        outer("below another one", spawn.id)
    mid("request", None)
noise()
in_thread("request over", request.id)
in_thread("both over", spawn.id)
with span("request", "another", trace="2" * 32) as another:
    outer("of the first", request.id)
    leaf("another", None)
asyncio.run(in_task("task", another.id))
noise(200)
in_thread("much later", request.id)
with span("request", "forks", trace="3" * 32) as forks:
    child = os.fork()
    if child == 0:
        in_thread("child of open", forks.id)
        in_thread("child of over", spawn.id)
        greenprof.consumer_flush(60)
        greenprof.consumer_close()
        os._exit(0)
    os.waitpid(child, 0)
greenprof.consumer_flush(60)
greenprof.consumer_close()
