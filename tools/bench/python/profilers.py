# SPDX-License-Identifier: MIT
"""The profilers that are compared: start(), and stop(), which returns the cumulative seconds of each function by its name."""
import marshal
import os
import tempfile


def of_pstats(stats):
    """{function: cumulative seconds}; functions are known by their plain name."""
    found = {}
    for (_, _, name), row in stats.items():
        name = name.rsplit(".", 1)[-1]
        found[name] = found.get(name, 0) + row[3]
    return found


class Nothing:
    def __init__(self, program=None):
        pass

    def start(self):
        pass

    def run(self, call):
        """Do some of the work that is profiled."""
        call()

    def stop(self):
        return {}


class Greenprof(Nothing):
    def __init__(self, program, **options):
        import greenprof
        self.profile = greenprof.Profile(scope="process", **options)

    def start(self):
        self.profile.start()

    def stop(self):
        self.profile.stop()
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "p.prof")
            self.profile.dump(path, "pstats")
            with open(path, "rb") as file:
                return of_pstats(marshal.load(file))


class Standard(Nothing):
    """cProfile and profile, a new one for each piece of work: one of `profile` runs once only."""

    def __init__(self, program, module):
        import importlib
        self.make, self.found = importlib.import_module(module).Profile, {}

    def run(self, call):
        profile = self.make()
        profile.runcall(call)
        profile.create_stats()
        for name, seconds in of_pstats(profile.stats).items():
            self.found[name] = self.found.get(name, 0) + seconds

    def stop(self):
        return self.found


class OfEventlet(Nothing):
    def __init__(self, program):
        import eventlet.green.profile
        self.profile = eventlet.green.profile.Profile()

    def start(self):
        self.profile.start()

    def stop(self):
        self.profile.stop()
        self.profile.create_stats()
        return of_pstats(self.profile.stats)


class Yappi(Nothing):
    def __init__(self, program, clock):
        import yappi
        self.yappi = yappi
        yappi.set_clock_type(clock)
        if program in ("eventlet", "gevent"):
            yappi.set_context_backend("greenlet")

    def start(self):
        self.yappi.start()

    def stop(self):
        self.yappi.stop()
        found = {}
        for row in self.yappi.get_func_stats():
            name = row.name.rsplit(".", 1)[-1]
            found[name] = found.get(name, 0) + row.ttot
        return found


def options(kind, *arguments, **named):
    return lambda program: kind(program, *arguments, **named)


PROFILERS = {
    "nothing": Nothing,
    "greenprof 100": options(Greenprof, frequency=100),
    "greenprof 1000": options(Greenprof, frequency=1000),
    "greenprof 10000": options(Greenprof, frequency=10000),
    "greenprof exact": options(Greenprof, mode="exact"),
    "cProfile": options(Standard, "cProfile"),
    "yappi wall": options(Yappi, "wall"),
    "yappi cpu": options(Yappi, "cpu"),
    "eventlet.green.profile": OfEventlet,
    "profile": options(Standard, "profile"),
}
