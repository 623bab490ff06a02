# SPDX-License-Identifier: MIT
"""Overlapping requests, each with a Profile of its own and with green threads that it spawns.

Arguments: eventlet or gevent, the number of requests, a directory. Request i calls own_<i>(), its children child_<i>(); prints
each one's true CPU seconds. One request is always suspended in outer_<i>() when its profile starts, and resumed by another.
"""
import sys
import time

import greenprof

kind, count, directory = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if kind == "eventlet":
    import eventlet
    spawn, sleep = eventlet.spawn, eventlet.sleep
    wait = lambda threads: [thread.wait() for thread in threads]
else:
    import gevent
    spawn, sleep = gevent.spawn, gevent.sleep
    wait = gevent.joinall

TEMPLATE = """
def own_{i}(ms):
    return burn(ms)
def child_{i}(ms):
    spent = 0
    for _ in range(5):
        spent += own_{i}(ms)
        sleep(0)
    times[{i}] += spent
def outer_{i}():
    profile = greenprof.Profile(name="request {i}", frequency=2000)
    profile.start()
    begin = time.thread_time_ns()
    children = [spawn(child_{i}, 2), spawn(child_{i}, 1)]
    times[{i}] += time.thread_time_ns() - begin
    for _ in range(10):
        begin = time.thread_time_ns()
        own_{i}(3 + {i} % 3)
        times[{i}] += time.thread_time_ns() - begin
        sleep(0.001)
    wait(children)
    profile.stop()
    profile.dump_stats(f"{{directory}}/{i}.prof")
    profile.dump(f"{{directory}}/{i}.folded")
    totals[{i}] = profile.total
"""
times, totals = [0] * count, [0] * count


def burn(ms):
    begin = time.thread_time_ns()
    while time.thread_time_ns() < begin + ms * 1000000:
        for _ in range(100):
            pass
    return time.thread_time_ns() - begin


for i in range(count):
    exec(compile(TEMPLATE.format(i=i), f"request_{i}", "exec"))
wait([spawn(globals()[f"outer_{i}"]) for i in range(count)])
for i in range(count):
    print(i, times[i] / 1e9, totals[i])
