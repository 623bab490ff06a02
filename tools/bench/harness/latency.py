# SPDX-License-Identifier: MIT
"""14. What a client sees: latencies of the demo service's requests, under `greenprof run` and without, in turns."""
import os
import random
import signal
import subprocess
import time

from . import table
from .rounds import Estimate

GENERATIONS, ROUNDS, REQUESTS, CLIENTS = 3, 12, 500, 2
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


def generation(bench, wrapper, rounds, shuffle):
    """percentile: [(without, with)], by rounds."""
    services = [Service(bench, "plain"), Service(bench, "profiled", wrapper)]
    found = {percent: [] for percent in PERCENTILES}
    for turn in range(rounds + 1):
        order = [0, 1]
        shuffle(order)
        took = {which: services[which].latencies_ms(REQUESTS) for which in order}
        if turn > 0:
            for percent, pairs in found.items():
                pairs.append(tuple(took[which][len(took[which]) * percent // 100] for which in (0, 1)))
    for service in services:
        service.close()
    return found


def run(bench):
    table.heading(f"14. latency: {REQUESTS} requests to the demo service by {CLIENTS} clients")
    if not os.path.exists(os.path.join(bench.build, "tools/demo-service/demo-load")):
        table.line("the demo service is not built here (-DGREENPROF_DEMO=ON)")
        return
    shuffle = random.Random(1).shuffle
    greenprof = os.path.join(bench.build, "tools/greenprof/greenprof")
    for words in VARIANTS:
        generations = [generation(bench, [greenprof, "run", "-q", "-o", bench.capture_path(), *words, "--"], bench.rounds(ROUNDS),
                                  shuffle) for _ in range(GENERATIONS)]
        for percent in PERCENTILES:
            label = " ".join(("greenprof run", *words)) + f", {percent}th percentile"
            pairs = [found[percent] for found in generations]
            table.figure(label + " alone", Estimate.of_generations([[alone for alone, _ in block] for block in pairs]), "ms")
            table.figure(label + " later by",
                         Estimate.of_generations([[100 * (under / alone - 1) for alone, under in block] for block in pairs]), "%",
                         bound=(BOUND, f"<= {BOUND:g} %"))
