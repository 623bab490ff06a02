# SPDX-License-Identifier: MIT
"""Requests that overlap and hand calls to the threads of a pool, which the first of them makes: each call is its request's.

Arguments: which pool; sample or exact; how many requests. Prints of each request its trace id, the CPU seconds that its calls burnt
on the pool's threads, and the profile's total; or what is wrong.
"""
import sys
import threading
import time
import types

pool, mode, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
CALLS, MS = 6, 15 if mode == "sample" else 1

if pool in ("eventlet.tpool", "green futures"):
    import eventlet
    if pool == "green futures":
        eventlet.monkey_patch()
    from eventlet import sleep
    spawn, wait = eventlet.spawn, lambda threads: [thread.wait() for thread in threads]
elif pool == "gevent":
    import gevent
    from gevent import sleep
    spawn, wait = gevent.spawn, gevent.joinall

import greenprof

truth, totals, wrong = [0.0] * count, [0.0] * count, []
own_threads = set()


def burn(i, ms):
    begin = time.thread_time()
    while time.thread_time() < begin + ms / 1000:
        for _ in range(100):
            pass
    truth[i] += time.thread_time() - begin
    if threading.get_ident() in own_threads:
        wrong.append(f"{i}: not on a pool's thread")


def own(i, ms):
    nested(i, ms)
    return i


def nested(i, ms):
    burn(i, ms)


def functions_of(i):
    """own() and nested() in a file of their own."""
    names = {"burn": burn}
    for function in (own, nested):
        names[function.__name__] = types.FunctionType(function.__code__.replace(co_filename=f"request_{i}"), names)
    return names["own"]


def failing():
    raise KeyError("as it should")


class Request:
    def __init__(self, i):
        self.i, self.own = i, functions_of(i)
        self.profile = greenprof.Profile(mode=mode, frequency=5000)
        self.trace = f"{i + 1:032x}"

    def begin(self):
        greenprof.set_trace(self.trace)
        self.profile.start()
        if pool != "green futures":
            own_threads.add(threading.get_ident())

    def end(self, results):
        if results != [self.i] * CALLS:
            wrong.append(f"{self.i}: {results}")
        self.profile.stop()
        self.profile.create_stats()
        totals[self.i] = self.profile.total
        files = {key[0] for key in self.profile.stats if key[0].startswith("request_")}
        if files != {f"request_{self.i}"}:
            wrong.append(f"{self.i}: rows of {files}")
        rows = {key[2]: row for key, row in self.profile.stats.items()}
        if mode == "exact" and (rows["own"][1], rows["nested"][1]) != (CALLS, CALLS):
            wrong.append(f"{self.i}: {rows['own'][1]} calls")
        if mode == "sample" and rows["own"][3] < 0.5 * truth[self.i]:
            wrong.append(f"{self.i}: {rows['own'][3]} of {truth[self.i]} s")


def with_futures(i):
    import concurrent.futures  # by the first request
    global shared
    with lock:
        if shared is None:
            shared = concurrent.futures.ThreadPoolExecutor(3)
    request = Request(i)
    request.begin()
    futures = [shared.submit(request.own, i, MS) for _ in range(CALLS)]
    try:
        shared.submit(failing).result()
        wrong.append("the error is lost")
    except KeyError:
        pass
    request.end([future.result() for future in futures])


def by_apply(apply):
    def run(i):
        request = Request(i)
        request.begin()
        results = []
        for _ in range(CALLS):
            results.append(apply(request.own, i, MS))
            sleep(0.001)
        try:
            apply(failing)
            wrong.append("the error is lost")
        except KeyError:
            pass
        request.end(results)
    return run


async def with_tasks(to_thread):
    import asyncio

    async def run(i):
        request = Request(i)
        request.begin()
        request.end(list(await asyncio.gather(*(to_thread(request.own, i, MS) for _ in range(CALLS)))))
    await asyncio.gather(*(asyncio.create_task(run(i)) for i in range(count)))


shared, lock = None, threading.Lock()
if pool == "futures":
    threads = [threading.Thread(target=with_futures, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
elif pool == "green futures":
    wait([spawn(with_futures, i) for i in range(count)])
elif pool == "eventlet.tpool":
    from eventlet import tpool
    wait([spawn(by_apply(tpool.execute), i) for i in range(count)])
elif pool == "gevent":
    wait([spawn(by_apply(lambda f, *args: gevent.get_hub().threadpool.apply(f, args)), i) for i in range(count)])
elif pool == "to_thread":
    import asyncio
    asyncio.run(with_tasks(asyncio.to_thread))
elif pool == "run_in_executor":
    import asyncio
    asyncio.run(with_tasks(lambda f, *args: asyncio.get_running_loop().run_in_executor(None, f, *args)))
if mode == "sample" and sum(totals) > 1.02 * time.process_time():
    wrong.append(f"in all {sum(totals)} s of {time.process_time()} s")
for line in wrong:
    print("wrong:", line)
for i in range(count):
    print(f"{i + 1:032x}", truth[i], totals[i])
