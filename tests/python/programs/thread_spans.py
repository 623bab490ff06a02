# SPDX-License-Identifier: MIT
"""Threads that a request starts: one that it waits for, a timer, one that begins when the request is over; and threads of a pool."""
import concurrent.futures
import threading
import time

import greenprof


def work(name, pause=0.0):
    time.sleep(pause)
    with greenprof.span("task", "in " + name):
        pass


with greenprof.span("request", "request"):
    threads = [threading.Thread(target=work, args=("joined",), name="joined"), threading.Thread(target=work, args=("late", 0.3), name="late"),
               threading.Timer(0.01, work, ("timed",))]
    for thread in threads:
        thread.start()
    threads[0].join()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(work, ["pool"] * 4))
for thread in threads[1:]:
    thread.join()
lone = threading.Thread(target=work, args=("lone",), name="lone")  # of no request
lone.start()
lone.join()
