# SPDX-License-Identifier: MIT
"""Coroutines that wait for locks which others hold: `green_locks.py asyncio|eventlet|patched|gevent`.

Each coroutine is a request, and says how long its waits took: from when it asked to when the other one gave the lock,
as what follows until it goes on is `ready`. What else waits (an event, a queue, a sleep) is no lock's wait."""
import sys
import threading
import time

import greenprof

KIND = sys.argv[1]
HOLD, ROUNDS = 0.03, 12
KINDS = ("plain", "semaphore", "built")
given, lines, locks = {}, [], {}


def give(kind):
    given[kind] = time.monotonic()


class Truth:
    def __init__(self, name):
        self.name, self.took, self.waits = name, 0.0, 0

    def add(self, begin, end):
        self.took += max(end - begin, 0)
        self.waits += end - begin > 0.005

    def tell(self):
        lines.append(f"LOCK {self.name} {self.took} {self.waits}")


# --- asyncio

def run_asyncio():
    import asyncio
    locks.update(plain=asyncio.Lock(),
                 semaphore=asyncio.Semaphore(1),
                 built=asyncio.Condition(), free=asyncio.Lock())

    async def hold_plain():
        async with locks["plain"]:
            await asyncio.sleep(HOLD)
            give("plain")

    async def hold_semaphore():
        async with locks["semaphore"]:
            await asyncio.sleep(HOLD)
            give("semaphore")

    async def hold_built():
        async with locks["built"]:
            await asyncio.sleep(HOLD)
            give("built")

    async def holder(kind, function):
        with greenprof.span("task", f"holder-{kind}"):
            for _ in range(ROUNDS):
                await asyncio.sleep(0.004)
                await function()

    async def victim(kind):
        truth = Truth(f"victim-{kind}")
        with greenprof.span("task", f"victim-{kind}"):
            for _ in range(ROUNDS):
                await asyncio.sleep(0.012)
                begin = time.monotonic()
                await locks[kind].acquire()
                truth.add(begin, given.get(kind, 0))
                locks[kind].release()
        truth.tell()

    async def others():
        event, items, loop = asyncio.Event(), asyncio.Queue(), asyncio.get_running_loop()
        with greenprof.span("task", "others"):
            for _ in range(50):
                async with locks["free"]:
                    pass
            loop.call_later(0.05, event.set)
            await event.wait()
            loop.call_later(0.05, items.put_nowait, None)
            await items.get()

    async def give_up(lock, truth):
        with greenprof.span("task", "timed"):
            begin = time.monotonic()
            try:
                async with asyncio.timeout(0.1):
                    await lock.acquire()
            except TimeoutError:
                truth.add(begin, time.monotonic())
            await asyncio.sleep(0.05) # no lock's wait

    async def timed():
        lock, truth = asyncio.Lock(), Truth("timed")
        await lock.acquire()
        await asyncio.create_task(give_up(lock, truth), name="timed")
        lock.release()
        truth.tell()

    async def main():
        tasks = {f"holder-{kind}": holder(kind, function)
                 for kind, function in zip(KINDS, (hold_plain, hold_semaphore, hold_built))}
        tasks.update({f"victim-{kind}": victim(kind) for kind in KINDS}, others=others(), timer=timed())
        await asyncio.gather(*(asyncio.create_task(task, name=name) for name, task in tasks.items()))

        async def link(lock, hold):
            async with lock:
                await asyncio.sleep(hold)
        lock, links = asyncio.Lock(), []
        for name, hold in (("link-short", 0.02), ("link-long", 0.2), ("link-last", 0)):
            links.append(asyncio.create_task(link(lock, hold), name=name))
            await asyncio.sleep(0.001)
        await asyncio.gather(*links)
    asyncio.run(main())


# --- greenlets; their names are those of their functions

def hold_plain():
    with locks["plain"]:
        time.sleep(HOLD)
        give("plain")


def hold_semaphore():
    locks["semaphore"].acquire()
    time.sleep(HOLD)
    give("semaphore")
    locks["semaphore"].release()


def hold_built():
    with locks["built"]:
        time.sleep(HOLD)
        give("built")


def holder(kind, function):
    with greenprof.span("task", f"holder-{kind}"):
        for _ in range(ROUNDS):
            time.sleep(0.004)
            function()


def victim(kind):
    truth = Truth(f"victim-{kind}")
    with greenprof.span("task", f"victim-{kind}"):
        for _ in range(ROUNDS):
            time.sleep(0.012)
            begin = time.monotonic()
            locks[kind].acquire()
            truth.add(begin, given.get(kind, 0))
            locks[kind].release()
    truth.tell()


def others():
    import queue
    event, items = threading.Event(), queue.Queue()
    with greenprof.span("task", "others"):
        for _ in range(50):
            with locks["free"]:
                pass
        event.wait(0.05)
        try:
            items.get(timeout=0.05)
        except queue.Empty:
            pass


def timed():
    lock, truth = type(locks["plain"])(), Truth("timed")
    lock.acquire()

    def give_up():
        with greenprof.span("task", "timed"):
            begin = time.monotonic()
            if not lock.acquire(timeout=0.1):
                truth.add(begin, time.monotonic())
            time.sleep(0.05)
    thread = threading.Thread(target=give_up, name="timed")
    thread.start()
    thread.join()
    lock.release()
    truth.tell()


def run_threads():
    """All of threading is green: each thread is a coroutine."""
    functions = dict(zip(KINDS, (hold_plain, hold_semaphore, hold_built)))
    threads = [threading.Thread(target=holder, args=item, name=f"holder-{item[0]}") for item in functions.items()]
    threads += [threading.Thread(target=victim, args=(kind,), name=f"victim-{kind}") for kind in KINDS]
    threads += [threading.Thread(target=function) for function in (others, timed)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def run_eventlet():
    import eventlet
    eventlet.monkey_patch()
    from eventlet import semaphore
    locks.update(plain=threading.Lock(), free=threading.Lock(),
                 semaphore=semaphore.BoundedSemaphore(1),
                 built=semaphore.Semaphore(1))
    run_threads()


def run_patched():
    import eventlet
    eventlet.monkey_patch()
    locks.update(plain=threading.RLock(), free=threading.Semaphore(1),
                 semaphore=threading.Semaphore(1),
                 built=threading.Condition())
    run_threads()


def run_gevent():
    from gevent import monkey
    monkey.patch_all()
    from gevent import lock
    locks.update(plain=threading.Lock(), free=threading.Lock(),
                 semaphore=lock.BoundedSemaphore(1),
                 built=lock.RLock())
    run_threads()


{"asyncio": run_asyncio, "eventlet": run_eventlet, "patched": run_patched, "gevent": run_gevent}[KIND]()
for line in lines:
    print(line)
