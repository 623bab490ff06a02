# SPDX-License-Identifier: MIT
"""Threads that wait for locks which others hold: each thread is a request, and says how long its waits took as it saw them.

What else waits (an event, a queue, a join, an idle pool) is no lock's wait."""
import concurrent.futures
import faulthandler
import queue
import threading
import time

import greenprof

HOLD, ROUNDS = 0.03, 12
plain = threading.Lock()
again = threading.RLock()
condition = threading.Condition()
semaphore = threading.Semaphore(1)
lines = []  # threads that print at once share a line


def hold_plain():
    with plain:
        time.sleep(HOLD)


def hold_again():
    with again:
        with again:
            time.sleep(HOLD)


def hold_condition():
    with condition:
        time.sleep(HOLD)


def hold_semaphore():
    semaphore.acquire()
    time.sleep(HOLD)
    semaphore.release()


def want_plain():
    plain.acquire()
    plain.release()


def want_again():
    again.acquire()
    again.release()


def want_condition():
    condition.acquire()
    condition.release()


def want_semaphore():
    semaphore.acquire()
    semaphore.release()


def work(function, pause):
    name = threading.current_thread().name
    took, waits = 0, 0
    with greenprof.span("task", name):
        for _ in range(ROUNDS):
            time.sleep(pause)
            begin = time.monotonic()
            function()
            lasted = time.monotonic() - begin
            took += lasted
            waits += lasted > 0.005
    lines.append(("LOCK", name, took, waits))


def pair(kind, hold, want):
    """A holder that sleeps with the lock, and leaves it free for a moment; and one that wants it meanwhile."""
    return [threading.Thread(target=work, args=(hold, 0.004), name=f"holder-{kind}"),
            threading.Thread(target=work, args=(want, 0.012), name=f"victim-{kind}")]


def others():
    """Sleeps that are no lock's."""
    name = threading.current_thread().name
    event, items, thread = threading.Event(), queue.Queue(), threading.Thread(target=time.sleep, args=(0.1,))
    with greenprof.span("task", name):
        thread.start()
        event.wait(0.05)
        try:
            items.get(timeout=0.05)
        except queue.Empty:
            pass
        thread.join()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for _ in range(3):
                list(pool.map(time.sleep, [0.01, 0.01]))
                time.sleep(0.03)


def idle(items):
    """The second one to wait finds the queue's lock taken by the first."""
    items.get()


def main():
    faulthandler.dump_traceback_later(60) # a thread without frames, which waits for a lock
    items = queue.SimpleQueue()
    idlers = [threading.Thread(target=idle, args=(items,), name=f"idler-{i}") for i in range(2)]
    for thread in idlers:
        thread.start()
    threads = pair("plain", hold_plain, want_plain) + pair("again", hold_again, want_again) + \
        pair("condition", hold_condition, want_condition) + pair("semaphore", hold_semaphore, want_semaphore)
    threads.append(threading.Thread(target=others, name="others"))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    time.sleep(1.3) # longer ones are told while they go on
    for _ in idlers:
        items.put(None)
    faulthandler.cancel_dump_traceback_later()
    for line in lines:
        print(*line)
    threading.Thread(target=time.sleep, args=(0.1,)).start() # which the interpreter waits for


main()
