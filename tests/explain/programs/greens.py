# SPDX-License-Identifier: MIT
"""eventlet: 20 handlers, and a fault that FAULT names: computes, sleeps, grows, none.

usage: greens.py FAULT SECONDS
"""
import sys
import time

import eventlet


def render_page(milliseconds):
    end = time.thread_time() + milliseconds / 1000
    while time.thread_time() < end:
        sum(range(100))


def read_settings(milliseconds):
    time.sleep(milliseconds / 1000)  # not eventlet's


def watch_forever():
    eventlet.event.Event().wait()


def subscribe():
    for _ in range(5):
        eventlet.spawn(watch_forever)


def handle():
    while not is_over:
        eventlet.sleep(0.002)


def faulty(fault, rounds):
    global is_over
    for _ in range(rounds):
        eventlet.sleep(0.05)
        fault()
    is_over = True


fault = {"computes": lambda: render_page(60), "sleeps": lambda: read_settings(60), "grows": subscribe,
         "none": lambda: render_page(0.2)}[sys.argv[1]]
is_over, rounds = False, int(float(sys.argv[2]) / 0.05)  # as many on a busy machine
threads = [eventlet.spawn(handle) for _ in range(20)] + [eventlet.spawn(faulty, fault, rounds)]
for thread in threads:
    thread.wait()
