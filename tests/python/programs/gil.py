# SPDX-License-Identifier: MIT
"""Threads that compute, and one that naps: each a request, which says what it took, computed and slept, and for how long
the kernel kept it from a processor. What is left of the time it waited for the interpreter's lock."""
import os
import threading
import time

import greenprof

NAP, NAPS, BURNERS = 0.01, 30, 2
is_over = False


def burn():
    x = 0
    while not is_over:
        x += 1


def nap():
    for _ in range(NAPS):
        time.sleep(NAP)


def delay_of_this_thread(fd):
    return int(os.pread(fd, 100, 0).split()[1]) / 1e9


def work(function, slept):
    name = threading.current_thread().name
    fd = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
    delay = delay_of_this_thread(fd)
    with greenprof.span("task", name):
        begin, ran = time.monotonic(), time.thread_time()
        function()
        wall, cpu = time.monotonic() - begin, time.thread_time() - ran
    delay = delay_of_this_thread(fd) - delay
    lines.append(("GIL", name, wall, cpu, slept, delay))


lines = []  # threads that print at once share a line


def main():
    global is_over
    burners = [threading.Thread(target=work, args=(burn, 0), name=f"burner-{i}") for i in range(BURNERS)]
    napper = threading.Thread(target=work, args=(nap, NAP * NAPS), name="napper")
    for thread in burners + [napper]:
        thread.start()
    napper.join()
    is_over = True
    for thread in burners:
        thread.join()
    for line in lines:
        print(*line)


main()
