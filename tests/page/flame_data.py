# SPDX-License-Identifier: MIT
"""A small profile of known numbers, for the tests of the flame graph and of what is around it."""
from page_data import PageData

MS = 10**6
MAIN, SERVE = ("main", 0, "main.c", 10, "demo"), ("serve", 0, "server.c", 5, "demo")
PARSE, COPY = ("parse", 0, "server.c", 50, "demo"), ("memcpy", 0, "", 0, "libc.so.6")
TURN, EVAL = ("turn", 1, "app.py", 3, ""), ("PyEval", 0, "ceval.c", 700, "libpython")
QUERY = ("query", 0, "db.c", 9, "demo")
RUNNING, PARKED, READY = 0, 2, 3

# stack, label, state, ms, samples, tick: 100 ms on the CPU, 60 parked, 40 ready
ROWS = [
    ((MAIN, SERVE, PARSE), 0, RUNNING, 20, 4, 1),
    ((MAIN, SERVE, PARSE, COPY), 0, RUNNING, 10, 2, 1),
    ((MAIN, SERVE, COPY), 1, RUNNING, 15, 3, 2),
    ((MAIN, TURN, EVAL, TURN, EVAL, TURN), 1, RUNNING, 30, 6, 2),
    ((MAIN, TURN), 2, RUNNING, 25, 5, 3),
    ((MAIN, SERVE, QUERY, ("[parked]", 2)), 0, PARKED, 60, 3, 3),
    ((MAIN, SERVE, QUERY, ("[ready]", 2)), 1, READY, 40, 2, 4),
]


def profile(**head):
    """Three coroutines: 1 worker, 2 worker (spawned by 1 at main;serve) and the thread main's own stack."""
    page = PageData(**{"title": "shop", "command": "greenprof flamegraph shop.greenprof -o shop.html", "tick_ns": 10 * MS, "duration_ns": 40 * MS,
                       "threads": ["main", "io"], "traces": ["%032x" % 10, "%032x" % 11], "coroutines": ["worker", "[thread main]"],
                       "endpoints": [{"text": "GET /cart", "count": 2, "failed": 0, "total_ns": 30 * MS, "p50_ns": 10 * MS, "p90_ns": 20 * MS,
                                      "p99_ns": 20 * MS, "max_ns": 20 * MS}],
                       "totals": {"cpu_ns": 100 * MS, "sampled_ns": 102 * MS, "error_ns": 5 * MS, "samples": 25, "total_ns": 200 * MS, "basis": "exact",
                                  "exact_calls": False}, **head})
    for stack, label, state, weight, samples, tick in ROWS:
        page.row("row", stack, label=label, state=state, weight=weight * MS, samples=samples, tick=tick)
    entry = page.name("serve")
    page.add("coro", id=1, name=0, entry=entry + 1)
    page.add("coro", id=2, name=0, entry=entry + 1, parent=1, spawn=(MAIN, SERVE))
    page.add("coro", id=0, name=1, flags=1)
    page.add("label", coro=1, thread=1, trace=1, request=1)
    page.add("label", coro=2, thread=2, trace=2, request=2)
    page.add("label", coro=3, thread=1)
    page.add("request", trace=1, endpoint=0, coro=1, start=0, latency=20 * MS)
    page.add("request", trace=2, endpoint=0, coro=2, start=5 * MS, latency=10 * MS)
    return page


def comparison():
    """Two sides: hot took 100 ms in 100 samples and takes 300 in 300; cold goes from 200 to 100; same stays; rare has 2 samples."""
    sides = [{"file": "before.greenprof", "total_ns": 500 * MS, "samples": 501, "duration_ns": 10**9},
             {"file": "after.greenprof", "total_ns": 601 * MS, "samples": 601, "duration_ns": 10**9}]
    page = PageData(sides=sides)
    for name, base, file in (("hot", 100, 300), ("cold", 200, 100), ("same", 200, 200), ("rare", 1, 2)):
        for side, weight in ((0, base), (1, file)):
            page.row("row", ("main", name), side=side, weight=weight * MS, samples=weight)
    page.add("label", coro=0)
    return page
