# SPDX-License-Identifier: MIT
"""Four asyncio tasks, CPU 1:2:3:4, interleaved, each below a chain of awaits; prints each one's own CPU time."""
import asyncio
import sys
import time

times = {}


def burn(ms):
    end = time.thread_time_ns() + ms * 1000000
    while time.thread_time_ns() < end:
        for _ in range(200):
            pass


async def work(name, n):
    for _ in range(60):
        begin = time.thread_time_ns()
        burn(n)
        times[name] = times.get(name, 0) + time.thread_time_ns() - begin
        await asyncio.sleep(0)


async def w0():  # named by its coroutine function
    await work("w0", 1)


async def middle(name, n):
    await work(name, n)


async def named(name, n):
    await middle(name, n)


async def main():
    tasks = [asyncio.create_task(w0()), asyncio.create_task(named("w1", 2), name="w1")]
    async with asyncio.TaskGroup() as group:
        group.create_task(named("w2", 3), name="w2")
        is_told = sys.version_info >= (3, 12) or asyncio.Task is not asyncio.tasks._PyTask  # of new names, see doc/limits.md
        late = group.create_task(named("w3", 4), name=None if is_told else "w3")
        await asyncio.sleep(0)
        late.set_name("w3")
    await asyncio.gather(*tasks)


asyncio.run(main())
for name, ns in sorted(times.items()):
    print(name, ns)
