# SPDX-License-Identifier: MIT
"""eventlet: requests that ask a store for a list, and FAULT: for each row of it again (again), with calls that fail and are made
again at once (retries), after a long start (starts), or for all rows at once (none).

usage: queries.py FAULT SECONDS
"""
import sys
import time

import eventlet
import greenprof

FAULT = sys.argv[1]


def ask(statement):
    with greenprof.span("database", "SELECT", statement=statement):
        eventlet.sleep(0.003)


def load_orders(customers):
    for customer in customers:
        ask("select * from orders where customer = ?")


def charge(tries):
    """The last try succeeds."""
    for number in range(tries):
        try:
            with greenprof.span("rest_call", "POST /charge"):
                eventlet.sleep(0.02)
                if number + 1 < tries:
                    raise TimeoutError
        except TimeoutError:
            pass


def load_tables():
    end = time.thread_time() + 0.6
    while time.thread_time() < end:
        sum(range(1000))


def handle(until):
    while time.monotonic() < until:
        with greenprof.span("rest_dispatch", "GET /customers"):
            ask("select * from customers")
            load_orders(range(30 if FAULT == "again" else 1))
            charge(6 if FAULT == "retries" else 1)


if FAULT == "starts":
    load_tables()
deadline = time.monotonic() + float(sys.argv[2])
threads = [eventlet.spawn(handle, deadline) for _ in range(4)]
for thread in threads:
    thread.wait()
