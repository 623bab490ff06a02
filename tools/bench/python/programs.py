"""Programs to be profiled: run as `programs.py NAME PROFILER`; prints JSON: CPU seconds, and what the profiler found."""
import json
import sys
import time

SIZE = {"mixed": 700, "calls": 31, "eventlet": 12000, "gevent": 12000}


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def mixed(n):
    import json as text
    words = [f"word{i % 97}" for i in range(2000)]
    for _ in range(n):
        counts = {}
        for word in words:
            counts[word] = counts.get(word, 0) + 1
        sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        text.loads(text.dumps(counts))
        sum(i * i for i in range(20000))
        [str(i) for i in range(5000)]
        fib(12)


def calls(n):
    fib(n + 2)


def service(n, spawn, sleep, wait):
    def step(k):
        return sum(range(k % 50))

    def request(k):
        for i in range(4):
            step(k + i)
            sleep(0)

    for begin in range(0, n, 100):
        wait([spawn(request, k) for k in range(begin, begin + 100)])


def eventlet(n):
    import eventlet as e
    service(n, e.spawn, e.sleep, lambda threads: [thread.wait() for thread in threads])


def gevent(n):
    import gevent as g
    service(n, g.spawn, g.sleep, g.joinall)


def none(work):
    work()


def with_greenprof(frequency):
    def profiled(work):
        import greenprof
        with greenprof.Profile(scope="process", frequency=frequency):
            work()
    return profiled


def with_cprofile(work):
    import cProfile
    cProfile.Profile().runcall(work)


def with_yappi(clock):
    def profiled(work):
        import yappi
        yappi.set_clock_type(clock)
        if sys.argv[1] in ("eventlet", "gevent"):
            yappi.set_context_backend("greenlet")
        yappi.start()
        work()
        yappi.stop()
    return profiled


def with_eventlet(work):
    import eventlet.green.profile
    profile = eventlet.green.profile.Profile()
    profile.start()
    work()
    profile.stop()


def with_profile(work):
    import profile
    profile.Profile().runcall(work)


PROFILERS = {"none": none, "greenprof 100": with_greenprof(100), "greenprof 1000": with_greenprof(1000),
             "greenprof 10000": with_greenprof(10000), "cProfile": with_cprofile, "yappi wall": with_yappi("wall"),
             "yappi cpu": with_yappi("cpu"), "eventlet.green.profile": with_eventlet, "profile": with_profile}


def main():
    name, profiler = sys.argv[1:3]
    program = globals()[name]
    program(2)  # imports, caches
    begin = time.process_time()
    PROFILERS[profiler](lambda: program(SIZE[name]))
    print(json.dumps({"cpu": time.process_time() - begin}))


if __name__ == "__main__":
    main()
