# SPDX-License-Identifier: MIT
"""Threads with names of every origin. Argument: whether the package is imported, and tells who is there."""
import concurrent.futures
import ctypes
import sys
import threading
import time


def burn(ms=40):
    end = time.thread_time() + ms / 1000
    while time.thread_time() < end:
        pass


def renames_itself():
    burn()
    threading.current_thread().name = "renamed-itself"
    burn()


def calls_the_kernel():
    ctypes.CDLL(None).prctl(15, b"by-the-kernel", 0, 0, 0)  # PR_SET_NAME
    burn(120)


threads = [threading.Thread(target=burn, name=name) for name in ("db-writer", "a name of more than 23 bytes, number 42", "gr\u00fcn")]
threads += [threading.Thread(target=renames_itself, name="first"), threading.Thread(target=burn, args=(20,), name="short-lived")]
for thread in threads:
    thread.start()
other = threading.Thread(target=burn, args=(80,), name="before")
other.start()
other.name = "renamed-by-main"
for thread in threads + [other]:
    thread.join()
with concurrent.futures.ThreadPoolExecutor(2, thread_name_prefix="pool") as pool:
    list(pool.map(burn, [40] * 4))
if sys.argv[1] == "package":
    import greenprof
    stop = threading.Event()
    waiting = threading.Thread(target=stop.wait, name="waits")
    waiting.start()
    print([coro.name for coro in greenprof.coroutines() if coro.is_thread])
    stop.set()
    waiting.join()
# Before CPython 3.14 no thread has a name of the kernel's; one that is started without threading may have.
import _thread
done = _thread.allocate_lock()
done.acquire()
_thread.start_new_thread(lambda: (calls_the_kernel(), done.release()), ())
done.acquire()
