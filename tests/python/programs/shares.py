# SPDX-License-Identifier: MIT
"""Four green threads, CPU 1:2:3:4, interleaved; prints each one's own CPU time. Argument: eventlet or gevent."""
import sys
import time

times = {}


def burn(ms):
    end = time.thread_time_ns() + ms * 1000000
    while time.thread_time_ns() < end:
        for _ in range(200):
            pass


def work(name, n):
    for _ in range(60):
        begin = time.thread_time_ns()
        burn(n)
        times[name] = times.get(name, 0) + time.thread_time_ns() - begin
        sleep(0)


def w0():
    work("w0", 1)


def w1():
    work("w1", 2)


def w2():
    work("w2", 3)


def w3():
    work("w3", 4)


if sys.argv[1] == "eventlet":
    import eventlet
    sleep = eventlet.sleep
    pool = eventlet.GreenPool()
    for worker in (w0, w1, w2, w3):
        pool.spawn(worker)
    pool.waitall()
else:
    import gevent
    sleep = gevent.sleep
    gevent.joinall([gevent.spawn(worker) for worker in (w0, w1, w2, w3)])
for name, ns in sorted(times.items()):
    print(name, ns)
