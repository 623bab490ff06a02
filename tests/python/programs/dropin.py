# SPDX-License-Identifier: MIT
"""What people do with cProfile.Profile and eventlet.green.profile.Profile, with greenprof.Profile. Argument: a directory."""
import asyncio
import cProfile
import gc
import io
import os
import pstats
import sys
import threading
import time
from contextlib import redirect_stdout

import greenprof

directory = sys.argv[1]


def work(ms=30):
    end = time.thread_time() + ms / 1000
    while time.thread_time() < end:
        pass
    return ms


def names(stats):
    return {function[2] for function in stats.stats}


for make in (greenprof.Profile, cProfile.Profile):  # the same calls, both ways
    profile = make()
    profile.enable()
    work()
    profile.disable()
    profile.create_stats()
    assert "work" in names(pstats.Stats(profile)), names(pstats.Stats(profile))
    assert profile.runcall(work, 20) == 20
    assert make().run("work(20)") is not None
    assert make().runctx("x = work(n)", globals(), {"n": 20}) is not None
    with make() as profile:
        work()
    profile.dump_stats(os.path.join(directory, "with.prof"))
    assert "work" in names(pstats.Stats(os.path.join(directory, "with.prof")))
    with redirect_stdout(io.StringIO()) as out:
        profile.print_stats("cumulative")
    assert "(work)" in out.getvalue()

profile = greenprof.Profile(time.perf_counter)  # eventlet.green.profile.Profile(timer)
profile.start()
work()
profile.stop()
assert profile.total > 0.02, profile.total
profile.start()
work()
profile.stop()
assert profile.total > 0.05, profile.total


@greenprof.Profile()
def decorated():
    return work(10)


assert decorated() == 10 and decorated.__name__ == "decorated"

# Bodies of generators and coroutine functions are profiled, not their making; their users are left out.
def user_work():
    work(30)


for mode in ("sample", "exact"):
    profile = greenprof.Profile(mode=mode)

    @profile
    def numbers():
        got = yield work(30)
        try:
            yield got
        except KeyError:
            return "end"

    @profile
    async def fetch():
        work(30)
        await asyncio.sleep(0)
        return 7

    @profile
    async def stream():
        yield work(30)

    async def use():
        return [await fetch()] + [number async for number in stream()]

    steps = numbers()
    assert next(steps) == 30
    user_work()
    assert steps.send(5) == 5
    try:
        steps.throw(KeyError())
    except StopIteration as end:
        assert end.value == "end"
    assert asyncio.run(use()) == [7, 30] and not profile.running
    profile.snapshot_stats()
    seen = {function[2] for function in profile.stats}
    assert {"numbers", "fetch", "stream"} <= seen and not {"user_work", "_steps", "_awaited_steps"} & seen, (mode, seen)

# Files of an exact profile: the rules are prof_dump()'s.
exact = greenprof.Profile(mode="exact")
exact.runcall(work, 1)
exact.runcall(os.path.realpath, __file__)
gc.disable()
objects = len(gc.get_objects())
exact.dump_stats(os.path.join(directory, "exact.prof"))  # a service's garbage collector has nothing to do with it
assert len(gc.get_objects()) - objects < 5, len(gc.get_objects()) - objects
gc.enable()
assert exact.stats == pstats.Stats(os.path.join(directory, "exact.prof")).stats  # as with cProfile
target, link = os.path.join(directory, "target.prof"), os.path.join(directory, "link.prof")
os.symlink(target, link)
for path in (link, os.fsencode(directory) + b"/b\xff.callgrind"):
    exact.dump(path)
assert os.path.islink(link) and "work" in names(pstats.Stats(target))
with open(os.fsencode(directory) + b"/b\xff.callgrind", "rb") as file:
    assert file.readline() == b"# callgrind format\n"
fifo = os.path.join(directory, "pipe")  # is written to, not replaced
os.mkfifo(fifo)
reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
exact.dump_stats(fifo)
assert os.read(reader, 1) == b"{" and not os.path.isfile(fifo)
assert not [name for name in os.listdir(directory) if name.startswith(".")]

# A finished profile is written by another thread, and is a new one after that.
for mode in ("sample", "exact"):
    profile = greenprof.Profile(mode=mode)
    for _ in range(2):
        profile.start()
        profile.start()
        work(20)
        assert profile.finish(os.path.join(directory, "finished.prof")) is None and not profile.running and profile.total == 0
        work(20)
        greenprof.flush()
        stats = pstats.Stats(os.path.join(directory, "finished.prof"))
        assert "work" in names(stats) and stats.total_tt < 0.035, (mode, stats.total_tt)
        os.unlink(os.path.join(directory, "finished.prof"))
    for error, arguments in ((ValueError, ("x.prof",)), (ValueError, ("x.prof", "none such"))):
        try:
            profile.finish(*arguments)
            assert False
        except error:
            pass
        profile.start()
    assert profile.running
    profile.finish(os.path.join(directory, "none such/x.prof"))
    try:
        greenprof.flush(60)
        assert False
    except FileNotFoundError:
        pass
    greenprof.flush(0)

# The program's own hooks for threads to come go on.
hook = lambda *event: None
threading.setprofile(hook)
first, second = (greenprof.Profile(mode="exact", scope="process") for _ in range(2))
first.start()
second.start()
first.stop()
later = threading.Thread(target=work)
later.start()
later.join()
second.stop()
second.snapshot_stats()
assert "work" in {function[2] for function in second.stats} and threading.getprofile() is hook
threading.setprofile(None)

# Profiles of the thread, of the process, and several at once.
other = threading.Thread(target=work, args=(200,))
whole, mine = greenprof.Profile(scope="process"), greenprof.Profile(scope="thread")
whole.start()
mine.start()
other.start()
work(100)
mine.stop()
other.join()
whole.stop()
assert 0.09 < mine.total < 0.16, mine.total
assert 0.28 < whole.total < 0.4, whole.total
assert "work" in names(pstats.Stats(whole_path)) if (whole_path := os.path.join(directory, "whole.prof")) and \
    whole.dump_stats(whole_path) is None else False

# Children of fork go on for themselves; greenprof does not survive exec as a signal that kills.
profile = greenprof.Profile(scope="process")
profile.start()
child = os.fork()
if child == 0:
    work(50)
    profile.stop()
    os._exit(0 if profile.total >= 0.05 else 1)
assert os.waitpid(child, 0)[1] == 0
for _ in range(20):
    child = os.fork()
    if child == 0:
        work(3)
        os.execv(sys.executable, [sys.executable, "-S", "-E", "-c", "pass"])
    assert os.waitpid(child, 0)[1] == 0
profile.stop()

for wrong in ({"scope": "all"}, {"scope": []}, {"frequency": 0}, {"frequency": 1.5}, {"clock": "sun"}, {"mode": "some"}):
    try:
        greenprof.Profile(**wrong)
        raise SystemExit(f"accepted {wrong}")
    except ValueError as error:
        assert str(error)
for function in (greenprof.set_name, greenprof.set_trace):
    try:
        function(5)
        raise SystemExit(f"{function} took a number")
    except TypeError as error:
        assert str(error) == "expected str or None, not int", error
try:
    greenprof.Profile().dump("/tmp/none.prof")
    raise SystemExit("dumped what never ran")
except ValueError:
    pass
try:
    profile.dump("/nonexistent/directory/x.prof")
    raise SystemExit("dumped into nowhere")
except FileNotFoundError as error:
    assert error.filename == "/nonexistent/directory/x.prof"
print("all as expected")
