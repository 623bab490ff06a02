# SPDX-License-Identifier: MIT
"""Profiles of every mode, scope and clock, started, stopped and written at random by many green threads or threads.

usage: profiles_storm.py threads|eventlet|gevent SECONDS SEED DIRECTORY
"""
import asyncio
import gc
import os
import random
import signal
import sys
import threading
import time

kind, seconds, seed, directory = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
if kind == "gevent":
    import gevent.monkey
    gevent.monkey.patch_all()
elif kind == "eventlet":
    import eventlet
    eventlet.monkey_patch()

import greenprof  # noqa: E402

chance = random.Random(seed)
end = time.time() + seconds
done = {}
signal.alarm(int(seconds) + 60)  # for one that hangs
print("seed", seed, file=sys.stderr)


def burn():
    return sum(range(chance.randrange(2000)))


def generated():
    for i in range(5):
        burn()
        yield i


def nested(depth):
    return nested(depth - 1) if depth > 0 else burn() + sum(generated())


async def awaited():
    await asyncio.sleep(0.001)
    return nested(3)


def in_a_loop():
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(awaited())
    finally:
        loop.close()


def in_a_child():
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)
        with greenprof.Profile() as profile:
            nested(5)
        profile.dump_stats(os.path.join(directory, "child.prof"))
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def made_anew(number):
    exec(compile(f"def made_{number}():\n  return sum(range(500))\nmade_{number}()", f"made{number}", "exec"), {})


def one(number):
    mode, scope = chance.choice(["sample", "sample", "exact"]), chance.choice(["request", "request", "thread", "process"])
    profile = greenprof.Profile(mode=mode, scope=scope, clock=chance.choice(["cpu", "wall"]) if mode == "sample" else "cpu")
    path = os.path.join(directory, str(number % 50))
    profile.start()
    nested(chance.randrange(30))
    time.sleep(chance.random() * 0.01)
    if chance.random() < 0.3:
        profile.dump(path + ".prof", "pstats")  # while it runs
    if chance.random() < 0.1:
        gc.collect()
    if chance.random() < 0.1:
        made_anew(number)
    if chance.random() < 0.05 and kind == "threads":
        in_a_loop()
    nested(chance.randrange(5))
    if chance.random() < 0.8:
        profile.stop()
    if chance.random() < 0.7:
        profile.dump_stats(path + ".prof")
    if chance.random() < 0.02 and kind == "threads":
        in_a_child()
    done[mode, scope] = done.get((mode, scope), 0) + 1


failed = []


def work(number):
    try:
        while time.time() < end:
            one(number)
            number += 1
            if chance.random() < 0.005:
                time.sleep(0.7 * chance.random())  # the sampler rests after half a second
            time.sleep(0)
    except BaseException:
        failed.append(number)
        raise


numbers = range(0, 10 ** 9, 10 ** 6)
if kind == "threads":
    threads = [threading.Thread(target=work, args=(number,)) for number in numbers[:4]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
elif kind == "gevent":
    gevent.joinall([gevent.spawn(work, number) for number in numbers[:30]])
else:
    pool = eventlet.GreenPool(30)
    for number in numbers[:30]:
        pool.spawn(work, number)
    pool.waitall()
print(sum(done.values()), sorted(done), file=sys.stderr)
assert done and not failed
print("end")
