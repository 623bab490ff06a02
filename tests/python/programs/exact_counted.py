# SPDX-License-Identifier: MIT
"""Known calls, for a capture: on threads, in greenlets and generators, beside cProfile."""
import cProfile
import threading

import eventlet


def leaf():
    return sum(range(10))


def numbers():
    for _ in range(3):
        yield leaf()


def work(count):
    for _ in range(count):
        leaf()
        eventlet.sleep(0)
    return list(numbers())


threads = [threading.Thread(target=work, args=(100,)) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for green in [eventlet.spawn(work, count) for count in (10, 20, 30)]:
    green.wait()
profile = cProfile.Profile()
profile.enable()
work(40)
profile.disable()
