# SPDX-License-Identifier: MIT
"""A scheduler of coroutines that only exists on paper: random requests run on it, and it says what each coroutine did in each
microsecond, as a capture and as a reference that critical paths are checked against."""
import collections
import random

UNIT = 1000  # ns: reports show whole microseconds
LOOP = 1  # the number of the thread's own stack
CLEARED = 1000  # units: a child that ended so long before its spawner went on may be its reason to wait
SLACK = 5000  # units: how long after its work for a request a coroutine may hand the result over


class Coroutine:
    def __init__(self, number, parent, now, trace, name, body):
        self.number, self.parent, self.birth, self.trace, self.name, self.body = number, parent, now, trace, name, body
        self.start = self.left = self.ready = now  # of the activity, of the wait; from when on it can run
        self.waker, self.remaining, self.over = 0, 0, False
        self.units = {}  # time: (state, trace)
        self.waits = []  # (left, ready, end, waker)
        self.slices = set()  # times at which a slice began


class Schedule:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.now, self.coroutines, self.queue, self.timers = 10, [], collections.deque(), []
        self.lines, self.requests, self.traces = [], [], 0
        self.jobs, self.idle = collections.deque(), collections.deque()
        self.current = [None] * self.random.choice((1, 1, 2))

    # Actions of coroutines: these take no time.

    def spawn(self, name, body, by=None):
        trace = by.trace if by else 0
        child = Coroutine(len(self.coroutines) + LOOP + 1, by.number if by else LOOP, self.now, trace, name, None)
        child.body = body(child)
        self.coroutines.append(child)
        self.queue.append(child)
        return child

    def wake(self, coroutine, waker):
        if coroutine.ready is None:
            coroutine.ready, coroutine.waker = self.now, waker
            self.queue.append(coroutine)

    def set_trace(self, coroutine, trace, thread=1):
        if self.now > coroutine.start:  # the activity is cut
            self.put(coroutine, self.now, self.now, 0, 0)
            coroutine.start = self.now
        coroutine.trace = trace

    def put(self, coroutine, left, end, ready, waker, is_open=0):
        self.lines.append(f"activity {coroutine.number} {coroutine.start * UNIT} {left * UNIT} {end * UNIT} "
                          f"{(left - coroutine.start) * UNIT} {ready * UNIT} {waker} {coroutine.trace} 1 {is_open}")

    # Bodies: they yield ("run", N), ("yield",) or ("park",).

    def run(self):
        yield "run", self.random.randint(1, 9)

    def sleep(self, me):
        woken = []
        self.timers.append((self.now + self.random.randint(1, 20), me, woken))
        while not woken:
            yield ("park",)

    def work(self, me, depth):
        """A part of a request: runs, sleeps, yields, spawns and waits for its children, has jobs done."""
        for _ in range(self.random.randint(1, 4)):
            yield from self.run()
            what = self.random.randrange(5)
            if what == 0:
                yield from self.sleep(me)
            elif what == 1:
                yield ("yield",)
            elif what == 2 and depth < 3:
                left = [self.random.randint(1, 3)]
                for _ in range(left[0]):
                    self.spawn("child", lambda child: self.child(child, me, left, depth + 1), me)
                while left[0] > 0:
                    yield ("park",)
            elif what == 3:
                done = []
                self.jobs.append((me, me.trace, done))
                if self.idle:
                    self.wake(self.idle.popleft(), me.number)
                while not done:
                    yield ("park",)
        yield from self.run()

    def child(self, me, parent, left, depth):
        yield from self.work(me, depth)
        left[0] -= 1
        if left[0] == 0:
            self.wake(parent, me.number)
        if self.random.random() < 0.3:  # it may be there when the request is over
            yield from self.sleep(me)
            yield from self.run()

    def worker(self, me):
        while True:
            yield from self.run()
            if not self.jobs:
                self.idle.append(me)
                while me in self.idle:
                    yield ("park",)
                continue
            owner, trace, done = self.jobs.popleft()
            self.set_trace(me, trace)
            yield from self.run()
            if self.random.random() < 0.3:
                yield from self.sleep(me)
                yield from self.run()
            clears_first = self.random.random() < 0.5
            if clears_first:
                self.set_trace(me, 0)
                if self.random.random() < 0.5:
                    yield from self.run()
            done.append(True)
            self.wake(owner, me.number)
            if not clears_first:
                self.set_trace(me, 0)

    def handler(self, me):
        """Several requests one after the other, with pauses."""
        for _ in range(self.random.randint(1, 3)):
            yield from self.run()
            self.traces += 1
            trace, begin = self.traces, self.now
            self.set_trace(me, trace)
            yield from self.work(me, 0)
            arrived = max(0, begin - self.random.choice((0, 0, 5, 50)))
            self.requests.append((trace, me, arrived, self.now))
            self.set_trace(me, 0)
            if self.random.random() < 0.5:
                yield from self.sleep(me)

    # The scheduler.

    def dispatch(self, thread):
        me = self.queue.popleft()
        for at in range(me.left, self.now):
            me.units[at] = ("parked" if at < me.ready else "ready", me.trace)
        me.waits.append((me.left, me.ready, self.now, me.waker))
        if self.now > me.left:
            self.put(me, me.left, self.now, me.ready, me.waker)
            me.start = self.now
        self.current[thread] = me
        self.advance(thread)

    def advance(self, thread):
        me = self.current[thread]
        what = next(me.body, ("end",))
        if what[0] == "run":
            me.remaining = what[1]
            return
        self.current[thread] = None
        me.left, me.ready, me.waker = self.now, None, 0
        if what[0] == "end":
            me.over = True
            self.put(me, self.now, self.now, 0, 0, 1)
        elif what[0] == "yield":
            me.ready, me.waker = self.now, me.number
            self.queue.append(me)

    def step(self):
        for timer in [timer for timer in self.timers if timer[0] <= self.now]:
            self.timers.remove(timer)
            timer[2].append(True)
            self.wake(timer[1], self.random.choice((0, LOOP)))
        for thread, _ in enumerate(self.current):
            while self.current[thread] is None and self.queue:
                self.dispatch(thread)
        self.now += 1
        for thread, me in enumerate(self.current):
            if me is None:
                continue
            me.units[self.now - 1] = ("running", me.trace)
            me.remaining -= 1
            if me.remaining == 0:
                self.advance(thread)

    def play(self):
        for _ in range(self.random.randint(1, 2)):
            self.spawn("worker", self.worker)
        handlers = [self.spawn("handler", self.handler) for _ in range(self.random.randint(1, 4))]
        while not all(handler.over for handler in handlers):
            self.step()
        for me in self.coroutines:
            runs = me in self.current
            if not me.over:
                self.put(me, self.now if runs else me.left, self.now, 0 if runs else me.ready or 0, me.waker, 1)
        return self

    def script(self):
        head = ["header frequency=1000", "meta exe /opt/app/server", "module 1 /opt/app/server 0102 0x1000 0x9000 0x0",
                "thread 1 10 1 0 main", "coro 1 0 - 0x1000 0x1000 1 1 -"]
        head += [f"coro {one.number} {one.parent} 1:40 0x3000 0x1000 2 0 {one.name}" for one in self.coroutines]
        head += [f"trace {trace + 1} {trace + 1:032x}" for trace in range(self.traces)]
        tail = [f"span {number + 1} 0 {me.number} {me.number} {start * UNIT} {end * UNIT} {trace} 3 0 GET /"
                for number, (trace, me, start, end) in enumerate(self.requests)]
        self.random.shuffle(self.lines)
        return "\n".join([*head, *self.lines, *tail, f"end {self.now * UNIT} 0"])

    # The reference: microsecond by microsecond.

    def works(self, me, at, trace):
        return me is not None and me.units.get(at, ("", 0))[1] == trace

    def hands_over(self, me, at, trace):
        """Did it run right before `at`, and since it was at work for the trace?"""
        for back in range(at - 1, max(-1, at - 1 - SLACK), -1):
            state, own = me.units.get(back, ("", 0))
            if own == trace:
                return state == "running" or back < at - 1
            if state != "running":
                return False
        return False

    def child_ended(self, me, trace, since, upto):
        """The child that ended last, of those that were at work for the trace."""
        ended = [one for one in self.coroutines if one.over and one.parent == me.number and since < one.left <= upto
                 and any(own == trace for _, own in one.units.values())]
        return max(ended, key=lambda one: (one.left, one.number), default=None)

    def back(self, path, me, trace, lo, hi, is_base, above):
        at, handing = hi, not is_base
        while at > lo:
            state, own = me.units.get(at - 1, ("none", 0))
            handing = handing and own != trace and state == "running"
            if not is_base and own != trace and not handing:
                return at
            if is_base and state == "none" or is_base and own not in (0, trace):
                state = "ready"  # not there yet, or at another request
            elif state == "parked":
                wait = next(wait for wait in me.waits if wait[0] <= at - 1 < wait[2])
                waker = next((one for one in self.coroutines if one.number == wait[3]), None)
                since = max(lo, wait[0])
                if waker is not None and waker is not me and waker not in above and self.hands_over(waker, wait[1], trace):
                    at = self.back(path, waker, trace, since, at, False, [*above, me])
                else:
                    child = self.child_ended(me, trace, max(since, at - CLEARED), at)
                    if child is not None and child not in above and self.hands_over(child, child.left, trace):
                        for _ in range(child.left, at):
                            path.append((me.number, "parked"))
                        at = self.back(path, child, trace, since, child.left, False, [*above, me])
                for _ in range(since, at):
                    path.append((me.number, "parked"))
                at = since
                continue
            path.append((me.number, state))
            at -= 1
        return at

    def path(self, request):
        """[(from, to, coroutine, state)] of a request, in the order of time."""
        trace, me, start, end = request
        path, segments = [], []
        self.back(path, me, trace, start, end, True, [])
        for at, (number, state) in zip(range(start, end), reversed(path)):
            if segments and segments[-1][2:] == (number, state):
                segments[-1] = (segments[-1][0], at + 1, number, state)
            else:
                segments.append((at, at + 1, number, state))
        return segments
