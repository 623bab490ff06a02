# SPDX-License-Identifier: MIT
"""Overlapping requests on one asyncio loop, each with a Profile of its own and with tasks that it makes.

Arguments: the number of requests, a directory, sample or exact. As overlapping.py otherwise.
"""
import asyncio
import sys
import time

import greenprof

count, directory, mode = int(sys.argv[1]), sys.argv[2], sys.argv[3]

TEMPLATE = """
def own_{i}(ms):
    return burn(ms)
async def child_{i}(ms):
    spent = 0
    for _ in range(5):
        spent += own_{i}(ms)
        await asyncio.sleep(0)
    times[{i}] += spent
async def inner_{i}():
    begin = time.thread_time_ns()
    children = [asyncio.create_task(child_{i}(2)), asyncio.create_task(child_{i}(1))]
    times[{i}] += time.thread_time_ns() - begin
    for _ in range(10):
        begin = time.thread_time_ns()
        own_{i}(3 + {i} % 3)
        times[{i}] += time.thread_time_ns() - begin
        await asyncio.sleep(0.001)
    await asyncio.gather(*children)
async def outer_{i}():
    profile = greenprof.Profile(name="request {i}", frequency=2000, mode=mode)
    profile.start()
    await inner_{i}()
    profile.stop()
    profile.dump_stats(f"{{directory}}/{i}.prof")
    if mode == "sample":
        profile.dump(f"{{directory}}/{i}.folded")
    totals[{i}] = profile.total
"""
times, totals = [0] * count, [0] * count


def burn(ms):
    begin = time.thread_time_ns()
    while time.thread_time_ns() < begin + ms * 1000000:
        for _ in range(100):
            pass
    return time.thread_time_ns() - begin


for i in range(count):
    exec(compile(TEMPLATE.format(i=i), f"request_{i}", "exec"))


async def main():
    await asyncio.gather(*[globals()[f"outer_{i}"]() for i in range(count)])


asyncio.run(main())
for i in range(count):
    print(i, times[i] / 1e9, totals[i])
