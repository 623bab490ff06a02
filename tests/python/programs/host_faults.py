# SPDX-License-Identifier: MIT
"""A program that uses faulthandler. Arguments: "crash", "overflow", "later", "gone"; "before" or "after" greenprof has started."""
import faulthandler
import sys
import time

import greenprof

how, when = sys.argv[1:]
NUMBERS = list(range(200000))
SECONDS = 0.22  # dumps come each 0.05 s: none at the end of it


def burn(seconds):
    """In C, for the most part: faulthandler reads the frames of a thread that runs without asking it, and dies of calls and
    returns with and without greenprof (a dump in 800, Python 3.11)."""
    begin = time.thread_time()
    while time.thread_time() < begin + seconds:
        sum(NUMBERS)
    return time.thread_time() - begin  # a sum more than was asked for


def nested(depth):
    if depth:
        return nested(depth - 1)
    burnt = burn(SECONDS)
    if how == "later":
        faulthandler.cancel_dump_traceback_later()  # before the first of 200 returns
    return burnt


def take():
    faulthandler.enable()
    if how == "later":
        faulthandler.dump_traceback_later(0.05, repeat=True)


if when == "before":
    take()
profile = greenprof.Profile(scope="process", frequency=5000)
profile.start()
if when == "after":
    take()
if how == "gone":
    faulthandler.disable()
burnt = nested(200)
if how == "crash":
    faulthandler._sigsegv()
if how == "overflow":
    faulthandler._stack_overflow()
profile.stop()
profile.create_stats()
rows = {key[2]: row for key, row in profile.stats.items()}
assert abs(rows["burn"][3] - burnt) < 0.02 and profile.total > SECONDS, (rows["burn"], burnt, profile.total)
assert rows["burn"][1] > 20, rows["burn"]
print("as expected")
