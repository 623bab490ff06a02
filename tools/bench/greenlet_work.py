# SPDX-License-Identifier: MIT
"""Greenlets, as worker.h's programs speak: 0, switches there and back; 1, new ones that end at once."""
import os
import sys
import time

import greenlet


def switch(amount):
    main = greenlet.getcurrent()

    def serve():
        while True:
            main.switch()
    other = greenlet.greenlet(serve)
    other.switch()
    begun = time.thread_time_ns()
    for _ in range(amount):
        other.switch()
    return time.thread_time_ns() - begun


def begin(amount):
    begun = time.thread_time_ns()
    for _ in range(amount):
        greenlet.greenlet(int).switch()
    return time.thread_time_ns() - begun


def main():
    if "--pin" in sys.argv:
        os.sched_setaffinity(0, {int(sys.argv[sys.argv.index("--pin") + 1])})
    for line in iter(sys.stdin.readline, ""):
        amount, which = (int(word) for word in line.split())
        wall = time.monotonic_ns()
        cpu = (switch, begin)[which](amount)
        print(time.monotonic_ns() - wall, cpu, time.process_time_ns(), 0, *[0] * 5, flush=True)


main()
