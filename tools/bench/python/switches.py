# SPDX-License-Identifier: MIT
"""ns of a greenlet switch: best of many short loops, bare, at rest (greenprof imported, nothing profiled) and while sampling.

    /usr/bin/python3 tools/bench/python/switches.py

Prints the three. GREENPROF_GREENLETS chooses how switches are seen. greenprof is what PYTHONPATH leads to, else what is in
build/release.
"""
import importlib.util
import os
import sys
import time

try:
    import greenlet
except ImportError:
    sys.exit("switches.py: this Python has no greenlet: take one that has, as /usr/bin/python3 with Debian's python3-greenlet")

SWITCHES, LOOPS, TURNS = 1000, 40, 16  # at rest and sampling in turns, in short ones: the machine's gait changes
BUILT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../build/release/src/python")


def find_greenprof():
    """Make greenprof importable; the import comes later."""
    if importlib.util.find_spec("greenprof") is None:
        sys.path.append(BUILT)
    if importlib.util.find_spec("greenprof") is None:
        sys.exit("switches.py: no module greenprof: build it in build/release, or set PYTHONPATH=BUILD/src/python")


def loop(target):
    begin = time.perf_counter_ns()
    for _ in range(SWITCHES):
        target.switch()
    return time.perf_counter_ns() - begin


def best():
    def body():
        while True:
            parent.switch()

    parent = greenlet.getcurrent()
    target = greenlet.greenlet(body)
    target.switch()
    return min(loop(target) for _ in range(LOOPS)) / SWITCHES / 2  # there and back


def main():
    find_greenprof()
    bare = min(best() for _ in range(TURNS))
    import greenprof
    resting, sampling = [], []
    for _ in range(TURNS):
        resting.append(best())
        with greenprof.Profile(scope="process", frequency=100):
            sampling.append(best())
    print(bare, min(resting), min(sampling))


if __name__ == "__main__":
    main()
