# SPDX-License-Identifier: MIT
"""Greenlets in storms: short, nested, killed, failing, switching at depth, on several threads; with generators, exec and gc."""
import gc
import random
import sys
import threading
import time

import greenlet


def nest(depth, f):
    if depth > 0:
        return nest(depth - 1, f)
    return f()


def pause():
    return greenlet.getcurrent().parent.switch(1)


def numbers(n):
    for i in range(n):
        yield i


def body(depth, rounds):
    for _ in range(rounds):
        nest(depth, pause)
        sum(numbers(5))
    return 1


def fail():
    nest(3, pause)
    raise ValueError("as intended")


def storm(end, seed):
    rng = random.Random(seed)
    live = []
    while time.time() < end:
        kind = rng.randrange(6)
        g = greenlet.greenlet(body if kind else fail)
        if kind == 0:
            try:
                g.switch()
                g.switch()
            except ValueError:
                pass
            continue
        g.switch(rng.randrange(60), rng.randrange(4))
        live.append(g)
        for other in rng.sample(live, min(len(live), 5)):
            if not other.dead:
                other.switch()
        live = [g for g in live if not g.dead]
        if len(live) > 20:
            del live[rng.randrange(len(live))]  # killed by its deallocation
        if kind == 5 and live:
            live[0].throw(greenlet.GreenletExit)
        if rng.randrange(50) == 0:
            exec(compile("def f():\n    return [i for i in range(9)]\nf()", "<storm>", "exec"), {})
            gc.collect(0)


end = time.time() + float(sys.argv[1])
threads = [threading.Thread(target=storm, args=(end, i)) for i in range(3)]
for thread in threads:
    thread.start()
storm(end, 99)
for thread in threads:
    thread.join()
print("survived")
