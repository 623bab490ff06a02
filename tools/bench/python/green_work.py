# SPDX-License-Identifier: MIT
"""Switches of green threads, as worker.h's programs speak: `amount which`, which being a place in WORK."""
import os
import sys
import time

import eventlet
import gevent
import greenlet

ROOM = list(range(40))


def ping_pong(amount):
    def body():
        while True:
            parent.switch()

    parent = greenlet.getcurrent()
    target = greenlet.greenlet(body)
    for _ in range(amount // 2):
        target.switch()


def eventlet_sleeps(amount):
    def body():
        for _ in range(amount // 16):
            eventlet.sleep(0)

    for thread in [eventlet.spawn(body) for _ in range(8)]:  # each sleep is a switch to the hub and one back
        thread.wait()


def gevent_sleeps(amount):
    def body():
        for _ in range(amount // 16):
            gevent.sleep(0)

    gevent.joinall([gevent.spawn(body) for _ in range(8)])


def eventlet_lives(amount):
    pool = eventlet.GreenPool(8)
    for _ in range(amount // 2):  # one to it, and one back to the hub
        pool.spawn_n(sum, ROOM)
    pool.waitall()


WORK = [ping_pong, eventlet_sleeps, gevent_sleeps, eventlet_lives]


def main():
    if "--pin" in sys.argv:
        os.sched_setaffinity(0, {int(sys.argv[sys.argv.index("--pin") + 1])})
    for line in iter(sys.stdin.readline, ""):
        amount, which = (int(word) for word in line.split())
        wall, cpu = time.monotonic_ns(), time.thread_time_ns()
        WORK[which](amount)
        cpu, wall = time.thread_time_ns() - cpu, time.monotonic_ns() - wall
        print(wall, cpu, time.process_time_ns(), 0, *[0] * 5, flush=True)


main()
