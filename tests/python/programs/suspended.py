# SPDX-License-Identifier: MIT
"""A profile of the process that starts when both green threads are suspended in outer_a() and outer_b()."""
import sys

import eventlet

import greenprof


def burn():
    for _ in range(300000):
        pass


def mid():
    burn()


def outer_a():
    for _ in range(10):
        eventlet.sleep(0.002)
        mid()


def outer_b():
    for _ in range(10):
        eventlet.sleep(0.002)
        mid()


def control():
    profile = greenprof.Profile(scope="process", frequency=2000)
    profile.start()
    for thread in threads:
        thread.wait()
    profile.stop()
    profile.dump(sys.argv[1])


threads = [eventlet.spawn(outer_a), eventlet.spawn(outer_b)]
eventlet.sleep(0)
eventlet.spawn(control).wait()
