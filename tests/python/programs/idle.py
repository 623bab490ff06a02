# SPDX-License-Identifier: MIT
"""A pool of one: it waits for work in idle_wait(), as it says, and at work in busy_wait(). Argument: eventlet or asyncio.

Prints its state as each of the two waits was seen by greenprof.coroutines().
"""
import sys
import time

import greenprof

TURNS, WAIT = 3, 0.1
states = []


def look():
    states.append([coroutine.state for coroutine in greenprof.coroutines() if coroutine.name == "worker"])


def with_eventlet():
    import eventlet
    import eventlet.event

    def idle_wait(event):
        greenprof.coro_idle()
        event.wait()

    def busy_wait():
        eventlet.sleep(WAIT)

    def worker(events):
        greenprof.set_name("worker")
        for event in events:
            idle_wait(event)
            with greenprof.span("request", "work"):
                busy_wait()

    events = [eventlet.event.Event() for _ in range(TURNS)]
    thread = eventlet.spawn(worker, events)
    for event in events:
        eventlet.sleep(2 * WAIT)
        look()
        event.send()
        eventlet.sleep(0)
        look()
    thread.wait()


def with_asyncio():
    import asyncio

    async def idle_wait(event):
        greenprof.coro_idle()
        await event.wait()

    async def busy_wait():
        await asyncio.sleep(WAIT)

    async def worker(events):
        greenprof.set_name("worker")
        for event in events:
            await idle_wait(event)
            with greenprof.span("request", "work"):
                await busy_wait()

    async def main():
        events = [asyncio.Event() for _ in range(TURNS)]
        task = asyncio.create_task(worker(events))
        for event in events:
            await asyncio.sleep(2 * WAIT)
            look()
            event.set()
            await asyncio.sleep(0)
            look()
        await task

    asyncio.run(main())


with_eventlet() if sys.argv[1] == "eventlet" else with_asyncio()
for state in states:
    print(*state)
