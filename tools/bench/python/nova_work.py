# SPDX-License-Identifier: MIT
"""Nova's scheduler, as worker.h's programs speak: `amount which` is so many select_destinations(), 8 at once, which being a place in
KINDS: what each of them is profiled by, into a new file of its own. CPU is of all the process' threads.

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
SETTLE_S = 0.06  # the last samples are taken in by then
LINGER_S = 0.6  # and greenprof's sampler ends
FOLDER = sys.argv[1]
sleep = patcher.original("time").sleep  # of the thread: no green one runs meanwhile


def greenprof(**options):
    import greenprof
    return greenprof.Profile(**options)


def c_profile():
    import cProfile
    return cProfile.Profile()


def of_eventlet():
    from eventlet.green import profile
    return profile.Profile()


def finish(profile, path):
    profile.finish(path)


def stop_and_dump(profile, path):
    profile.stop()
    profile.dump_stats(path)


def disable_and_dump(profile, path):
    profile.disable()
    profile.dump_stats(path)


KINDS = [None, (greenprof, finish), (greenprof, stop_and_dump), (lambda: greenprof(mode="exact"), finish), (c_profile, disable_and_dump),
         (of_eventlet, stop_and_dump)]
kind, number, failed = None, 0, 0


def profiled(*args, **kw):
    global number
    if kind is None:
        return nova_case.select_destinations(*args, **kw)
    (make, end), number = kind, number + 1
    profile, path = make(), os.path.join(FOLDER, f"{number}.prof")
    (profile.start if hasattr(profile, "start") else profile.enable)()
    try:
        return nova_case.select_destinations(*args, **kw)
    finally:
        end(profile, path)


class Service(nova_case.Case):
    def test(self):
        self.start(HOSTS)
        schedule = self.requests(profiled)
        with mock.patch.object(host_manager.HostManager, "_get_instance_info", nova_case.slow):
            for line in iter(sys.stdin.readline, ""):
                amount, which = (int(word) for word in line.split())
                *times, others = block(schedule, amount, which)
                print(*times, 0, others, failed, 0, 0, file=sys.__stdout__, flush=True)


def attempt(schedule):
    global failed
    try:
        schedule()
    except Exception:  # some profilers break what they profile
        failed += 1


def block(schedule, amount, which):
    """The times so many requests took: wall, CPU of the process; the latter since its start; and of threads but this one."""
    global kind
    if kind is not KINDS[which]:
        sleep(LINGER_S)
    kind = KINDS[which]
    wall, cpu, mine = time.monotonic_ns(), time.process_time_ns(), time.thread_time_ns()
    pool = eventlet.GreenPool(AT_ONCE)
    for _ in range(amount):
        pool.spawn_n(attempt, schedule)
    pool.waitall()
    wall = time.monotonic_ns() - wall
    sleep(SETTLE_S)
    now = time.process_time_ns()
    return wall, now - cpu, now, now - cpu - (time.thread_time_ns() - mine)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
