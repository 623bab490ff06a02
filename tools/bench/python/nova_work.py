# SPDX-License-Identifier: MIT
"""Nova's scheduler, as worker.h's programs speak: `amount which` is so many select_destinations(), 8 at once, which being a place in
KINDS: what each of them is profiled by, into a file of its own. CPU is of all the process' threads.

    nova_work.py FOLDER
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(HERE))), "tests/python/programs"))
import nova_case  # noqa: E402, first of all: it patches as nova's commands do
import time  # noqa: E402
import unittest  # noqa: E402
from unittest import mock  # noqa: E402

import eventlet  # noqa: E402
from eventlet import patcher  # noqa: E402
from nova.scheduler import host_manager  # noqa: E402

HOSTS, AT_ONCE = 8, 8
SETTLE_S = 0.06  # what was sampled last is taken in by then
LINGER_S = 0.6  # and greenprof's sampler ends
FOLDER = sys.argv[1]
sleep = patcher.original("time").sleep  # of the thread: no green one runs meanwhile


def greenprof(mode):
    import greenprof
    return greenprof.Profile(mode=mode)


def c_profile():
    import cProfile
    return cProfile.Profile()


def of_eventlet():
    from eventlet.green import profile
    return profile.Profile()


KINDS = [None, lambda: greenprof("sample"), lambda: greenprof("exact"), c_profile, of_eventlet]
make, number, failed = None, 0, 0


def profiled(*args, **kw):
    global number
    if make is None:
        return nova_case.select_destinations(*args, **kw)
    profile, number = make(), number + 1
    path = os.path.join(FOLDER, f"{number % AT_ONCE}.prof")
    start, stop = (profile.enable, profile.disable) if make is c_profile else (profile.start, profile.stop)
    start()
    try:
        return nova_case.select_destinations(*args, **kw)
    finally:
        stop()
        profile.dump_stats(path)


class Service(nova_case.Case):
    def test(self):
        self.start(HOSTS)
        schedule = self.requests(profiled)
        with mock.patch.object(host_manager.HostManager, "_get_instance_info", nova_case.slow):
            for line in iter(sys.stdin.readline, ""):
                amount, which = (int(word) for word in line.split())
                print(*block(schedule, amount, which), 0, failed, *[0] * 4, file=sys.__stdout__, flush=True)


def attempt(schedule):
    global failed
    try:
        schedule()
    except Exception:  # some profilers break what they profile
        failed += 1


def block(schedule, amount, which):
    """The times so many requests took: wall, CPU of the process; and the latter since its start."""
    global make
    if make is not KINDS[which]:
        sleep(LINGER_S)
    make = KINDS[which]
    wall, cpu = time.monotonic_ns(), time.process_time_ns()
    pool = eventlet.GreenPool(AT_ONCE)
    for _ in range(amount):
        pool.spawn_n(attempt, schedule)
    pool.waitall()
    wall = time.monotonic_ns() - wall
    sleep(SETTLE_S)
    now = time.process_time_ns()
    return wall, now - cpu, now


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
