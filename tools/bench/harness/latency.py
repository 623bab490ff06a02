# SPDX-License-Identifier: MIT
"""14. A client's view: latencies of the demo service's requests, under `greenprof run` and without, in turns.

Turns are short: what else the machine does lasts for seconds, and meets them all. A process' percentile is over all
its requests; its CPU time is that of all its threads, the collector too."""
import os
import random
import signal
import subprocess
import time

from . import table
from .progress import Progress
from .rounds import Estimate

GENERATIONS, TURNS, REQUESTS, CLIENTS = 12, 40, 50, 2
PATHS = ("/report", "/search?q=fragile", "/mixed?delay=2", "/search?q=wrapping", "/health")
PERCENTILES = (50, 99)
WARM_UP = 500
BOUND = 2.0
CPU = "CPU time of a request"
VARIANTS = (("-F", "100"), ("--budget", "1%"), ("-F", "1000"), (), ("--clock", "wall", "-F", "100"))
LABELS = ("alone again", *(" ".join(("greenprof run", *words)) for words in VARIANTS))  # beside one alone


class Service:
    def __init__(self, bench, name, wrapper=()):
        self.load = os.path.join(bench.build, "tools/demo-service/demo-load")
        port = os.path.join(bench.scratch, name + ".port")
        if os.path.exists(port):
            os.unlink(port)
        program = os.path.join(bench.build, "tools/demo-service/demo-service")
        self.process = subprocess.Popen([*wrapper, program, "--rows", "2000", "--port", "0", "--port-file", port],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (os.path.exists(port) and os.path.getsize(port)):
            if self.process.poll() is not None:
                raise RuntimeError(f"demo-service ended with status {self.process.returncode}")
            time.sleep(0.01)
        with open(port, encoding="ascii") as file:
            self.port = file.read().strip()

    def latencies_ms(self, requests):
        """Latencies of so many requests."""
        asked = "".join(PATHS[i % len(PATHS)] + "\n" for i in range(requests))
        done = subprocess.run([self.load, self.port, str(CLIENTS)], input=asked, capture_output=True, text=True, check=True)
        rows = [line.split("\t") for line in done.stdout.splitlines()]
        if len(rows) != requests or any(row[1] != "200" for row in rows):
            raise RuntimeError("the demo service did not answer each request")
        return [float(row[0]) * 1e3 for row in rows]

    def cpu_ms(self):
        """CPU time of all the service's threads: none ends while it answers."""
        spent = 0
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            with open(f"/proc/{self.process.pid}/task/{thread}/schedstat", encoding="ascii") as file:
                spent += int(file.read().split()[0])
        return spent / 1e6

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait() != 0:
            raise RuntimeError(f"demo-service ended with status {self.process.returncode}")


def generation(bench, turns, shuffle, progress):
    """figure: [alone, alone again, of each variant]."""
    greenprof = os.path.join(bench.build, "tools/greenprof/greenprof")
    services = [Service(bench, "alone"), Service(bench, "control")]
    services += [Service(bench, "profiled", [greenprof, "run", "-q", "-o", bench.capture_path(), *words, "--"]) for words in VARIANTS]
    for service, label in zip(services, ("alone", *LABELS)):
        service.latencies_ms(WARM_UP)
        progress.warm(label)
    took, before = [[] for _ in services], [service.cpu_ms() for service in services]
    order = list(range(len(services)))
    for _ in range(turns):
        shuffle(order)
        for which in order:
            took[which] += services[which].latencies_ms(REQUESTS)
    spent = [service.cpu_ms() - start for service, start in zip(services, before)]
    for service in services:
        service.close()
    found = {f"{percent}th percentile": [sorted(one)[len(one) * percent // 100] for one in took] for percent in PERCENTILES}
    found[CPU] = [ms / (turns * REQUESTS) for ms in spent]
    progress.found("% more than alone:", *(sentence(*figure) for figure in found.items()))
    return found


def sentence(name, row):
    others = "; ".join(f"{label.removeprefix('greenprof ')} {more_percent(row, number):+.1f}" for number, label in enumerate(LABELS, 1))
    return f"{name}, {row[0]:.2f} ms: {others}"


def more_percent(row, number):
    return 100 * (row[number] / row[0] - 1)


def run(bench):
    table.heading(f"14. latency: {CLIENTS} clients ask the demo service, {REQUESTS} requests a turn")
    if not os.path.exists(os.path.join(bench.build, "tools/demo-service/demo-load")):
        table.line("the demo service is not built here (-DGREENPROF_DEMO=ON)")
        return
    shuffle, rounds = random.Random(1).shuffle, bench.rounds(GENERATIONS)
    progress = Progress(rounds)
    generations = [generation(bench, bench.rounds(TURNS), shuffle, progress) for _ in range(rounds)]
    for name in generations[0]:
        rows = [found[name] for found in generations]
        table.figure(f"alone, {name}", Estimate.of_generations([[row[0]] for row in rows]), "ms")
        for number, label in enumerate(LABELS, 1):
            more = Estimate.of_generations([[more_percent(row, number)] for row in rows])
            bound = None if number == 1 or name == CPU else (BOUND, f"<= {BOUND:g} %")
            table.figure(f"{label}, {name} {'more' if name == CPU else 'later'} by", more, "%", bound=bound)
