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


async def handle(over):
    while not over.is_set():
        await asyncio.sleep(0.002)


async def faulty(fault, rounds, over):
    for _ in range(rounds):
        await asyncio.sleep(0.05)
        fault()
    over.set()


async def main(fault, seconds):
    faults = {"computes": lambda: price_curve(60), "sleeps": lambda: read_settings(60), "none": lambda: price_curve(0.2)}
    over, rounds = asyncio.Event(), int(seconds / 0.05)  # as many on a busy machine
    await asyncio.gather(faulty(faults[fault], rounds, over), *(handle(over) for _ in range(20)))


asyncio.run(main(sys.argv[1], float(sys.argv[2])))
