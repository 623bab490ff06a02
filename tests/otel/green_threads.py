# SPDX-License-Identifier: MIT
"""Green threads of Python with traces that change; each looks at what its thread shows. Usage: green_threads.py asyncio|gevent

It prints how many looks found what they should, and how many did not.
"""
import ctypes
import sys

import greenprof

RTLD_NOW, RTLD_NOLOAD = 2, 4
THREADS, ROUNDS = 60, 20
looks = {True: 0, False: 0}


def shown():
    """The trace of this thread's record; None: there is none, or it is not valid."""
    library = ctypes.CDLL("libgreenprof-otel.so.0", mode=RTLD_NOW | RTLD_NOLOAD)
    library.prof_otel_pointer.restype = ctypes.POINTER(ctypes.c_void_p)
    record = library.prof_otel_pointer()[0]
    data = ctypes.string_at(record, 28) if record else bytes(28)
    return data[:16].hex() if data[24] == 1 else None


def work(number):
    """A generator: it yields where the green thread waits."""
    trace = f"{number:032x}" if number % 3 else None
    if trace:
        greenprof.set_trace(trace)
    for round_number in range(ROUNDS):
        looks[shown() == trace] += 1
        yield 0.001 * (round_number % 3)
    greenprof.set_trace(None)
    looks[shown() is None] += 1
    yield 0
    looks[shown() is None] += 1


def run_asyncio():
    import asyncio

    async def task(number):
        for seconds in work(number):
            await asyncio.sleep(seconds)

    async def main():
        await asyncio.gather(*(task(number) for number in range(THREADS)))

    asyncio.run(main())


def run_gevent():
    import gevent

    def green(number):
        for seconds in work(number):
            gevent.sleep(seconds)

    gevent.joinall([gevent.spawn(green, number) for number in range(THREADS)])


{"asyncio": run_asyncio, "gevent": run_gevent}[sys.argv[1]]()
print(looks[True], looks[False])
