# SPDX-License-Identifier: MIT
"""Requests that hand calls to a pool of threads, and say themselves how long each was in its queue.

Arguments: the pool's size; what hands the calls over: futures, to_thread; plain (of no request), later (the same, after a
line of input; its pid comes before). Prints for each request: its number, its latency and the seconds that its call was queued,
each at least and at most, and the seconds that it was at work: once it was handed over, and all. Then how many calls no worker was
free for at a time, the same way.
"""
import asyncio
import concurrent.futures
import contextlib
import contextvars
import os
import sys
import threading
import time

SIZE, HOW = int(sys.argv[1]), sys.argv[2]
OF_REQUESTS = HOW not in ("plain", "later")
if OF_REQUESTS:
    import greenprof
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


def span_of(i):
    return greenprof.span("rest_dispatch", f"GET /{i}") if OF_REQUESTS else contextlib.nullcontext()


def request(i):
    number.set(i)
    before = now()
    with span_of(i):
        began = now()
        pool.submit(query, i).result()
        least = now() - began
    latencies[i] = (least, now() - before)


async def task(i):
    number.set(i)
    before = now()
    with span_of(i):
        began = now()
        await asyncio.to_thread(query, i)
        least = now() - began
    latencies[i] = (least, now() - before)


async def tasks():
    asyncio.get_running_loop().set_default_executor(pool)
    await asyncio.gather(*(task(i) for i in range(REQUESTS)))


def most_queued(first):
    """What no worker was free for when one came; first: of the two moments of handing over, which counts."""
    spans = [(submitted[i][first], worked[i][1] + (1 - first) * 0.005) for i in range(REQUESTS)]
    return max(sum(begin <= at < end for begin, end in spans) for at, _ in spans) - SIZE


def main():
    if HOW == "later":
        print(os.getpid(), flush=True)
        sys.stdin.readline()
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
        print("POOL", i, *latencies[i], max(began - after, 0), began - before, max(ended - max(began, after), 0), ended - began)
    print("MOST", most_queued(1), most_queued(0))


main()
