# SPDX-License-Identifier: MIT
"""Requests that overlap, each on a thread of its own, and hand work to other threads.

Arguments: in which way; what the work is, to burn or to nap. Prints for each request: its name, the seconds that its work burnt, or
napped once it was handed over, on other threads, and its latency.
"""
import concurrent.futures
import functools
import multiprocessing.pool
import queue
import sys
import threading
import time

import greenprof

HOW, WHAT, REQUESTS, WORK = sys.argv[1], sys.argv[2], 4, 0.04
worked, latencies, handed = [[] for _ in range(REQUESTS)], [0.0] * REQUESTS, [0.0] * REQUESTS


def burn(seconds):
    begin = time.thread_time()
    while time.thread_time() < begin + seconds:
        for _ in range(100):
            pass
    return time.thread_time() - begin


def nap(seconds):
    begin = time.monotonic()
    time.sleep(seconds)
    return begin, time.monotonic()


def work(i, seconds=WORK):
    with greenprof.span("task", f"work {i}"):
        worked[i].append(burn(seconds) if WHAT == "burn" else nap(seconds))  # calls of a map are beside one another
    return i


def own_work(i):
    return work(i)


class Worker(threading.Thread):
    def __init__(self, i):
        super().__init__(name=f"worker {i}")
        self.i = i

    def run(self):
        own_work(self.i)


def hand_over(i, wait):
    """The work is with others, and its request waits from here on."""
    handed[i] = time.monotonic()
    return wait()


def by_thread(i, make):
    thread = make(i)
    thread.start()
    hand_over(i, thread.join)


def by_queue(i):
    done = threading.Event()
    tasks.put((i, functools.partial(own_work, i), done))
    hand_over(i, done.wait)


def serve():
    while True:
        item = tasks.get()
        if item[0] == REQUESTS:
            return
        item[1]()
        item[2].set()


WAYS = {
    "thread": lambda i: by_thread(i, lambda i: threading.Thread(target=own_work, args=(i,))),
    "class": lambda i: by_thread(i, Worker),
    "timer": lambda i: by_thread(i, lambda i: threading.Timer(0.01, own_work, args=(i,))),
    "nested": lambda i: by_thread(i, lambda i: threading.Thread(target=by_thread, args=(i, Worker))),
    "executor": lambda i: hand_over(i, executor.submit(own_work, i).result),
    "apply": lambda i: hand_over(i, pool.apply_async(own_work, (i,)).get),
    "map": lambda i: hand_over(i, pool.map_async(functools.partial(work, seconds=WORK / 4), [i] * 4).get),
    "imap": lambda i: hand_over(i, functools.partial(list, pool.imap_unordered(functools.partial(work, seconds=WORK / 4), [i] * 4))),
    "starmap": lambda i: hand_over(i, pool.starmap_async(work, [(i, WORK / 4)] * 4, chunksize=2).get),
    "queue": by_queue, "lifo": by_queue, "priority": by_queue, "simple": by_queue,
}
QUEUES = {"queue": queue.Queue, "lifo": queue.LifoQueue, "priority": queue.PriorityQueue, "simple": queue.SimpleQueue}
executor, pool = concurrent.futures.ThreadPoolExecutor(2), None
servers = []


def request(i):
    with greenprof.span("rest_dispatch", f"GET /{i}"):
        begin = time.monotonic()
        WAYS[HOW](i)
        latencies[i] = time.monotonic() - begin


if HOW in QUEUES:
    tasks = QUEUES[HOW]()
    servers = [threading.Thread(target=serve) for _ in range(2)]
elif HOW in ("apply", "map", "imap", "starmap"):
    pool = multiprocessing.pool.ThreadPool(2)
for thread in servers:
    thread.start()
requests = [threading.Thread(target=request, args=(i,)) for i in range(REQUESTS)]
for thread in requests:
    thread.start()
for thread in requests:
    thread.join()
for _ in servers:  # of no request
    tasks.put((REQUESTS, None, None))
burn(0.02)  # of no request
for i in range(REQUESTS):
    seconds = worked[i] if WHAT == "burn" else [max(end - max(begin, handed[i]), 0) for begin, end in worked[i]]
    print("FOLLOWED", f"GET /{i}", sum(seconds), latencies[i])
