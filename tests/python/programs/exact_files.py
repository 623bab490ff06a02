# SPDX-License-Identifier: MIT
"""An exact profile of known calls, written in every format. Argument: a directory."""
import hashlib
import os
import sys

import greenprof


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def even(n):
    return n == 0 or odd(n - 1)


def odd(n):
    return n != 0 and even(n - 1)


def first():
    return fib(12)


def second():
    return first() + sum(range(1000)) + even(10)


directory = sys.argv[1]
profile = greenprof.Profile(mode="exact")
profile.start()
for _ in range(20):
    second()
    first()
    hashlib.sha256(bytes(10000))
profile.stop()
profile.dump_stats(os.path.join(directory, "exact.prof"))
profile.dump(os.path.join(directory, "exact.callgrind"), "callgrind")
for path in ("exact.folded", "exact.svg", "exact.pb.gz", "exact.speedscope.json", "exact.json"):
    profile.dump(os.path.join(directory, path))
profile.dump(os.path.join(directory, "exact.otlp"), "otlp")
try:
    profile.dump("/does/not/exist/exact.callgrind", "callgrind")
    raise SystemExit("written to nowhere")
except FileNotFoundError as error:
    assert error.filename == "/does/not/exist/exact.callgrind", error
assert not [name for name in os.listdir(directory) if name.startswith(".")], os.listdir(directory)
