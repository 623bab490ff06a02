# SPDX-License-Identifier: MIT
"""Green threads that wait in places of their own, for times of their own; 300 ms of each in short waits. Prints true seconds."""
import time

import eventlet

times = {}


def short_waits():
    eventlet.sleep(0.005)


def long_waits():
    eventlet.sleep(0.05)


def run(name, wait, n):
    begin = time.monotonic()
    for _ in range(n):
        wait()
    times[name] = time.monotonic() - begin


threads = [eventlet.spawn(run, "short_waits", short_waits, 60), eventlet.spawn(run, "long_waits", long_waits, 12)]
for thread in threads:
    thread.wait()
for name, seconds in times.items():
    print(name, seconds)
