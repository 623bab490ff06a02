# SPDX-License-Identifier: MIT
"""A made-up service on one thread, of which every table of the page has something.

Six requests come 10 ms apart. Each is parsed, waits for the database and is rendered; the third one's parsing takes 14 ms, for which
the ones behind it have to wait. Times are exact, so that a test can add them up.
"""
from page_data import PageData

MS = 10**6
STATE = {"running": 0, "parked": 2, "ready": 3}
SERVE = ("main", "serve", "handle")
STACKS = {"parse": SERVE + ("parse", "json_loads"), "slow": SERVE + ("parse", "json_loads", "unescape"), "query": SERVE + ("query", "recv", "[parked]"),
          "wake": SERVE + ("query", "[ready]"), "render": SERVE + ("render",), "start": SERVE + ("[ready]",)}
# The course of a request: state, milliseconds, stack. The third holds the thread; the fourth and fifth wait for it.
USUAL = [("running", 4, "parse"), ("parked", 6, "query"), ("ready", 1, "wake"), ("running", 2, "render")]
SLOW = [("running", 14, "slow"), ("parked", 6, "query"), ("ready", 1, "wake"), ("running", 2, "render")]
REQUESTS = [USUAL, USUAL, SLOW, [("ready", 8, "start")] + USUAL, [("ready", 3, "start")] + USUAL, USUAL]
SOURCE = ["def handle(request):", "    data = parse(request)", "    rows = query(data)", "    return render(rows)"]


def frames(stack, text):
    """Names as frames: (name, kind, file, line, module)."""
    return tuple((text(name), 2, "", 0, "") if name[0] == "[" else (text(name), 1, text("app.py"), 10 * i + 1, text("app")) for i, name in enumerate(stack))


def rich_page(text=lambda name: name, diff=False, **head):
    """text: what becomes of each name. diff: with a base side that is twice as fast."""
    data = PageData(title=text("shop"), command=text("greenprof flamegraph shop.greenprof -o shop.html"), duration_ns=100 * MS, tick_ns=MS,
                    start_realtime_ns="1795262400000000000", weight="wall", threads=[text("MainThread")], notes=[text("Nothing was folded.")],
                    traces=[f"{i + 1:032x}" for i in range(len(REQUESTS))], coroutines=[text("[thread MainThread]"), text("handle")],
                    counters=[["drops.ring_full", 7, text("samples that found the ring full"), True], ["spans.kept", 6, text("spans kept"), False]],
                    heat={"columns": 10, "column_ns": 10 * MS, "edges_ns": [0, MS, 4 * MS, 16 * MS]},
                    sources=[{"file": text("app.py"), "first_line": 21, "lines": [text(line) for line in SOURCE]}], **head)
    data.add("coro", id=0, name=0, flags=1, switches=12)
    for name in ("span.request", "span.db", "GET /slow", "SELECT"):
        data.name(text(name))
    starts = [add_request(data, number, steps, text) for number, steps in enumerate(REQUESTS)]
    add_hog(data, starts, text)
    add_endpoints(data, text)
    for column in range(10):
        for row in range(3):
            data.add("heat", count=(column + row) % 3 if column < 7 else 0)
    finish_head(data, diff, text)
    return data


def add_request(data, number, steps, text):
    """Rows, activities, spans and the critical path of a request; the moment that it started."""
    start, coro, label = number * 10 * MS, number + 1, number
    times = {state: sum(length for one, length, _ in steps if one == state) * MS for state in STATE}
    latency, slow = sum(times.values()), steps is SLOW
    longest = max(length for state, length, _ in steps if state == "running") * MS
    data.stack(*frames(("main", "serve", "spawn"), text))
    sums = {"cpu": times["running"], "ready": times["ready"], "parked": times["parked"]}
    data.add("coro", id=number + 10, name=1, entry=data.name(text("handle")) + 1, parent=1, spawn=frames(("main", "serve", "spawn"), text), flags=0,
             longest=longest, switches=3, **sums)
    data.add("label", coro=coro + 1, thread=1, trace=number + 1, request=number + 1)
    data.add("request", trace=number + 1, endpoint=1 if slow else 0, coro=coro + 1, start=start, latency=latency, longest=longest, coros=1,
             flags=4 if number == 5 else 0, **sums)
    data.add("span", request=number + 1, parent=0, coro=coro + 1, trace=number + 1, kind=data.name(text("span.request")),
             name=data.name(text("GET /slow" if slow else "GET /")), start=start, length=latency, flags=1 if number == 5 else 0, **sums)
    root, at = len(data.tables["span"]), start
    for state, length, name in steps:
        stack = frames(STACKS[name], text)
        for tick in range(at // MS, at // MS + length):
            data.row("row", stack, label=label, state=STATE[state], tick=tick + 1, weight=MS, samples=1, side=0)
        data.row("path", stack, label=label, state=STATE[state], tick=at // MS + 1, weight=length * MS, samples=length, side=0)
        data.add("segment", request=number, **{"from": at}, length=length * MS, coro=coro + 1, state=STATE[state], node=stack)
        if state == "running":
            wait = 6 * MS if name != "render" else 0
            data.add("activity", coro=coro, start=at, active=length * MS, wait=wait, slice=length * MS, ready=1, waker=1, thread=1, trace=number + 1,
                     flags=1 if name == "render" else 0)
        elif state == "parked":
            data.add("span", request=number + 1, parent=root, coro=coro + 1, trace=number + 1, kind=data.name(text("span.db")),
                     name=data.name(text("SELECT")), start=at, length=length * MS, parked=length * MS)
        at += length * MS
    return start


def add_hog(data, starts, text):
    delays = {3: 4 * MS, 4: 3 * MS}
    data.row("delay", frames(STACKS["slow"], text), label=2, state=0, tick=25, weight=sum(delays.values()), samples=2, side=0)
    data.add("hog", coro=3, thread=1, trace=3, start=starts[2], length=14 * MS, delay=sum(delays.values()), victims=len(delays))
    for number, delay in delays.items():
        data.add("victim", hog=0, coro=number + 1, trace=number + 1, delay=delay)


def add_endpoints(data, text):
    for number, name in enumerate(("GET /", "GET /slow")):
        times = sorted(one["latency"] for one in data.tables["request"] if one["endpoint"] == number)
        data.head["endpoints"].append({"text": text(name), "count": len(times), "failed": 1 - number, "total_ns": sum(times), "p50_ns": times[len(times) // 2],
                                       "p90_ns": times[-1], "p99_ns": times[-1], "max_ns": times[-1]})


def finish_head(data, diff, text):
    rows = data.tables["row"]
    if diff:
        for table in ("row", "delay", "path"):
            data.tables[table] += [{**row, "weight": row["weight"] // 2 * 2 if row["state"] else row["weight"] // 2, "side": 0} for row in data.tables[table]]
            for row in data.tables[table][:len(data.tables[table]) // 2]:
                row["side"] = 1
    for side in range(1 + diff):
        mine = [row for row in rows if row["side"] == side]
        data.head["sides"][side:] = [{"file": text("shop.greenprof" if side == diff else "before.greenprof"), "total_ns": sum(row["weight"] for row in mine),
                                      "samples": len(mine), "duration_ns": 100 * MS}]
    cpu = sum(row["weight"] for row in rows if row["state"] == 0)
    data.head["totals"] = {"cpu_ns": cpu, "sampled_ns": cpu, "error_ns": MS, "samples": len(rows), "total_ns": sum(row["weight"] for row in rows),
                           "basis": "exact", "exact_calls": True}
