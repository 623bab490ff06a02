# SPDX-License-Identifier: MIT
"""A program that uses SIGPROF itself. Arguments: how, and "before" or "after" greenprof has started.

Burns 0.15 s of CPU time in before(), then in after(). Prints as JSON what its own use came to, and what greenprof saw.
"""
import ctypes
import faulthandler
import json
import os
import signal
import sys
import tempfile
import time

import greenprof

how, when = sys.argv[1:]
hits = []
dumped = tempfile.TemporaryFile("w+")
libc = ctypes.CDLL(None)
in_native = ctypes.cast(libc.dup, ctypes.c_void_p)  # a function that a signal may call: Python's would wait for the lock


def native_hits():
    """Descriptors that dup(SIGPROF) has made."""
    here = os.fstat(dumped.fileno()).st_ino
    count = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            count += os.fstat(int(name)).st_ino == here
        except OSError:
            pass
    return [signal.SIGPROF] * (count - 2)


def take():
    handler = lambda number, frame: hits.append(number)
    if how in ("handler", "chained"):
        signal.signal(signal.SIGPROF, handler)
    if how in ("faulthandler", "chained"):
        faulthandler.register(signal.SIGPROF, file=dumped, chain=how == "chained")
    if how == "native":  # past all that greenprof interposes
        os.dup2(dumped.fileno(), signal.SIGPROF)
        ctypes.CDLL("libc.so.6")["signal"](signal.SIGPROF, in_native)
    if how == "every":
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, handler)
    if how == "ignored":
        signal.signal(signal.SIGPROF, signal.SIG_IGN)
    if how == "reset":
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
    if how not in ("ignored", "reset"):
        signal.setitimer(signal.ITIMER_PROF, 0.01, 0.01)


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        for _ in range(100):
            pass


def before():
    burn(0.15)


def after():
    burn(0.15)


def heard():
    if how == "native":
        return len(native_hits())
    if how == "faulthandler":
        return os.pread(dumped.fileno(), 1 << 20, 0).count(b"most recent call first")
    return len(hits)


def wait_to_be_heard():
    """The kernel's ticks, which find that the timer is due, may miss a program on a busy machine."""
    end = time.thread_time() + 3
    while how in ("handler", "chained", "faulthandler", "native", "every") and heard() < 4 and time.thread_time() < end:
        burn(0.01)


if when == "before":
    take()
profile = greenprof.Profile(scope="process")
profile.start()
before()
if when == "after":
    take()
after()
wait_to_be_heard()
signal.setitimer(signal.ITIMER_PROF, 0)
if how == "native":
    hits = native_hits()
profile.stop()
directory = tempfile.mkdtemp()
path = os.path.join(directory, "profile.json")
profile.dump(path)
with open(path) as file:
    data = json.load(file)
os.unlink(path)
os.rmdir(directory)
times = {"before": 0, "after": 0}
for row in data["rows"]:
    for name in {data["frames"][index]["function"] for index in row["stack"]} & set(times):
        times[name] += row["weight_ns"] / 1e9
dumped.seek(0)
print(json.dumps({"hits": len(hits), "dumps": dumped.read().count("most recent call first"), "total": profile.total, **times,
                  "handler": repr(signal.getsignal(signal.SIGPROF)), "moved": data["counters"]["signal_moved"]}))
