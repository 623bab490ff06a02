# SPDX-License-Identifier: MIT
"""What service.c does, on eventlet: "burn MS" is done by two green threads."""
import sys
import time

import eventlet

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


print("ready", flush=True)
for line in sys.stdin:
    used[:] = [0.0, 0.0]
    threads = [eventlet.spawn(work, burn, int(line.split()[1]) / 1000) for burn in (burn_a, burn_b)]
    for thread in threads:
        thread.wait()
    print("burned", *(int(seconds * 1e9) for seconds in used), flush=True)
