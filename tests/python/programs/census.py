# SPDX-License-Identifier: MIT
"""Greenlets and asyncio tasks that wait in known places; takes a census in every way there is.

Arguments: asyncio, eventlet or gevent; the greenprof command; a file for the census. Prints what greenprof.coroutines() says
without a profile, then in one, then what `greenprof coroutines PID` says, a JSON object each.
"""
import json
import os
import subprocess
import sys

import greenprof

kind, command, path = sys.argv[1:]


def report():
    print(json.dumps([coroutine._asdict() for coroutine in greenprof.coroutines()]))


def live():
    shown = subprocess.run([command, "coroutines", str(os.getpid()), "--json"], stdout=subprocess.PIPE, text=True, check=True)
    print(json.dumps(json.loads(shown.stdout)))


def look(sleep):
    greenprof.set_trace("4bf92f3577b34da6a3ce929d0e0e4736")
    report()
    with greenprof.Profile(clock="wall"):
        sleep(0.2)
        report()
        greenprof.dump_coroutines(path)
        live()


if kind == "asyncio":
    import asyncio

    async def leaf():
        await asyncio.sleep(1000)

    async def middle(event):
        async with asyncio.timeout(2000):
            await event.wait()

    async def request(event):
        await (leaf() if event is None else middle(event))

    async def main():
        greenprof.set_trace("11111111111111111111111111111111")
        event = asyncio.Event()
        tasks = [asyncio.create_task(request(event if i % 2 else None), name=f"request {i}") for i in range(10)]
        await asyncio.sleep(0.01)
        greenprof.set_trace("4bf92f3577b34da6a3ce929d0e0e4736")
        report()
        with greenprof.Profile(clock="wall"):
            await asyncio.sleep(0.2)
            report()
            greenprof.dump_coroutines(path)
            live()
        for task in tasks:
            task.cancel()

    asyncio.run(main())
else:
    if kind == "eventlet":
        from eventlet import sleep, spawn
        from eventlet.event import Event
    else:
        from gevent import sleep, spawn
        from gevent.event import Event

    def leaf():
        sleep(1000)

    def middle(event):
        event.wait()

    def request(event):
        leaf() if event is None else middle(event)

    def main():
        event = Event()
        threads = [spawn(request, event if i % 2 else None) for i in range(10)]
        sleep(0.01)
        look(sleep)
        return threads

    threads = spawn(main)
    (threads.wait if kind == "eventlet" else threads.join)()
