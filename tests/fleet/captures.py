# SPDX-License-Identifier: MIT
"""Captures that are written bit by bit, and what is in them; and what a store has of them."""
import collections
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from helpers import make_capture  # noqa: E402, F401

MAKE_CAPTURE = os.environ["MAKE_CAPTURE"]
NOW_S = 1790000000  # 2026-09-21 13:33:20 UTC, the start of a grain of 10 s
STATES = 6


def labels_of(number):
    return {1: "[thread main]"}.get(number, f"worker_{number % 3}")


class Capture:
    """A capture of `chunks` chunks with samples, of a process with spans; truth: what must be found again."""

    def __init__(self, path, seed, chunks=120, pid=None, realtime_ns=NOW_S * 10**9, step_ns=50_000_000, metas=()):
        self.path, self.random = path, random.Random(seed)
        self.pid = pid or 1000 + seed
        self.samples = collections.Counter()  # (trace, coroutine, state, stack) -> ns
        self.count, self.requests, self.spans = 0, {}, 0
        lines = [f"header frequency=1000 pid={self.pid} realtime={realtime_ns}", "meta exe /usr/bin/service",
                 f"meta hostname host{seed % 2}", "meta cmdline service\\0--password=hunter2"]
        lines += [f"meta {key} {value}" for key, value in metas]
        lines += [f"function {n} {n * 10} function_{n} service.py" for n in range(1, 9)]
        lines.append("thread 1 77 1 0 main")
        lines.append("coro 1 0 - 0 0 1 1 main")
        self.stacks, self.traces, self.coros = {}, {0: "0" * 32}, [1]
        for number in range(chunks):
            self._define(lines, number)
            self._samples(lines, number, step_ns)
            if number % 5 == 4:
                self._span(lines, number, step_ns)
        lines += [f"counters {chunks * step_ns} 123456789 1000 {self.count} {self.count}", f"end {chunks * step_ns} 0"]
        whole = path + ".whole"
        make_capture(MAKE_CAPTURE, whole, "\n".join(lines) + "\n")
        with open(whole, "rb") as file:
            self.bytes = file.read()
        os.unlink(whole)
        self.written = 0

    def _define(self, lines, number):
        if number % 3 == 0:
            stack = number // 3 + 1
            frames = [self.random.randint(1, 8) for _ in range(self.random.randint(1, 6))]
            lines.append(f"stack {stack} 0 " + " ".join(f"function:{f}:{f * 10 + i}" for i, f in enumerate(frames)))
            self.stacks[stack] = tuple(f"function_{f}:{f * 10 + i}" for i, f in reversed(list(enumerate(frames))))
        if number % 4 == 0:
            coro, trace = number // 4 + 2, number // 4 + 1
            lines.append(f"coro {coro} 1 - 0 0 2 0 worker_{coro % 3}")
            self.coros.append(coro)
            self.traces[trace] = "%032x" % (self.pid << 64 | trace)
            lines.append(f"trace {trace} {self.traces[trace]}")

    def _samples(self, lines, number, step_ns):
        lines.append("chunk")
        for _ in range(self.random.randint(1, 40)):
            coro, stack = self.random.choice(self.coros), self.random.choice(list(self.stacks))
            trace, state = self.random.choice(list(self.traces)), self.random.randrange(STATES)
            weight = self.random.randint(1, 10**7)
            lines.append(f"sample {number * step_ns + self.random.randrange(step_ns)} {weight} {coro} 1 {stack} {trace} {state}")
            self.samples[self.traces[trace], labels_of(coro), state, self.stacks[stack]] += weight
            self.count += 1

    def _span(self, lines, number, step_ns):
        span, trace = self.pid * 10**6 + number, self.random.choice([t for t in self.traces if t])
        start, end = number * step_ns - step_ns // 2, number * step_ns + 1000
        lines.append(f"span {span} 0 1 1 {start} {end} {trace} 3 0 GET /servers")
        lines.append(f"span {span + 1} {span} 1 1 {start + 5} {end - 5} {trace} 6 0 SELECT")
        self.requests[span] = (self.traces[trace], end - start)
        self.spans += 2

    def write(self, count):
        """Append so many bytes, wherever that ends."""
        with open(self.path, "ab") as file:
            file.write(self.bytes[self.written:self.written + count])
        self.written = min(self.written + count, len(self.bytes))
        return self.written < len(self.bytes)

    def finish(self):
        self.write(len(self.bytes))
        return self


def truth_of(captures):
    samples = collections.Counter()
    for capture in captures:
        for (trace, coroutine, state, stack), ns in capture.samples.items():
            samples[capture.pid, trace, coroutine, state, stack] += ns
    return samples


def samples_in(store):
    """The same of what a store has."""
    stacks = {}
    for stack, frames in store.query(
            "SELECT stack, arrayStringConcat(arrayMap((n, l) -> concat(n, ':', toString(l)), names, lines), ' ') "
            "FROM greenprof_stacks"):
        stacks[stack] = tuple(frames.split())
    pids = dict(store.query("SELECT process, any(pid) FROM greenprof_processes GROUP BY process"))
    rows = store.query("SELECT process, lower(hex(trace)), coroutine, state, stack, sum(weight_ns) FROM greenprof_samples "
                       "WHERE measure = 0 GROUP BY process, trace, coroutine, state, stack")
    return collections.Counter({(int(pids[process]), trace, coroutine, int(state), stacks[stack]): int(ns)
                                for process, trace, coroutine, state, stack, ns in rows})


def check(test, store, captures):
    """Every nanosecond of the captures is in the store, once."""
    test.assertEqual(samples_in(store), truth_of(captures))
    test.assertEqual(store.number("SELECT sum(samples) FROM greenprof_samples WHERE measure = 0"),
                     sum(capture.count for capture in captures))
    found = {int(span): (trace, int(ns)) for span, trace, ns in
             store.query("SELECT span, lower(hex(trace)), latency_ns FROM greenprof_requests")}
    test.assertEqual(found, {span: request for capture in captures for span, request in capture.requests.items()})
    test.assertEqual(store.number("SELECT count() FROM greenprof_requests"), len(found))
    latencies = collections.Counter()
    for trace, ns in found.values():
        latencies[trace] += ns
    test.assertEqual({trace: int(ns) for trace, ns in store.query(
        "SELECT lower(hex(trace)), sum(weight_ns) FROM greenprof_samples WHERE measure = 1 GROUP BY trace")}, latencies)
    test.assertEqual(store.number("SELECT count() FROM greenprof_spans"), sum(capture.spans for capture in captures))
