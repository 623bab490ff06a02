# SPDX-License-Identifier: MIT
"""The first profile of a process: what is suspended when it starts has been switched away from unseen. Argument: where it goes."""
import sys

import eventlet

import greenprof


def request():
    eventlet.sleep(0.01)
    profile = greenprof.Profile(clock="wall")
    profile.start()
    eventlet.sleep(0.3)
    profile.stop()
    profile.dump(sys.argv[1], "folded")


eventlet.spawn(request).wait()
