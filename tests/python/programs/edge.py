# SPDX-License-Identifier: MIT
"""Recursion to where a generator's frame crosses the end of a chunk of the data stack: each call unmaps the chunk."""
import sys
import time


def gen():
    yield 1


def recurse(depth):
    if depth > 0:
        recurse(depth - 1)
    else:
        for _ in range(2000):
            gen()


sys.setrecursionlimit(5000)
end = time.process_time() + float(sys.argv[1])
depth = 0
while time.process_time() < end:
    depth = (depth + 1) % 400
    recurse(depth)
