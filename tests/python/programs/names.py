# SPDX-License-Identifier: MIT
"""A pool of two green threads that serve six requests, each under the request's name. Argument: eventlet or gevent."""
import sys
import time

import greenprof


def burn():
    end = time.thread_time_ns() + 60000000
    while time.thread_time_ns() < end:
        pass


def worker(first):
    for request in range(first, 6, 2):
        greenprof.set_name(f"request {request}")
        burn()
        sleep(0)
        time.sleep(0.25)  # the capture is written five times a second
        sleep(0)


greenprof.set_name("a thread keeps its own")
if sys.argv[1] == "eventlet":
    import eventlet
    sleep = eventlet.sleep
    pool = eventlet.GreenPool()
    for first in range(2):
        pool.spawn(worker, first)
    pool.waitall()
else:
    import gevent
    sleep = gevent.sleep
    gevent.joinall([gevent.spawn(worker, first) for first in range(2)])
