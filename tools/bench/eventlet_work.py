# SPDX-License-Identifier: MIT
"""Requests on eventlet's green threads, as worker.h's programs speak: parsed, sorted, answered, with waits between."""
import json
import os
import sys
import time

import eventlet

ROWS = [{"id": number, "name": f"row {number * 7919 % 1000}", "tags": ["a", "b", str(number)]} for number in range(40)]
TEXT = json.dumps(ROWS)


def serve():
    rows = json.loads(TEXT)
    eventlet.sleep(0)
    rows.sort(key=lambda row: row["name"])
    eventlet.sleep(0)
    return json.dumps({row["name"]: row["tags"] for row in rows})


def block(amount):
    pool = eventlet.GreenPool(8)
    for _ in range(amount):
        pool.spawn_n(serve)
    pool.waitall()


def main():
    if "--pin" in sys.argv:
        os.sched_setaffinity(0, {int(sys.argv[sys.argv.index("--pin") + 1])})
    for line in iter(sys.stdin.readline, ""):
        wall, cpu = time.monotonic_ns(), time.thread_time_ns()
        block(int(line.split()[0]))
        cpu, wall = time.thread_time_ns() - cpu, time.monotonic_ns() - wall
        print(wall, cpu, time.process_time_ns(), 0, *[0] * 5, flush=True)


main()
