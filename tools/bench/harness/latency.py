# SPDX-License-Identifier: MIT
"""14. What a client sees: latencies of the demo service's requests, under `greenprof run` and without, in turns."""
import os
import random
import signal
import subprocess
import time

from . import table
from .rounds import Estimate

GENERATIONS, ROUNDS, REQUESTS, CLIENTS = 8, 4, 500, 2
PATHS = ("/report", "/search?q=fragile", "/mixed?delay=2", "/search?q=wrapping", "/health")
PERCENTILES = (50, 99)
BOUND = 2.0
VARIANTS = (("-F", "100"), ("--budget", "1%"), (), ("--clock", "wall", "-F", "100"))


class Service:
    def __init__(self, bench, name, wrapper=()):
        self.load = os.path.join(bench.build, "tools/demo-service/demo-load")
        port = os.path.join(bench.scratch, name + ".port")
        if os.path.exists(port):
            os.unlink(port)
        program = os.path.join(bench.build, "tools/demo-service/demo-service")
        self.process = subprocess.Popen([*wrapper, program, "--rows", "2000", "--port", "0", "--port-file", port], stderr=subprocess.DEVNULL)
        while not (os.path.exists(port) and os.path.getsize(port)):
            if self.process.poll() is not None:
                raise RuntimeError(f"demo-service ended with status {self.process.returncode}")
            time.sleep(0.01)
        with open(port, encoding="ascii") as file:
            self.port = file.read().strip()

    def latencies_ms(self, requests):
        """Of so many requests, in order of size."""
        asked = "".join(PATHS[i % len(PATHS)] + "\n" for i in range(requests))
        done = subprocess.run([self.load, self.port, str(CLIENTS)], input=asked, capture_output=True, text=True, check=True)
        rows = [line.split("\t") for line in done.stdout.splitlines()]
        if len(rows) != requests or any(row[1] != "200" for row in rows):
            raise RuntimeError("the demo service did not answer each request")
        return sorted(float(row[0]) * 1e3 for row in rows)

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait() != 0:
            raise RuntimeError(f"demo-service ended with status {self.process.returncode}")


def generation(bench, rounds, shuffle):
    """percentile: [[alone, alone again, of each variant]], by rounds."""
    greenprof = os.path.join(bench.build, "tools/greenprof/greenprof")
    services = [Service(bench, "alone"), Service(bench, "control")]
    services += [Service(bench, "profiled", [greenprof, "run", "-q", "-o", bench.capture_path(), *words, "--"]) for words in VARIANTS]
    found = {percent: [] for percent in PERCENTILES}
    for turn in range(rounds + 1):
        order = list(range(len(services)))
        shuffle(order)
        took = {which: services[which].latencies_ms(REQUESTS) for which in order}
        if turn > 0:
            for percent, rows in found.items():
                rows.append([took[which][len(took[which]) * percent // 100] for which in range(len(services))])
    for service in services:
        service.close()
    return found


def run(bench):
    table.heading(f"14. latency: {REQUESTS} requests to the demo service by {CLIENTS} clients")
    if not os.path.exists(os.path.join(bench.build, "tools/demo-service/demo-load")):
        table.line("the demo service is not built here (-DGREENPROF_DEMO=ON)")
        return
    shuffle = random.Random(1).shuffle
    generations = [generation(bench, bench.rounds(ROUNDS), shuffle) for _ in range(bench.rounds(GENERATIONS))]
    for percent in PERCENTILES:
        blocks = [found[percent] for found in generations]
        table.figure(f"alone, {percent}th percentile", Estimate.of_generations([[row[0] for row in rows] for rows in blocks]), "ms")
        for number, words in enumerate((None, *VARIANTS), 1):
            label = "alone again" if words is None else " ".join(("greenprof run", *words))
            later = Estimate.of_generations([[100 * (row[number] / row[0] - 1) for row in rows] for rows in blocks])
            bound = None if words is None else (BOUND, f"<= {BOUND:g} %")
            table.figure(f"{label}, {percent}th percentile later by", later, "%", bound=bound)
