# SPDX-License-Identifier: MIT
"""CPU time of known amount in each kind of Python code. Prints EXPECT lines: function, seconds; and TASK lines: coroutine,
function, which belong together. Argument: plain, interpreters, asyncio, python_tasks, greenlet, eventlet, gevent, calls or forks."""
import collections
import sys
import threading
import time

booked = collections.Counter()
tasks = set()


def burn(name, ms):
    begin = time.thread_time_ns()
    while time.thread_time_ns() < begin + ms * 1000000:
        for _ in range(200):
            pass
    booked[name] += time.thread_time_ns() - begin


def numbers(n):
    for i in range(n):
        burn("numbers", 10)
        yield i


def delegated(n):
    yield from numbers(n)


def deep(n):
    return deep(n - 1) if n else burn("deep", 200)


def in_thread():
    burn("in_thread", 200)


def in_method():
    class Number:
        def __eq__(self, other):
            burn("in_method", 200)
            return True
    return Number() == 1


def in_key(_):
    burn("in_key", 200)


def plain():
    assert sum(delegated(20)) == 190
    deep(900)
    in_method()
    sorted([1], key=in_key)
    threads = [threading.Thread(target=in_thread) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def work(name, ms):
    tasks.add((name, name))
    for _ in range(20):
        burn(name, ms)
        pause()


def alpha():
    work("alpha", 10)


def beta():
    work("beta", 20)


async def inner(name, ms):
    burn(name, ms)
    await asyncio.sleep(0)


async def first():
    for _ in range(20):
        await inner("first", 10)


async def second():
    for _ in range(20):
        await inner("second", 20)


def handed():
    burn("handed", 200)


async def begins():
    burn("begins", 100)
    await asyncio.sleep(0.01)
    burn("begins", 100)


async def gathers():
    async with asyncio.TaskGroup() as group:
        group.create_task(first())
        group.create_task(second())
    await asyncio.gather(asyncio.to_thread(handed), *(asyncio.create_task(first(), name=f"named_{i}") for i in range(2)))
    if hasattr(asyncio, "eager_task_factory"):
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    await asyncio.gather(begins(), begins())


def run_asyncio():
    global asyncio
    import asyncio
    tasks.update([("first", "first"), ("second", "second"), ("named_0", "first"), ("named_1", "first"), ("begins", "begins")])
    asyncio.run(gathers())


async def third():
    for _ in range(10):
        await inner("third", 10)


async def fourth():
    for _ in range(10):
        await inner("fourth", 20)


async def tasks_in_python():
    loop = asyncio.get_running_loop()
    loop.set_task_factory(lambda loop, coroutine, **more: asyncio.tasks._PyTask(coroutine, loop=loop, **more))
    await asyncio.gather(loop.create_task(third()), loop.create_task(fourth()))


def run_python_tasks():
    global asyncio
    import asyncio
    tasks.update([("third", "third"), ("fourth", "fourth")])
    asyncio.run(tasks_in_python())


IN_INTERPRETER = """
import sys, time
def {name}():
    begin = time.thread_time_ns()
    while time.thread_time_ns() < begin + 200000000:
        for _ in range(200):
            pass
    return time.thread_time_ns() - begin
def generator():
    yield {name}()
print("EXPECT {name}", sum(generator()) / 1e9, flush=True)
"""


def interpreters():
    """Each with a lock of its own, on a thread of its own; they end with all that was sampled of them."""
    import _interpreters

    def run(name):
        interpreter = _interpreters.create()
        assert _interpreters.exec(interpreter, IN_INTERPRETER.format(name=name)) is None
        _interpreters.destroy(interpreter)
    threads = [threading.Thread(target=run, args=(name,)) for name in ("one", "another")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _interpreters.exec(_interpreters.create(), "import threading")  # is left to the end
    deep(3)


def run_greenlet():
    global pause
    import greenlet
    pause = greenlet.getcurrent().switch
    waiting = [greenlet.greenlet(alpha), greenlet.greenlet(beta)]
    while waiting:
        for one in waiting:
            one.switch()
        waiting = [one for one in waiting if not one.dead]


def run_eventlet():
    global pause
    import eventlet
    pause = eventlet.sleep
    pool = eventlet.GreenPool()
    pool.spawn(alpha)
    pool.spawn(beta)
    pool.waitall()


def run_gevent():
    global pause
    import gevent
    pause = gevent.sleep
    gevent.joinall([gevent.spawn(alpha), gevent.spawn(beta)])


def leaf(i):
    return i + 1


def generator():
    for i in range(50):
        yield leaf(i)


def calls():
    for _ in range(50):
        assert len(list(generator())) == 50
    print("CALLS leaf 2500\nCALLS generator 2550\nCALLS calls 1")


def forks():
    """Forks beside no other thread, of a child's child too, by each way; then beside one. Prints how many of them warned."""
    import os
    import warnings
    end = threading.Event()

    def fork_all():
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            for _ in range(10):
                burn("forks", 10)
                pid = os.fork()
                if pid == 0:
                    burn("forks", 10)
                    if os.fork() == 0:
                        os._exit(0)
                    os._exit(10 * os.waitstatus_to_exitcode(os.wait()[1]) + min(len(warned), 9))
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                pid, terminal = os.forkpty()
                if pid == 0:
                    os._exit(0)
                print("FORKS", len(warned), status + os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
                os.close(terminal)
    fork_all()
    other = threading.Thread(target=end.wait)
    other.start()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        if os.fork() == 0:
            os._exit(0)
        os.wait()
    print("BESIDE", len(warned))
    end.set()


kind = sys.argv[1]
pause = None
{"plain": plain, "interpreters": interpreters, "calls": calls, "forks": forks}.get(kind, globals().get("run_" + kind))()
for function, ns in booked.items():
    print("EXPECT", function, ns / 1e9)
for task, function in sorted(tasks):
    print("TASK", task, function)
