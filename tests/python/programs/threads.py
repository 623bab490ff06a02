# SPDX-License-Identifier: MIT
"""Two threads: one holds the interpreter lock (Python code), the other does not (zlib). Prints their CPU seconds."""
import threading
import time
import zlib

times = {}
data = bytes(range(256)) * 4000


def in_zlib(end):
    while time.thread_time() < end:
        zlib.compress(data, 6)


def in_python(end):
    while time.thread_time() < end:
        sum(i * i for i in range(1000))


def run(work, end):
    work(end)
    times[work.__name__] = time.thread_time()


threads = [threading.Thread(target=run, args=(in_zlib, 0.6)), threading.Thread(target=run, args=(in_python, 0.6))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for name, seconds in times.items():
    print(name, seconds)
