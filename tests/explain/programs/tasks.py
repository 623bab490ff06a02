# SPDX-License-Identifier: MIT
"""asyncio: 20 handlers, and a fault that FAULT names: computes, sleeps, none.

usage: tasks.py FAULT SECONDS
"""
import asyncio
import sys
import time


def price_curve(milliseconds):
    end = time.thread_time() + milliseconds / 1000
    total = 0
    while time.thread_time() < end:
        total += sum(range(100))
    return total


def read_settings(milliseconds):
    time.sleep(milliseconds / 1000)


async def handle(until):
    while time.monotonic() < until:
        await asyncio.sleep(0.002)


async def faulty(fault, until):
    while time.monotonic() < until:
        await asyncio.sleep(0.05)
        fault()


async def main(fault, seconds):
    faults = {"computes": lambda: price_curve(60), "sleeps": lambda: read_settings(60), "none": lambda: price_curve(0.2)}
    until = time.monotonic() + seconds
    await asyncio.gather(faulty(faults[fault], until), *(handle(until) for _ in range(20)))


asyncio.run(main(sys.argv[1], float(sys.argv[2])))
