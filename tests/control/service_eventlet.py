# SPDX-License-Identifier: MIT
"""What service.c does, on eventlet: "burn MS" is done by two green threads.

Besides: "rest MS", the loop runs for so long, then has nothing to do; "switch N", switches between two greenlets; "types", address and size of types that greenprof knows.
"""
import asyncio
import sys
import time

import eventlet
import greenlet

used = [0.0, 0.0]


def use(worker, seconds):
    start = now = time.thread_time()
    while now - start < seconds:
        now = time.thread_time()
    used[worker] += now - start


def burn_a():
    use(0, 0.002)


def burn_b():
    use(1, 0.001)


def work(burn, seconds):
    while sum(used) < seconds:
        burn()
        eventlet.sleep(0)


def switch(count):
    main = greenlet.getcurrent()
    other = greenlet.greenlet(lambda: [main.switch() for _ in range(count)])
    for _ in range(count + 1):
        other.switch()
    return count


def types():
    known = (greenlet.greenlet, eventlet.greenthread.GreenThread, asyncio.Task)
    return [number for one in known for number in (id(one), type.__sizeof__(one) if one.__flags__ & HEAP else type.__basicsize__)]


HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE
print("ready", flush=True)
for line in sys.stdin:
    if line.startswith("switch"):
        print("switched", switch(int(line.split()[1])), flush=True)
        continue
    if line.startswith("rest"):
        seconds = int(line.split()[1]) / 1000
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            eventlet.sleep(0)
        eventlet.sleep(seconds)
        print("rested", flush=True)
        continue
    if line.startswith("types"):
        print("types", *types(), flush=True)
        continue
    used[:] = [0.0, 0.0]
    threads = [eventlet.spawn(work, burn, int(line.split()[1]) / 1000) for burn in (burn_a, burn_b)]
    for thread in threads:
        thread.wait()
    print("burned", *(int(seconds * 1e9) for seconds in used), flush=True)
