# SPDX-License-Identifier: MIT
"""Requests and hogs whose figures are known: what the tests of their views look at.

100 requests of GET /list: number i takes 10 ms + i * 100 us, but the last one, 60 ms, of which 40 ms are parked in query; all others
are parked there for 2 ms. 4 requests of PUT /item.
"""
from page_data import PageData

MS = 10**6
RUNNING, PREEMPTED, PARKED, READY, WAITING, BLOCKED = range(6)
HANDLE = ("main", "serve", "handle")
PARSE = HANDLE + ("parse",)
RENDER, QUERY = HANDLE + ("render",), HANDLE + ("query", "recv", "[parked]")
BEHIND, STUCK = HANDLE + ("[ready]", "[behind 12 crunch]"), HANDLE + ("log", "fsync", "[blocked]")
LIST, PUT = 0, 1


def list_parts(number):
    """(state, stack, ns) of a request of GET /list, in the order of time."""
    latency = 60 * MS if number == 99 else 10 * MS + number * MS // 10
    parked, ready = (40 * MS, 5 * MS) if number == 99 else (2 * MS, MS)
    return [(READY, BEHIND, ready), (RUNNING, RENDER, latency - parked - ready), (PARKED, QUERY, parked)]


def put_parts(number):
    return [(RUNNING, HANDLE, 5 * MS // 2), (RUNNING, PARSE, MS // 2), (BLOCKED, STUCK, (number + 1) * MS)]


def request_of(data, number, endpoint, start, parts, flags=0):
    coro = data.add("coro", id=100 + number, name=1, entry=data.name("serve") + 1)
    sums = {state: sum(ns for one, _, ns in parts if one == state) for state in range(6)}
    label = data.add("label", coro=coro + 1, trace=number + 1, request=number + 1)
    data.add("request", trace=number + 1, endpoint=endpoint, coro=coro + 1, start=start, latency=sum(sums.values()), cpu=2 * sums[RUNNING],
             ready=sums[READY], parked=3 * sums[PARKED], waiting=0, blocked=sums[BLOCKED], preempted=0, longest=sums[RUNNING],
             coros=2 if endpoint == LIST else 1, flags=flags)
    at = start
    for state, stack, ns in parts:
        data.row("path", stack, label=label, state=state, weight=ns, samples=1, tick=0, side=0)
        seen = stack[:-1] if stack == BEHIND else stack
        data.stack(*seen)
        data.add("segment", **{"request": number, "from": at, "length": ns, "coro": coro, "state": state, "node": seen})
        at += ns
    return at


def endpoint_of(text, latencies, failed):
    ranked = sorted(latencies)

    def percentile(percent):
        return ranked[-(-len(ranked) * percent // 100) - 1]
    return {"text": text, "count": len(ranked), "failed": failed, "total_ns": sum(ranked), "p50_ns": percentile(50), "p90_ns": percentile(90),
            "p99_ns": percentile(99), "max_ns": ranked[-1]}


def latency(parts):
    return sum(ns for _, _, ns in parts)


def add_spans(data):
    """Of request 99: a request, and in it a query in which there is a connect that failed."""
    kind, names = data.name("database"), [data.name(text) for text in ("GET /list", "SELECT", "connect")]
    shape = {"coro": 100, "trace": 100, "request": 100}
    first = data.add("span", **shape, parent=0, kind=data.name("rest_dispatch"), name=names[0], start=495 * MS, length=60 * MS, flags=0,
                     cpu=15 * MS, ready=5 * MS, parked=40 * MS, blocked=0)
    query = data.add("span", **shape, parent=first + 1, kind=kind, name=names[1], start=515 * MS, length=40 * MS, flags=0, cpu=0, ready=0,
                     parked=40 * MS, blocked=0)
    data.add("span", **shape, parent=query + 1, kind=kind, name=names[2], start=516 * MS, length=MS, flags=1, cpu=0, ready=0, parked=MS, blocked=0)


def requests_page(**head):
    latencies = [latency(list_parts(i)) for i in range(100)], [latency(put_parts(i)) for i in range(4)]
    data = PageData(title="service", weight="path", coroutines=["crunch", "worker"], traces=[f"{i + 1:032x}" for i in range(104)], threads=["one", "two"],
                    endpoints=[endpoint_of("GET /list", latencies[0], 0), endpoint_of("PUT /item", latencies[1], 1)], **head)
    data.stack(*BEHIND)
    for i in range(100):
        request_of(data, i, LIST, i * 5 * MS, list_parts(i))
    for i in range(4):
        request_of(data, 100 + i, PUT, 600 * MS + i * 50 * MS, put_parts(i), flags=[0, 1, 2, 4][i])
    add_spans(data)
    # Request 99 is ready in [495, 500) ms; 51 (151 worker) has its thread for 4 ms of that, 52 another one.
    for coro, start, active, wait, thread in ((51, 490, 9, 500, 1), (52, 490, 20, 500, 2), (99, 500, 55, 0, 1)):
        data.add("activity", coro=coro, start=start * MS, active=active * MS, wait=wait * MS, slice=active * MS, ready=0, waker=0, thread=thread, trace=0,
                 flags=0)
    return data


def hog_of(data, coro, trace, start, length, victims):
    """A long slice; victims: (coroutine, trace, delay)."""
    hog = data.add("hog", coro=coro, thread=1, trace=trace, start=start, length=length, delay=sum(one[2] for one in victims), victims=len(victims))
    for victim, of, delay in victims:
        data.add("victim", hog=hog, coro=victim, trace=of, delay=delay)


def activity_of(data, coro, start, active, wait, ready=0, waker=0, flags=0, trace=0):
    data.add("activity", coro=coro, start=start, active=active, wait=wait, slice=active, ready=ready, waker=waker, thread=1, trace=trace, flags=flags)


def blame_page(**head):
    """Coroutines: 0 is 12 crunch, 1 and 2 are workers, 3 is a reader that is still parked at the end, 4 was over at 100 ms."""
    data = PageData(title="service", coroutines=["crunch", "worker", "reader"], threads=["main"], traces=[f"{i + 1:032x}" for i in range(2)],
                    endpoints=[endpoint_of("GET /a", [200 * MS], 0), endpoint_of("GET /b", [200 * MS], 0)], duration_ns=1000 * MS, tick_ns=MS, **head)
    data.stack("main", "spawn_all")
    for number, (name, longest) in enumerate([(0, 30 * MS), (1, 4 * MS), (1, 5 * MS), (2, MS), (1, MS)]):
        data.add("coro", id=12 + number, name=name, entry=data.name(["crunch", "work", "work", "read_loop", "work"][number]) + 1, parent=0,
                 spawn=("main", "spawn_all"), flags=0, cpu=longest, longest=longest)
    label = data.add("label", coro=4)
    data.row("row", ("read_loop", "recv", "[parked]"), label=label, state=PARKED, weight=MS, samples=1, tick=0, side=0)
    for coro, name, first, last in ((0, "hash", 11, 24), (0, "copy", 24, 30), (0, "zip", 51, 80), (2, "wait_for_io", 101, 105)):
        label = data.add("label", coro=coro + 1)
        for tick in range(first, last):
            data.row("row", ("main", "work", name), label=label, state=RUNNING, weight=MS, samples=1, tick=tick)
    data.row("delay", ("main", "work", "sort"), label=label, state=RUNNING, weight=4 * MS, samples=1, tick=103)
    for number in range(2):
        data.add("request", trace=number + 1, endpoint=number, coro=number + 2, start=0, latency=200 * MS)
    hog_of(data, 0, 0, 10 * MS, 20 * MS, [(1, 1, 15 * MS), (2, 2, 5 * MS)])
    hog_of(data, 0, 0, 50 * MS, 30 * MS, [(1, 1, 30 * MS)])
    hog_of(data, 2, 2, 100 * MS, 5 * MS, [(1, 1, 4 * MS)])
    activity_of(data, 0, 10 * MS, 20 * MS, 20 * MS)
    activity_of(data, 1, 0, MS, 9 * MS, ready=6 * MS + 1, waker=1)       # parked 5 ms, ready 4 ms
    activity_of(data, 1, 10 * MS, MS, 19 * MS, ready=11 * MS + 1, waker=1)  # parked 10 ms, ready 9 ms
    activity_of(data, 2, 0, 2 * MS, 8 * MS, ready=10 * MS + 1, waker=2)  # parked 8 ms
    activity_of(data, 3, 5 * MS, 10 * MS, 985 * MS, flags=1)
    activity_of(data, 4, 90 * MS, 10 * MS, 0, flags=1)
    return data
