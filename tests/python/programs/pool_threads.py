# SPDX-License-Identifier: MIT
"""eventlet.tpool: native threads that work while green threads do. Prints the CPU seconds of each kind."""
import os
import time

os.environ["EVENTLET_THREADPOOL_SIZE"] = "2"
import eventlet
from eventlet import tpool

spent = {"native": 0.0, "green": 0.0}


def burn(kind, ms):
    begin = time.thread_time()
    while time.thread_time() < begin + ms / 1000:
        for _ in range(100):
            pass
    spent[kind] += time.thread_time() - begin


def native(ms):
    burn("native", ms)


def green(ms):
    for _ in range(10):
        burn("green", ms / 10)
        eventlet.sleep(0)


threads = [eventlet.spawn(tpool.execute, native, 100) for _ in range(4)] + [eventlet.spawn(green, 100) for _ in range(3)]
for thread in threads:
    thread.wait()
for kind, seconds in spent.items():
    print(kind, seconds)
