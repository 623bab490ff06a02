# SPDX-License-Identifier: MIT
"""What spawned what: maker_<i> spawns child_<i>, which spawns grandchild_<i>; each i is code of its own that dies afterwards, so that the
next one lies where it did. Arguments: eventlet, gevent, asyncio or futures; how many. Each grandchild burns 15 ms."""
import gc
import sys
import time

kind, count = sys.argv[1], int(sys.argv[2])
import greenprof  # noqa: calls for other threads are followed where it is

greenprof.set_trace(f"{1:032x}")

PLAIN = """
def grandchild_{i}():
    burn()
def child_{i}():
    wait(spawn(grandchild_{i}))
def maker_{i}():
    wait(spawn(child_{i}))
run = maker_{i}
"""
ASYNC = """
async def grandchild_{i}():
    burn()
async def child_{i}():
    await asyncio.create_task(grandchild_{i}())
async def maker_{i}():
    await asyncio.create_task(child_{i}())
run = maker_{i}
"""


def burn():
    end = time.thread_time() + 0.015
    while time.thread_time() < end:
        for _ in range(100):
            pass


def names_of(i):
    names = dict(globals())
    exec(compile((ASYNC if kind == "asyncio" else PLAIN).format(i=i), f"code_{i}", "exec"), names)
    return names


async def each():
    for i in range(count):
        await names_of(i)["run"]()
        gc.collect()
        await asyncio.sleep(0)


if kind == "asyncio":
    import asyncio
    asyncio.run(each())
else:
    if kind == "eventlet":
        import eventlet
        spawn, wait = eventlet.spawn, lambda thread: thread.wait()
    elif kind == "gevent":
        import gevent
        spawn, wait = gevent.spawn, lambda thread: thread.get()
    else:
        import concurrent.futures
        spawn, wait = concurrent.futures.ThreadPoolExecutor(4).submit, lambda future: future.result()
    for i in range(count):
        names_of(i)["run"]()
        gc.collect()
