# SPDX-License-Identifier: MIT
"""asyncio tasks that wait in places of their own, for times of their own. Prints true seconds of each place, and of how
long `victim` was ready and not served."""
import asyncio
import time

times = {}


async def short_waits():
    await asyncio.sleep(0.005)


async def long_waits():
    await asyncio.sleep(0.05)


async def produces():
    for _ in range(10):
        await long_waits()
        yield 1


async def event_wait(event):
    async with asyncio.timeout(60):
        await event.wait()


async def run(name, wait, n):
    begin = time.monotonic()
    for _ in range(n):
        await wait()
    times[name] = times.get(name, 0) + time.monotonic() - begin


async def generated():
    begin = time.monotonic()
    async for _ in produces():
        pass
    times["produces"] = time.monotonic() - begin
    times["long_waits"] = times.get("long_waits", 0) + time.monotonic() - begin


async def waiter(event):
    begin = time.monotonic()
    await event_wait(event)
    times["event_wait"] = time.monotonic() - begin


def blocks():
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        pass


async def victim(turns):
    for _ in range(turns):
        begin = time.monotonic()
        await asyncio.sleep(0)
        times["ready"] = times.get("ready", 0) + time.monotonic() - begin


async def hog(turns):
    for _ in range(turns):
        blocks()
        await asyncio.sleep(0)


async def main():
    event = asyncio.Event()
    asyncio.get_running_loop().call_later(0.4, event.set)
    await asyncio.gather(run("short_waits", short_waits, 60), run("long_waits", long_waits, 8), generated(), waiter(event))
    await asyncio.gather(victim(6), hog(6))


asyncio.run(main())
for name, seconds in times.items():
    print(name, seconds)
