# SPDX-License-Identifier: MIT
"""asyncio tasks that run code in greenlets and are awaited from within them, as SQLAlchemy does: 50 ms of CPU for each of six."""
import asyncio
import time

import greenlet


def burn(ms):
    end = time.thread_time_ns() + ms * 1000000
    while time.thread_time_ns() < end:
        pass


def in_task():
    burn(5)


def in_green():
    burn(5)


def sync(turns):
    parent = greenlet.getcurrent().parent
    for _ in range(turns):
        in_green()
        parent.switch()


async def run(turns):
    inner = greenlet.greenlet(sync)
    inner.switch(turns)
    while not inner.dead:
        await asyncio.sleep(0.001)
        in_task()
        inner.switch()


async def main():
    await asyncio.gather(*[asyncio.create_task(run(10), name=f"task {i}") for i in range(3)])


asyncio.run(main())
