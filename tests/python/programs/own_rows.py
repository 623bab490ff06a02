# SPDX-License-Identifier: MIT
"""Thousands of requests that overlap, in every way that green threads come about, each with a profile of its own. In a file there
must be rows of its own request, and of no other one.

Arguments: eventlet or gevent, sample or exact, how many. Prints what is wrong; nothing else is printed but the last line.
"""
import random
import sys
import threading
import types

kind, mode, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
if kind == "eventlet":
    import eventlet
    from eventlet import queue
    spawn, spawn_after, sleep, Pool = eventlet.spawn, eventlet.spawn_after, eventlet.sleep, eventlet.GreenPool
    wait = lambda thread: thread.wait()
else:
    import gevent
    import gevent.pool
    from gevent import queue
    spawn, spawn_after, sleep, Pool = gevent.spawn, gevent.spawn_later, gevent.sleep, gevent.pool.Pool
    wait = lambda thread: thread.get()

import greenprof

ROUNDS = 20000 if mode == "sample" else 20
chance = random.Random(1)


def work():
    for _ in range(10):
        for _ in range(ROUNDS // 10):
            pass
        own()


def own():
    pass


def in_hub(function, *args):
    if kind == "eventlet":
        eventlet.hubs.get_hub().schedule_call_global(0.001, function, *args)
    else:
        gevent.get_hub().loop.run_callback(function, *args)


class Request:
    """Its functions are in a file of their own: request_<number>."""

    def __init__(self, number):
        self.number, self.file = number, f"request_{number}"
        names = {}
        for function in (work, own):
            names[function.__name__] = types.FunctionType(function.__code__.replace(co_filename=self.file), names)
        names.update(range=range, ROUNDS=ROUNDS)
        self.work, self.random = names["work"], random.Random(number)
        self.children = []

    def child(self, depth):
        self.work()
        sleep(self.random.random() * 0.002)
        if depth:
            wait(spawn(self.child, depth - 1))
        self.work()

    def do(self):
        if self.number < 0:  # the first user of the hub: work of the hub for others is not its own
            in_hub(Request(self.number - 100).for_others)
            wait(spawn(Request(self.number - 200).helper))
        for _ in range(self.random.randrange(3)):
            make = self.random.choice((spawn, lambda *args: spawn_after(0.001, *args)))
            self.children.append(make(self.child, self.random.randrange(2)))
        self.work()
        sleep(self.random.random() * 0.003)
        self.work()
        for child in self.children:
            wait(child)

    def for_others(self):
        self.work()
        spawn(self.work)

    def helper(self):
        greenprof.detach()
        self.for_others()

    def __call__(self):
        profile = greenprof.Profile(mode=mode, frequency=10000)
        profile.start()
        try:
            self.do()
        finally:
            if self.number % 5 == 4:  # another greenlet ends it
                wait(spawn(profile.stop))
            else:
                profile.stop()
        profile.create_stats()
        self.check(profile.stats)

    def check(self, stats):
        calls = {key[2]: row[1] for key, row in stats.items() if key[0] == self.file}
        others = {key[0] for key in stats if key[0].startswith("request_")} - {self.file}
        if others:
            print(self.number, "has rows of", others)
        if mode == "exact" and calls.get("own", 0) != 10 * calls.get("work", 0):
            print(self.number, "lacks calls:", calls)
        if mode == "exact" and calls.get("work", 0) < 2:
            print(self.number, "has no row of its own")


class Way:
    """How requests come about."""

    def __init__(self):
        self.queue, self.done = queue.Queue(), []

    def begin(self):  # before any profile
        self.helpers = [spawn(self.loop) for _ in range(8)]

    def loop(self):  # a connection that is kept alive: request after request in one green thread
        while (request := self.queue.get()) is not None:
            self.take(request)

    def take(self, request):
        request()

    def end(self):
        for _ in self.helpers:
            self.queue.put(None)
        for helper in self.helpers:
            wait(helper)
        for thread in self.done:
            wait(thread)


class Poller(Way):
    """It waits, and spawns whatever comes: suspended before the first profile starts."""

    def take(self, request):
        self.done.append(spawn(request))


class Later(Way):
    def take(self, request):
        self.done.append(spawn_after(0.001, request))


class Pooled(Way):
    def begin(self):
        super().begin()
        self.pool = Pool(20)

    def take(self, request):
        self.done.append(self.pool.spawn(request))


class Timers(Way):
    """A callback of the hub makes them."""

    def begin(self):
        self.helpers = []

    def end(self):
        while not self.queue.empty():
            in_hub(lambda request: self.done.append(spawn(request)), self.queue.get())
            sleep(0)
        sleep(0.05)
        super().end()


def serve(numbers):
    """A burst, then rest: switches are not looked at any more, and then again."""
    ways = [way() for way in (Way, Poller, Later, Pooled, Timers)]
    for way in ways:
        way.begin()
    sleep(0)  # they wait
    for number in numbers:
        chance.choice(ways).queue.put(Request(number))
    for way in ways:
        way.end()


# Profiles one after the other and many at once, on two threads with a hub each.
def bursts(first, step):
    at = first
    while at < count:
        size = chance.choice((1, 3, 40, 100))
        serve(range(at, min(at + size * step, count), step))
        at += size * step
        for _ in range(1100):
            sleep(0)


def of_a_thread(first):
    Request(first - 2)()
    bursts(first, 2)


other = threading.Thread(target=of_a_thread, args=(1,))
other.start()
of_a_thread(0)
other.join()
print("end")
