# SPDX-License-Identifier: MIT
"""100 ms of three coroutines on two threads, each moment of which is known, for the tests of the timeline and of the heatmap."""
from page_data import PageData

MS = 10**6
RUNNING, PARKED, READY, WAITING = 0, 2, 3, 4
TRACES = ["%032x" % 10, "%032x" % 11]

# coroutine, ms: start, active, of that running, wait, ready from (None: not known), waker, thread, trace
ACTIVITIES = [
    (0, 0, 10, 10, 30, 30, None, 1, 1),       # parked from 10, ready from 30, runs again at 40
    (0, 40, 20, 20, 40, None, None, 1, 1),    # waits from 60 to the end: why is not known
    (1, 45, 20, 10, 15, 70, 0, 2, 2),         # ran and waited in turns; woken by 0 at 70
    (1, 80, 20, 20, 0, None, None, 2, 2),
    (2, 10, 30, 30, 60, 60, 1, 1, 0),         # a long slice; woken by 1 at 60
]
STATES = {0: [(RUNNING, 0, 10), (PARKED, 10, 30), (READY, 30, 40), (RUNNING, 40, 60), (WAITING, 60, 100)],
          1: [(RUNNING, 45, 65), (PARKED, 65, 70), (READY, 70, 80), (RUNNING, 80, 100)],
          2: [(RUNNING, 10, 40), (PARKED, 40, 60), (READY, 60, 100)]}


def activity(page, coro, start, active, ran, wait, ready=None, waker=None, thread=0, trace=0):
    """One activity; times in ms."""
    page.add("activity", coro=coro, start=round(start * MS), active=round(active * MS), slice=round(ran * MS), wait=round(wait * MS),
             ready=0 if ready is None else round((ready - start) * MS) + 1, waker=0 if waker is None else waker + 1, thread=thread, trace=trace)


def history(**head):
    page = PageData(**{"title": "shop", "tick_ns": MS, "duration_ns": 100 * MS, "threads": ["main", "io"], "traces": TRACES,
                       "coroutines": ["worker", "<b>query</b>"],
                       "endpoints": [{"text": "GET /cart", "count": 1, "failed": 0, "total_ns": 60 * MS, "p50_ns": 60 * MS, "p90_ns": 60 * MS,
                                      "p99_ns": 60 * MS, "max_ns": 60 * MS}], **head})
    page.row("row", ("main", "work"), label=0, state=RUNNING, tick=5, weight=50 * MS, samples=5)
    page.row("row", ("main", "[ready]"), label=0, state=READY, tick=50, weight=20 * MS, samples=2)
    page.add("label", coro=1, thread=1, trace=1, request=1)
    for number, name, parent, cpu, longest in ((7, 0, 0, 30, 20), (8, 1, 1, 40, 20), (9, 0, 0, 35, 30)):
        page.add("coro", id=number, name=name, parent=parent, cpu=cpu * MS, ready=10 * number * MS, parked=(20 - number) * MS, longest=longest * MS, switches=2)
    for one in ACTIVITIES:
        activity(page, *one)
    return page


def with_request(page, lengths=(10, 30, 20)):
    """A request from 10 to 70 ms: parked in coroutine 0, then running and ready in coroutine 2, then running in 0."""
    page.add("request", trace=1, endpoint=0, coro=1, start=10 * MS, latency=60 * MS, ready=10 * MS, coros=2)
    at = 10
    for (coro, state, leaf), length in zip(((0, PARKED, "poll"), (2, RUNNING, "parse"), (0, RUNNING, "send")), lengths):
        page.stack("main", leaf)
        page.add("segment", request=0, **{"from": at * MS}, length=length * MS, coro=coro, state=state, node=("main", leaf))
        at += length
    return page


def with_spans(page):
    kind = page.name("request")
    page.add("span", request=1, coro=1, trace=1, kind=kind, name=page.name("GET /cart"), start=10 * MS, length=60 * MS, cpu=20 * MS)
    page.add("span", request=1, parent=1, coro=1, trace=1, kind=kind, name=page.name("SELECT"), start=20 * MS, length=20 * MS, flags=1)
    return page


def with_hog(page):
    page.add("hog", coro=2, thread=1, trace=0, start=10 * MS, length=30 * MS, delay=25 * MS, victims=3)
    page.add("victim", hog=0, coro=0, trace=1, delay=10 * MS)
    page.add("victim", hog=0, coro=1, trace=2, delay=15 * MS)
    return page


def with_heat(page, columns=10, counts=None):
    """Delays of 0 to 1, 10 and 100 ms; counts: (column, row) -> how many."""
    page.head["heat"] = {"columns": columns, "column_ns": 100 * MS // columns, "edges_ns": [0, MS, 10 * MS, 100 * MS]}
    counts = counts or {(0, 0): 5, (4, 1): 1, (7, 2): 40, (8, 2): 2}
    for column in range(columns):
        for row in range(3):
            page.add("heat", count=counts.get((column, row), 0))
    return page
