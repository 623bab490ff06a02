# SPDX-License-Identifier: MIT
"""Requests that hand calls to a pool of threads, and say themselves how long each was in its queue.

Arguments: the pool's size; what hands the calls over: futures, to_thread. Prints for each request: its number, its latency, the
seconds that its call was queued, at least and at most, and the seconds that it was at work.
"""
import asyncio
import concurrent.futures
import contextvars
import sys
import threading
import time

import greenprof

SIZE, HOW = int(sys.argv[1]), sys.argv[2]
REQUESTS, JOB = 8, 0.06
now = time.monotonic
number = contextvars.ContextVar("number")
submitted, worked, latencies = {}, {}, {}


class Pool(concurrent.futures.ThreadPoolExecutor):
    """Notes the moments between which a call gets into the queue."""

    def submit(self, *arguments):
        before = now()
        future = super().submit(*arguments)
        submitted[number.get()] = (before, now())
        return future


pool = Pool(SIZE, thread_name_prefix="db")


def query(i):
    began = now()
    time.sleep(JOB)
    worked[i] = (began, now())


def request(i):
    number.set(i)
    with greenprof.span("rest_dispatch", f"GET /{i}"):
        began = now()
        pool.submit(query, i).result()
        latencies[i] = now() - began


async def task(i):
    number.set(i)
    with greenprof.span("rest_dispatch", f"GET /{i}"):
        began = now()
        await asyncio.to_thread(query, i)
        latencies[i] = now() - began


async def tasks():
    asyncio.get_running_loop().set_default_executor(pool)
    await asyncio.gather(*(task(i) for i in range(REQUESTS)))


def main():
    if HOW == "to_thread":
        asyncio.run(tasks())
    else:
        threads = [threading.Thread(target=request, args=(i,)) for i in range(REQUESTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for i in range(REQUESTS):
        (before, after), (began, ended) = submitted[i], worked[i]
        print("POOL", i, latencies[i], max(began - after, 0), began - before, ended - began)


main()
