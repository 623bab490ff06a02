# SPDX-License-Identifier: MIT
"""Threads with one fault about locks, or none: locks.py held|gil|deadlock|twin|passed|none SECONDS."""
import hashlib
import os
import sys
import threading
import time

FAULT, SECONDS = sys.argv[1], float(sys.argv[2])
begin = time.monotonic()
cache_lock = threading.Lock()
left_lock = threading.Lock()
right_lock = threading.RLock()
both = threading.Barrier(3 if FAULT == "passed" else 2)


def goes_on():
    return time.monotonic() - begin < SECONDS


def refresh_cache():
    """Holds the lock all along, as what it asks answers slowly; the twin has it for the answer alone."""
    while goes_on():
        if FAULT == "held":
            with cache_lock:
                time.sleep(0.04)
        else:
            time.sleep(0.04)
            with cache_lock:
                pass
        time.sleep(0.005)


def read_cache():
    while goes_on():
        with cache_lock:
            pass
        time.sleep(0.005)


def render_table():
    """Computes with the interpreter's lock; the twin's digests let it go."""
    text = b"x" * 4000000
    while goes_on():
        if FAULT == "gil":
            sum(i * i for i in range(20000))
        else:
            hashlib.sha256(text).digest()


def answer():
    while goes_on():
        time.sleep(0.002)


def transfer_left():
    with left_lock:
        both.wait()
        if FAULT == "deadlock":
            take_right()
        else:
            right_lock.acquire(timeout=SECONDS)


def take_right():
    with right_lock:
        pass


def transfer_right():
    with right_lock:
        both.wait()
        with left_lock:
            pass


def passes_on():
    """Gives the lock to another thread while a third waits for it, and then waits for what the third has."""
    with left_lock:
        both.wait()
        time.sleep(SECONDS / 8)
    with right_lock:
        pass


def has_it_now():
    both.wait()
    time.sleep(SECONDS / 16)  # the first to wait
    with left_lock:
        time.sleep(SECONDS)


def waits_on():
    with right_lock:
        both.wait()
        time.sleep(SECONDS / 12)
        with left_lock:
            pass


def main():
    kinds = {"held": [refresh_cache, read_cache, read_cache], "gil": [render_table, answer, answer],
             "deadlock": [transfer_left, transfer_right]}
    kinds["passed"] = [passes_on, has_it_now, waits_on]
    kinds["none"] = kinds["held"] + kinds["gil"]
    kinds["twin"] = kinds["deadlock"]
    threads = [threading.Thread(target=function, name=function.__name__, daemon=True) for function in kinds[FAULT]]
    for thread in threads:
        thread.start()
    if FAULT in ("deadlock", "twin", "passed"):
        time.sleep(SECONDS / 2)
        print("waiting", flush=True)
        time.sleep(SECONDS / 4)
        os._exit(0)
    for thread in threads:
        thread.join()


main()
