# SPDX-License-Identifier: MIT
"""A process that works in turns: `worker.py PROGRAM PROFILER`, spoken to as ../worker.h describes; CPU is of all its threads.

For each line "amount which" it does so many units of work and answers "wall cpu process signals figures". Amount 0 ends
profiling and answers the ns that were found in each of the program's kinds; for the profiler `truth`, measured ones.
"""
import os
import sys
import time

from profilers import PROFILERS, Nothing
from programs import PROGRAMS

SETTLE_S = 0.06  # the last samples are taken in by then


def pin():
    """The first thread computes on one processor; others, started before, may use all."""
    if len(sys.argv) > 3:
        os.sched_setaffinity(0, {int(sys.argv[3])})


class Truth(Nothing):
    """CPU time of each kind, by the thread's clock: read around a plain function, and at each switch of green threads."""

    def __init__(self, program, work):
        self.ns, self.work, self.kinds, self.price = {}, work, {}, 0
        if program in ("eventlet", "gevent"):
            work.kind_of = self.kinds

    def timed(self, kind, call):
        begin = time.thread_time_ns()
        call()
        self.ns[kind] = self.ns.get(kind, 0) + time.thread_time_ns() - begin - self.price

    def start(self):
        empty = []
        for _ in range(2000):
            begin = time.thread_time_ns()
            empty.append(time.thread_time_ns() - begin)
        self.price = sorted(empty)[len(empty) // 2]
        if self.work.__class__.__name__ not in ("Eventlet", "Gevent"):
            return
        import greenlet
        kinds, ns, clock, last = self.kinds, self.ns, time.thread_time_ns, [time.thread_time_ns()]

        def switched(event, pair):
            now = clock()
            kind = kinds.get(pair[0])
            if kind is not None:
                ns[kind] = ns.get(kind, 0) + now - last[0] - self.price
            last[0] = clock()
        greenlet.settrace(switched)

    def stop(self):
        return {kind: ns / 1e9 for kind, ns in self.ns.items()}


def main():
    program, profiler = sys.argv[1:3]
    work = PROGRAMS[program]()
    truth = Truth(program, work) if profiler == "truth" else None
    profile = truth or PROFILERS[profiler](program)
    timed = truth.timed if truth else lambda kind, call: call()
    work.unit(lambda kind, call: call())  # imports, caches

    def units(amount):
        for _ in range(amount):
            work.unit(timed)
    profile.start()
    pin()
    for line in sys.stdin:
        amount = int(line.split()[0])
        if amount == 0:
            found = profile.stop()
            print(0, 0, 0, 0, *[found.get(kind, 0) * 1e9 for kind in work.KINDS], flush=True)
            return
        wall, cpu = time.monotonic_ns(), time.process_time_ns()
        profile.run(lambda: units(amount))
        wall = time.monotonic_ns() - wall
        if profiler.startswith("greenprof") and not profiler.endswith("exact"):
            time.sleep(SETTLE_S)
        now = time.process_time_ns()
        print(wall, now - cpu, now, 0, flush=True)


if __name__ == "__main__":
    main()
