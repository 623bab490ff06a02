# SPDX-License-Identifier: MIT
"""The programs that are profiled, in units of work of some milliseconds; KINDS are the functions that share each one's time."""
import json

ROUNDS_OF_SLEEP = 4
STEPS = {"request_a": 1, "request_b": 2, "request_c": 3, "request_d": 4}


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def tak(x, y, z):
    return z if y >= x else tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y))


class Mixed:
    """Loops, containers, text, a generator, some calls."""
    WORDS = [f"word{i % 97}" for i in range(2000)]

    def count_words(self):
        counts = {}
        for word in self.WORDS:
            counts[word] = counts.get(word, 0) + 1
        return sorted(counts.items(), key=lambda item: (-item[1], item[0]))

    def json_text(self):
        for _ in range(4):
            json.loads(json.dumps({word: i for i, word in enumerate(self.WORDS)}, indent=1))

    def squares(self):
        return sum(i * i for i in range(10000))

    def strings(self):
        return [str(i) for i in range(5000)]

    def calls(self):
        fib(11)

    KINDS = ["count_words", "json_text", "squares", "strings", "calls"]

    def unit(self, timed):
        for kind in self.KINDS:
            timed(kind, getattr(self, kind))


class Calls:
    """Nothing but calls."""
    KINDS = ["fibs", "taks", "shallow"]

    def fibs(self):
        fib(15)

    def taks(self):
        tak(9, 6, 3)

    def leaf(self, n):
        return n

    def shallow(self):
        for n in range(2000):
            self.leaf(n)

    def unit(self, timed):
        for kind in self.KINDS:
            timed(kind, getattr(self, kind))


class Service:
    """Green threads: 40 requests of four kinds at once, that compute and switch away four times each."""
    KINDS = list(STEPS)

    def __init__(self):
        self.kind_of = None  # greenlet -> kind, where it is wanted

    def leaf(self, n):
        return n * n

    def step(self):
        return sum(self.leaf(n) for n in range(200))

    def request(self, kind):
        if self.kind_of is not None:
            self.kind_of[self.current()] = kind
        for _ in range(ROUNDS_OF_SLEEP):
            for _ in range(STEPS[kind]):
                self.step()
            self.sleep(0)

    def request_a(self):
        self.request("request_a")

    def request_b(self):
        self.request("request_b")

    def request_c(self):
        self.request("request_c")

    def request_d(self):
        self.request("request_d")

    def unit(self, timed):
        requests = [self.request_a, self.request_b, self.request_c, self.request_d]
        self.wait([self.spawn(requests[i % 4]) for i in range(40)])


class Eventlet(Service):
    def __init__(self):
        import eventlet
        import greenlet
        super().__init__()
        self.spawn, self.sleep, self.current = eventlet.spawn, eventlet.sleep, greenlet.getcurrent
        self.wait = lambda threads: [thread.wait() for thread in threads]


class Gevent(Service):
    def __init__(self):
        import gevent
        import greenlet
        super().__init__()
        self.spawn, self.sleep, self.current, self.wait = gevent.spawn, gevent.sleep, greenlet.getcurrent, gevent.joinall


PROGRAMS = {"mixed": Mixed, "calls": Calls, "eventlet": Eventlet, "gevent": Gevent}
