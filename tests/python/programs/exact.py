# SPDX-License-Identifier: MIT
"""Exact mode against known counts: alone, beside cProfile, across green threads, threads and overlapping profiles."""
import contextlib
import cProfile
import os
import subprocess
import sys
import threading
import time

import eventlet

import greenprof


def exact(**options):
    return greenprof.Profile(mode="exact", **options)


def stats_of(profile):
    profile.create_stats()
    return {key[2]: row for key, row in profile.stats.items()}


def calls(stats, name):
    return stats[name][1] if name in stats else 0


def burn(ms):
    end = time.thread_time() + ms / 1000
    while time.thread_time() < end:
        pass


# Calls as cProfile counts them, in one thread: recursion, generators, built-in functions, exceptions, methods.
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def numbers(n):
    for i in range(n):
        yield i


class Thing:
    def __init__(self, x):
        self.x = x

    def method(self):
        return "a,b".split(",") + sorted([self.x, 1], key=lambda x: -x)


def everything():
    fib(15)
    sum(numbers(10))
    Thing(3).method()
    for text in ("1", "x"):
        with contextlib.suppress(ValueError):
            int(text)
    try:
        [].pop()
    except IndexError:
        pass


def shape(profile):
    profile.enable()
    everything()
    profile.disable()
    profile.create_stats()
    plain = lambda key: (key[0], key[1], key[2] if key[2][0] == "<" else key[2].split(".")[-1])
    return {plain(key): (row[0], row[1], {plain(caller): counts[:2] for caller, counts in row[4].items()})
            for key, row in profile.stats.items() if "disable" not in key[2]}


mine, theirs = shape(exact()), shape(cProfile.Profile())
assert mine == theirs, [(key, mine.get(key), theirs.get(key)) for key in set(mine) | set(theirs)
                        if mine.get(key) != theirs.get(key)]


# Two requests that overlap, each with a profile of its own, asleep in the C call next(gen) of a context manager.
@contextlib.contextmanager
def held():
    yield
    eventlet.sleep(0.001)


def leaf(ms):
    burn(ms)


def request(rounds, ms, found):
    profile = exact()
    profile.start()
    for _ in range(rounds):
        with held():
            leaf(ms)
    children = [eventlet.spawn(leaf, 1) for _ in range(3)]
    for child in children:
        child.wait()
    profile.stop()
    found.append((rounds, ms, stats_of(profile), profile.total))


found = []
for thread in [eventlet.spawn(request, rounds, ms, found) for rounds, ms in ((20, 3), (30, 1), (10, 2), (5, 5))]:
    thread.wait()
for rounds, ms, stats, total in found:
    assert calls(stats, "leaf") == rounds + 3, (rounds, calls(stats, "leaf"))
    assert calls(stats, "burn") == rounds + 3
    assert stats["burn"][3] >= (rounds * ms + 3) / 1000 * 0.99, (stats["burn"], rounds, ms)
    assert stats["leaf"][3] >= stats["burn"][3]
    assert abs(sum(row[2] for row in stats.values()) - total) < 1e-6 + 1e-6 * total

# A thousand green threads at once, one profile of the thread; a few are killed, a few fail.
deep = []


def nested(depth, n):
    if depth:
        return nested(depth - 1, n)
    eventlet.sleep(0)
    if n % 100 == 7:
        raise ValueError(n)
    return n


def quiet(n):
    try:
        nested(n % 5, n)
    except ValueError:
        deep.append(n)


profile = exact(scope="thread")
profile.start()
threads = [eventlet.spawn(quiet, n) for n in range(1000)]
eventlet.sleep(0)
for thread in threads:
    thread.wait()
profile.stop()
stats = stats_of(profile)
assert calls(stats, "quiet") == 1000, calls(stats, "quiet")
assert calls(stats, "nested") == sum(n % 5 + 1 for n in range(1000)), calls(stats, "nested")
assert stats["nested"][0] == 1000, stats["nested"]
assert len(deep) == 10

# The process: present threads, and threads to come.
ready, go = threading.Event(), threading.Event()


def there():
    ready.set()
    go.wait()
    for _ in range(10):
        leaf(0)


def comes():
    for _ in range(20):
        leaf(0)


first = threading.Thread(target=there)
first.start()
ready.wait()
profile = exact(scope="process")
profile.start()
go.set()
second = threading.Thread(target=comes)
second.start()
for thread in (first, second):
    thread.join()
leaf(0)
profile.stop()
assert calls(stats_of(profile), "leaf") == 31, calls(profile, "leaf")

# Nested and overlapping on one green thread.
outer, inner = exact(), exact()
outer.start()
leaf(0)
inner.start()
leaf(0)
outer.stop()
leaf(0)
inner.stop()
assert (calls(stats_of(outer), "leaf"), calls(stats_of(inner), "leaf")) == (2, 2)

# Other profilers: each counts what it would alone, in either order, and the end of one does not end the other.
def cprofile():
    return cProfile.Profile()


def leaves(n):
    for _ in range(n):
        leaf(0)


for first, second in ((exact, cprofile), (cprofile, exact)):
    for crossed in (False, True):
        outer, inner = first(), second()
        outer.enable()
        leaves(2)
        inner.enable()
        leaves(3)
        (outer if crossed else inner).disable()
        leaves(4)
        (inner if crossed else outer).disable()
        leaves(5)
        expected = (5, 7) if crossed else (9, 3)
        assert (calls(stats_of(outer), "leaf"), calls(stats_of(inner), "leaf")) == expected, (first, crossed)
        assert sys.getprofile() is None

seen = []


def watcher(frame, event, argument):
    if event == "call":
        seen.append(frame.f_code.co_name)


for inside in (True, False):
    seen.clear()
    profile = exact()
    if not inside:
        sys.setprofile(watcher)
    profile.start()
    if inside:
        sys.setprofile(watcher)
    assert sys.getprofile() is watcher
    leaves(3)
    if inside:
        sys.setprofile(None)
    profile.stop()
    assert sys.getprofile() is (None if inside else watcher)
    sys.setprofile(None)
    assert seen.count("leaf") == 3 and calls(stats_of(profile), "leaf") == 3, (inside, seen)


def failing(frame, event, argument):
    if frame.f_code.co_name == "leaf":
        raise KeyError("in the watcher")


profile = exact()
profile.start()
sys.setprofile(failing)
try:
    leaf(0)
    raise SystemExit("the watcher's error is lost")
except KeyError:
    assert sys.getprofile() is None  # as it is without us
leaves(2)
profile.stop()
assert calls(stats_of(profile), "leaf") >= 2

try:
    import yappi
except ImportError:
    yappi = None
if yappi is not None and sys.version_info < (3, 12):  # takes threads without asking: it is told, not raised
    import warnings
    profile = exact()
    profile.start()
    leaves(2)
    yappi.start()
    leaves(2)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        profile.stop()
    yappi.stop()
    assert any("another profiler" in str(warning.message) for warning in told), told
    assert calls(stats_of(profile), "leaf") == 2

# Greenlets that come after the profile has begun, whatever tells which of them runs.
LATE = """
import greenprof
profile = greenprof.Profile(mode="exact", scope="process")
profile.start()

def leaf():
    pass

def there():
    while True:
        for _ in range(3):
            leaf()
        main.switch()

def here():
    thread.switch()
    leaf()

for _ in range(20):
    leaf()
import greenlet
main, thread = greenlet.getcurrent(), greenlet.greenlet(there)
for _ in range(50):
    here()
profile.stop()
profile.create_stats()
row = next(row for key, row in profile.stats.items() if key[2] == "leaf")
callers = {key[2]: counts[0] for key, counts in row[4].items()}
assert row[0] == 220 and callers == {"there": 150, "here": 50}, (row, callers)
"""
for how in ("see", "trace", *["read"] * 8):  # a sample that comes amid a switch
    subprocess.run([sys.executable, "-c", LATE], check=True, env={**os.environ, "GREENPROF_GREENLETS": how})

try:
    exact().dump("/tmp/x.folded")
    raise SystemExit("dumped what never ran")
except ValueError:
    pass
print("all as expected")
