# SPDX-License-Identifier: MIT
"""Two calls on lines of their own, their CPU time 3:1; prints their true shares."""
import time

def leaf(n):
    return sum(range(n))


def burn():
    times = [0, 0]
    end = time.thread_time_ns() + 1_500_000_000
    while time.thread_time_ns() < end:
        a = time.thread_time_ns()
        leaf(30000)
        b = time.thread_time_ns()
        leaf(10000)
        times[0] += b - a
        times[1] += time.thread_time_ns() - b
    print(*times)


burn()
