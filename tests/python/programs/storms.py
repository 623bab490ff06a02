# SPDX-License-Identifier: MIT
"""Small programs with one right output each: storms of what Python's runtime does. Argument: the name of one, none to list them."""
import asyncio
import concurrent.futures
import ctypes
import faulthandler
import gc
import hashlib
import io
import itertools
import multiprocessing
import os
import signal
import struct
import subprocess
import sys
import threading
import time
import tracemalloc

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def in_threads(count, function):
    results = [None] * count

    def run(i):
        results[i] = function(i)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def forked(function):
    """Run it in a forked child; its status."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = function()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def deepen(depth, function):
    return deepen(depth - 1, function) if depth > 0 else function()


def count_down(n):
    if n > 0:
        yield n
        yield from count_down(n - 1)


def in_processes(method):
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        print(pool.map(fib, range(16)))
    queue = context.SimpleQueue()
    child = context.Process(target=queue.put, args=("from the child",))
    child.start()
    print(queue.get())
    child.join()
    print(child.exitcode)


@program
def processes_by_fork():
    in_processes("fork")


@program
def processes_by_spawn():
    in_processes("spawn")


@program
def processes_by_forkserver():
    in_processes("forkserver")


@program
def futures():
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        print(sum(pool.map(fib, itertools.repeat(9, 800))))
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        print(list(pool.map(fib, range(15), chunksize=5)))


@program
def line_coverage():
    import coverage
    cover = coverage.Coverage(data_file=None, include=[__file__])
    cover.start()
    print(in_threads(3, lambda i: fib(13 + i)), list(count_down(20)))
    cover.stop()
    cover.get_data()
    table = io.StringIO()
    cover.report(file=table, show_missing=True)
    print(table.getvalue())


@program
def tracebacks_later():
    """Of a thread that waits: Python reads the frames of one that runs without any care."""
    out, into = os.pipe()
    faulthandler.enable()
    for _ in range(3):
        dump = b""
        faulthandler.dump_traceback_later(0.05, file=into)
        while b"<module>" not in dump:
            dump += os.read(out, 65536)
        print([line.split()[-1] for line in dump.splitlines() if line.startswith(b"  File")])
    faulthandler.disable()


@program
def traces_and_profiles():
    counts = {"call": 0, "return": 0, "c_call": 0, "c_return": 0}

    def count(frame, event, argument):
        if frame.f_code in (fib.__code__, count_down.__code__):
            counts[event] = counts.get(event, 0) + 1
        return count
    threading.setprofile(count)
    sys.setprofile(count)
    print(in_threads(2, lambda i: fib(13)), fib(12), list(count_down(9)))
    sys.setprofile(None)
    threading.setprofile(None)
    threading.settrace(count)
    sys.settrace(count)
    print(in_threads(2, lambda i: fib(12)), fib(11), list(count_down(9)))
    sys.settrace(None)
    threading.settrace(None)
    print(sorted(counts.items()))


@program
def timers_of_the_program():
    hits = {}

    def count(number, frame):
        hits[number] = hits.get(number, 0) + 1
    for number, timer in ((signal.SIGPROF, signal.ITIMER_PROF), (signal.SIGVTALRM, signal.ITIMER_VIRTUAL),
                          (signal.SIGALRM, signal.ITIMER_REAL)):
        signal.signal(number, count)
        signal.setitimer(timer, 0.002, 0.002)
        while hits.get(number, 0) < 10:
            fib(12)
        signal.setitimer(timer, 0)
        print(number, "came")


@program
def memory_traces():
    tracemalloc.start(9)
    kept = deepen(30, lambda: [bytearray(100) for _ in range(500)] and 0), [bytearray(100) for _ in range(2000)]
    kept += tuple(in_threads(3, lambda i: [bytearray(100) for _ in range(500)]))
    mine = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, __file__, all_frames=True)])
    print(len(kept), sum(trace.size >= 100 for trace in mine.traces) >= 3500)
    tracemalloc.stop()


@program
def collections():
    ended = []

    class Cycle:
        def __init__(self):
            self.self, self.generator = self, count_down(9)
            next(self.generator)

        def __del__(self):
            ended.append(deepen(5, lambda: 0))
    gc.set_threshold(1, 2, 2)

    def storm(i):
        for _ in range(100):
            Cycle()
            exec(compile(f"def made{i}():\n    return [i for i in range(9)]\nmade{i}()", f"<made {i}>", "exec"), {})
        return i
    print(in_threads(3, storm))
    gc.set_threshold(700, 10, 10)
    gc.collect()
    print(len(ended), set(ended))


@program
def deep_recursion():
    sys.setrecursionlimit(20000)
    threading.stack_size(256 << 20)
    print([deepen(14000, lambda: 1) for _ in range(10)], in_threads(2, lambda i: deepen(14000, lambda: fib(10) + i)))
    print(in_threads(2, lambda i: sum(count_down(900))))
    for _ in range(10):
        try:
            deepen(10 ** 9, int)
        except RecursionError as error:
            print(error)


@program
def generators():
    def chain(depth, below):
        for _ in range(depth):
            below = map(int, (i + 1 for i in below))
        return sum(below)

    def closed(i):
        generator = deepen(i % 250, lambda: count_down(i % 40 + 2))
        for _ in range(i % 40 + 1):
            next(generator)
        generator.close()
        return i
    print(in_threads(3, lambda i: chain(60, range(150 + i))), sum(map(closed, range(800))))
    print(in_threads(2, lambda i: [deepen(depth, lambda: sum(count_down(3))) for depth in range(150, 250)][-1]))


@program
def exceptions():
    def fail(depth):
        try:
            return fail(depth - 1) if depth > 0 else [][depth]
        except IndexError as error:
            raise KeyError(depth) from error
        finally:
            list(count_down(3))

    def count(i):
        caught = 0
        for depth in range(60):
            try:
                fail(depth)
            except KeyError as error:
                while error is not None:
                    caught, error = caught + 1, error.__cause__
        return caught
    print(in_threads(3, count))


@program
def greenlets_across_threads():
    import greenlet
    ended, kept = [], []

    def pause(depth):
        deepen(depth, lambda: greenlet.getcurrent().parent.switch(1))
        ended.append(depth)  # one that is killed does not come here

    def storm(i):
        for n in range(150):
            mine = greenlet.greenlet(pause)
            mine.switch(n % 30)
            if n % 3 == 0:
                kept.append(mine)  # outlives its thread
            elif n % 3 == 1:
                mine.switch()
            elif len(kept) > 20:
                kept.pop(0)  # dies here, on another thread than its own
            del mine
        return i
    for _ in range(3):
        print(in_threads(3, storm))
    kept.clear()
    gc.collect()
    print(len(ended))


@program
def forks_in_threads():
    print(in_threads(3, lambda i: [forked(lambda: fib(10) - 55 + i + 1) for _ in range(12)]))
    print(in_threads(2, lambda i: [forked(lambda: sum(in_threads(2, lambda j: j))) for _ in range(6)]))
    print([subprocess.run(["/bin/echo", "a", str(i)], capture_output=True).stdout for i in range(6)])


@program
def loops():
    async def numbers(n):
        for i in range(n):
            await asyncio.sleep(0)
            yield i

    async def add(n):
        return sum([i async for i in numbers(n)])

    async def late():
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 0.001)
        except asyncio.TimeoutError:
            return "late"

    async def cancelled():
        task = asyncio.ensure_future(asyncio.sleep(3600))
        await asyncio.sleep(0)
        task.cancel()
        return (await asyncio.gather(task, return_exceptions=True))[0].__class__.__name__

    async def talk():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        said = []
        for i in range(40):
            writer.write(b"%d\n" % i)
            said.append(int(await reader.readline()))
        writer.close()
        server.close()
        return sum(said)

    async def answer(reader, writer):
        while line := await reader.readline():
            writer.write(b"%d\n" % (int(line) * 2))
        writer.close()

    async def everything():
        in_pool = asyncio.get_running_loop().run_in_executor
        return await asyncio.gather(*(add(n) for n in range(60)), late(), cancelled(), talk(),
                                    *(in_pool(None, fib, n) for n in range(14)))
    print(asyncio.run(everything()))
    print(in_threads(3, lambda i: asyncio.run(add(100 + i))))


def run_c_coroutine():
    """One of getcontext() and its kin, which runs getpid(), without the interpreter lock."""
    libc, contexts, stack = ctypes.CDLL(None), [ctypes.create_string_buffer(2048) for _ in range(2)], ctypes.create_string_buffer(65536)
    libc.getcontext(contexts[1])
    struct.pack_into("QQQQ", contexts[1], 8, ctypes.addressof(contexts[0]), ctypes.addressof(stack), 0, len(stack))  # uc_link, uc_stack
    libc.makecontext(contexts[1], libc.getpid, 0)
    return libc.swapcontext(contexts[0], contexts[1])


class Interpreters:
    """Python's own module for them, by whatever name."""
    def __init__(self):
        try:
            import _interpreters as module
            self.create = lambda isolated: module.create("isolated" if isolated else "legacy")
            self.run = module.exec
        except ImportError:
            import _xxsubinterpreters as module
            self.create, self.run = lambda isolated: module.create(isolated=isolated), module.run_string
        self.destroy = module.destroy


@program
def interpreters_with_own_locks():
    """Two at once beside the main one, tasks in each."""
    code = """
import asyncio
async def add(n):
    s = 0
    for i in range(n):
        s += sum(range(200))
        await asyncio.sleep(0)
    return s
async def main():
    assert await asyncio.gather(add(60), add(70)) == [60 * 19900, 70 * 19900]
asyncio.run(main())
"""
    interpreters = Interpreters()

    def run(_):
        for _ in range(4):
            interpreter = interpreters.create(True)
            interpreters.run(interpreter, code)
            interpreters.destroy(interpreter)
        return "done"
    threads = [threading.Thread(target=run, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(8):
        exec(code, {})
    for thread in threads:
        thread.join()
    print("over")


@program
def sub_interpreters():
    interpreters = Interpreters()
    try:
        import greenlet
        greenlet.greenlet(fib).switch(5)
    except ImportError:
        pass
    code = """
import threading
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
thread = threading.Thread(target=fib, args=(12,))
thread.start()
assert fib(12) == 144
thread.join()
"""
    for i in range(12):
        interpreter = interpreters.create(False)
        interpreters.run(interpreter, code)
        interpreters.destroy(interpreter)
        print(run_c_coroutine(), in_threads(2, lambda i: run_c_coroutine()))


@program
def daemons_at_the_end():
    """The interpreter ends while threads compute, run Python and sleep."""
    def hash_for_ever():
        while True:
            hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 300000)

    def add_for_ever():
        while True:
            fib(12)
    for function in (hash_for_ever, hash_for_ever, add_for_ever, lambda: time.sleep(3600)):
        threading.Thread(target=function, daemon=True).start()
    fib(20)
    print("over")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print(*PROGRAMS, sep="\n")
    else:
        PROGRAMS[sys.argv[1]]()
