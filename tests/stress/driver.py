# SPDX-License-Identifier: MIT
"""driver.c for the runtimes of Python: coroutines that work and do what a feature does, in turns; what comes of it is
printed. driver.py greenlet|asyncio FEATURE ROUNDS; status 77 where the runtime cannot have the feature."""
import ctypes
import os
import sys

COUNT, WORK, SKIPPED = 4, 60, 77
MASK = (1 << 64) - 1


class Feature(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("step", ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_int, ctypes.c_int)),
                ("every", ctypes.c_int), ("before", ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_char_p))),
                ("stack_bytes", ctypes.c_size_t)]


def find(name):
    library = ctypes.CDLL(os.path.join(os.environ["STRESS_PROGRAMS"], "libstress_features.so"))
    library.features_find.restype = ctypes.POINTER(Feature)
    return library, library.features_find(name.encode()).contents


def work(value):
    value = (value * 2 + 1) & MASK
    for _ in range(WORK * 10):
        value ^= value << 13 & MASK
        value ^= value >> 7
    return value


def rounds_of(feature, number, rounds):
    """The body of a coroutine: yields between the rounds, and returns the result."""
    value = number
    for turn in range(rounds):
        value = work(value + turn)
        if turn % feature.every == 0:
            value ^= feature.step(number, turn)
        yield
    return value


def run_greenlets(_, feature, rounds):
    import greenlet
    results, loop = {}, greenlet.getcurrent()

    def body(number):
        turns = rounds_of(feature, number, rounds)
        while number not in results:
            try:
                next(turns)
                loop.switch()
            except StopIteration as end:
                results[number] = end.value

    waiting = [greenlet.greenlet(body) for _ in range(COUNT)]
    while any(not one.dead for one in waiting):
        for number, one in enumerate(waiting):
            if not one.dead:
                one.switch(number)
    return results


def run_tasks(library, feature, rounds):
    import asyncio
    results = {}

    async def body(number):
        turns = rounds_of(feature, number, rounds)
        while number not in results:
            try:
                next(turns)
                await asyncio.sleep(0)
            except StopIteration as end:
                results[number] = end.value

    async def run_all():
        loop = asyncio.get_running_loop()
        kept = (ctypes.c_int * 8).in_dll(library, "features_kept_descriptors")
        kept[:3] = [loop._selector.fileno(), loop._ssock.fileno(), loop._csock.fileno()]
        await asyncio.gather(*(body(number) for number in range(COUNT)))

    asyncio.run(run_all())
    return results


def main():
    runtime, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    library, feature = find(name)
    if feature.stack_bytes:
        sys.exit(SKIPPED)
    if feature.before:
        words = [word.encode() for word in [sys.executable, "-B", *sys.argv]]
        feature.before((ctypes.c_char_p * (len(words) + 1))(*words, None))
    results = {"greenlet": run_greenlets, "asyncio": run_tasks}[runtime](library, feature, rounds)
    for number in range(COUNT):
        print(f"COROUTINE {number} {results[number]:016x}")


if __name__ == "__main__":
    main()
