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


def handle(until):
    while time.monotonic() < until:
        eventlet.sleep(0.002)


def faulty(fault, until):
    while time.monotonic() < until:
        eventlet.sleep(0.05)
        fault()


fault = {"computes": lambda: render_page(60), "sleeps": lambda: read_settings(60), "grows": subscribe,
         "none": lambda: render_page(0.2)}[sys.argv[1]]
until = time.monotonic() + float(sys.argv[2])
threads = [eventlet.spawn(handle, until) for _ in range(20)] + [eventlet.spawn(faulty, fault, until)]
for thread in threads:
    thread.wait()
