# SPDX-License-Identifier: MIT
"""Green threads that are kept from running by `blocks`. Argument: eventlet or gevent. Prints for each how long it was ready
and not served, and how long it really waited, in seconds."""
import sys
import time

kind = sys.argv[1]
if kind == "eventlet":
    from eventlet import sleep, spawn
    from eventlet.event import Event
    wait = lambda thread: thread.wait()
else:
    from gevent import sleep, spawn
    wait = lambda thread: thread.join()

ready, parked = {}, {}


def add(name, late, waited=0):
    ready[name] = ready.get(name, 0) + late
    parked[name] = parked.get(name, 0) + waited


def blocks():
    end = time.monotonic() + 0.06
    while time.monotonic() < end:
        pass


def hog():
    for _ in range(8):
        sleep(0.03)
        blocks()


def on_timer():
    while not over:
        begin = time.monotonic()
        sleep(0.02)
        late = time.monotonic() - begin - 0.02
        add("on_timer", late, 0.02)


def yields():
    while not over:
        begin = time.monotonic()
        sleep(0)
        sleep(0.01)
        add("yields", time.monotonic() - begin - 0.01, 0.01)


def sends(event):
    sleep(0.05)
    add("on_event", -time.monotonic())
    event.send(1)
    blocks()


def on_event(event):
    begin = time.monotonic()
    event.wait()
    add("on_event", time.monotonic(), time.monotonic() - begin)
    parked["on_event"] -= ready["on_event"]


over = []
if kind == "eventlet":
    event = Event()
    both = [spawn(on_event, event), spawn(sends, event)]
    for thread in both:
        wait(thread)
threads = [spawn(on_timer), spawn(yields)]
wait(spawn(hog))
over.append(True)
for thread in threads:
    wait(thread)
for name, seconds in ready.items():
    print(name, seconds, parked[name])
