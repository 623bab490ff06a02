# SPDX-License-Identifier: MIT
"""Exact mode's callback of a thread: another one as soon as there are greenlets, which looks who runs."""
import ctypes
import os
import sys

import greenprof

THREAD_STATE_WORDS = 32  # of PyThreadState, c_profilefunc among them


def of_greenprof():
    """Where its libraries' code is."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        rows = [line.split(None, 5) for line in file]
    return [tuple(int(word, 16) for word in row[0].split("-")) for row in rows
            if len(row) > 5 and "x" in row[1] and "greenprof" in os.path.basename(row[5])]


CODE = of_greenprof()
ctypes.pythonapi.PyThreadState_Get.restype = ctypes.c_void_p


def callback():
    state = (ctypes.c_size_t * THREAD_STATE_WORDS).from_address(ctypes.pythonapi.PyThreadState_Get())
    found = [word for word in state if any(low <= word < high for low, high in CODE)]
    assert len(found) == 1, found
    return found[0]


def nothing():
    pass


assert "greenlet" not in sys.modules
profile = greenprof.Profile(mode="exact", scope="thread")
profile.start()
nothing()
plain = callback()
import greenlet  # noqa: E402: amid the profile

nothing()
greenlet.greenlet(nothing).switch()
nothing()
after = callback()
profile.stop()
assert after != plain, "a thread with greenlets has the callback of one without"
print("all as expected")
