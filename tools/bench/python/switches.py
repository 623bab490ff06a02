# SPDX-License-Identifier: MIT
"""ns of a greenlet switch: best of many short loops, bare, at rest (greenprof imported, nothing profiled) and while sampling.

Prints the three. GREENPROF_GREENLETS chooses how switches are seen.
"""
import time

import greenlet

SWITCHES, LOOPS, TURNS = 1000, 150, 4


def loop(target):
    begin = time.perf_counter_ns()
    for _ in range(SWITCHES):
        target.switch()
    return time.perf_counter_ns() - begin


def best():
    def body():
        while True:
            parent.switch()

    parent = greenlet.getcurrent()
    target = greenlet.greenlet(body)
    target.switch()
    return min(loop(target) for _ in range(LOOPS)) / SWITCHES / 2  # there and back


def main():
    bare = min(best() for _ in range(TURNS))
    import greenprof
    resting, sampling = [], []
    for _ in range(TURNS):
        resting.append(best())
        with greenprof.Profile(scope="process", frequency=100):
            sampling.append(best())
    print(bare, min(resting), min(sampling))


if __name__ == "__main__":
    main()
