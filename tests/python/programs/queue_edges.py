# SPDX-License-Identifier: MIT
"""Queues whose items must not make a thread another request's for longer than they are worked on: replies, requests that come later
on the same threads, an item of another request within a request, a worker that ends without another get()."""
import queue
import threading
import time

import greenprof

work, others = queue.Queue(), queue.SimpleQueue()


def burn(seconds=0.01):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def serve():
    while True:
        reply = work.get()
        if reply is None:
            return
        burn()
        reply.put(reply)


def ask(name):
    with greenprof.span("rest_dispatch", name):
        reply = queue.Queue()
        work.put(reply)
        reply.get()
        burn()


def several():
    for i in range(3):
        ask(f"ASK /{threading.current_thread().name}/{i}")
        burn(0.02)  # of no request


def mixed():
    with greenprof.span("rest_dispatch", "MIXED /"):
        others.get()
        burn()


def single():
    others.get()
    burn()


def started(**arguments):
    thread = threading.Thread(**arguments)
    thread.start()
    return thread


server = started(target=serve)
for client in [started(target=several, name=f"client{i}") for i in range(2)]:
    client.join()
with greenprof.span("rest_dispatch", "PUT /"):
    others.put("item")
started(target=mixed).join()
worker = started(target=single)
with greenprof.span("rest_dispatch", "SINGLE /"):
    others.put("item")
    worker.join()
work.put(None)
server.join()
