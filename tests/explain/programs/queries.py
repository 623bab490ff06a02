# SPDX-License-Identifier: MIT
"""eventlet: requests that ask a store for a list, and FAULT: for each row of it again (again), or for all rows at once (none).

usage: queries.py FAULT SECONDS
"""
import sys
import time

import eventlet
import greenprof


def ask(statement):
    with greenprof.span("database", "SELECT", statement=statement):
        eventlet.sleep(0.003)


def load_orders(customers):
    for customer in customers:
        ask("select * from orders where customer = ?")


def handle(until, again):
    while time.monotonic() < until:
        with greenprof.span("rest_dispatch", "GET /customers"):
            ask("select * from customers")
            load_orders(range(30 if again else 1))


until = time.monotonic() + float(sys.argv[2])
threads = [eventlet.spawn(handle, until, sys.argv[1] == "again") for _ in range(4)]
for thread in threads:
    thread.wait()
