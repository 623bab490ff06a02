# SPDX-License-Identifier: MIT
"""12. Spans into files, and requests while their spans go to a Redis: one that answers, a stopped one, and a missing one."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from . import table
from .rounds import Estimate

GENERATIONS = 5
REQUESTS = 500  # a block, one a millisecond
SPAN_ROUNDS = 100
MEDIAN, LATE, FAILED, SENT, LATE_CPU = range(5)


class Redis:
    """Debian's server on a port that was free."""

    def __init__(self, folder):
        for _ in range(5):  # another process may take the port in between
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
            self.process = subprocess.Popen(
                ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", tempfile.mkdtemp(dir=folder)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            if self.answers():
                return
        raise RuntimeError("redis-server does not start")

    def answers(self):
        deadline = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1) as peer:
                    peer.sendall(b"PING\r\n")
                    return peer.recv(16) == b"+PONG\r\n"
            except OSError:
                time.sleep(0.05)
        return False

    def stop(self):
        self.process.kill()
        self.process.wait()


def run(bench):
    table.heading("12. consumer: what spans cost where they are sent; latencies of requests by what becomes of their spans")
    into_files(bench)
    if shutil.which("redis-server") is None:
        table.line("redis-server is not installed: left out")
        return
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # not listening: refuses
        measure(bench, nobody.getsockname()[1])


def into_files(bench):
    worker = bench.plain("consumer_cost", "--url", "file://" + tempfile.mkdtemp(dir=bench.scratch))
    worker.block(SPAN_ROUNDS, 1)
    blocks = [worker.block(SPAN_ROUNDS, 1).figures[0] for _ in range(bench.rounds(40))]
    worker.close()
    table.figure("a span into the file consumer", Estimate.of_values(blocks), "ns", digits=1, bound=(200, "<= 200 ns"))


def measure(bench, closed_port):
    blocks = {}
    for _ in range(GENERATIONS):
        alive, hung = Redis(bench.scratch), Redis(bench.scratch)
        try:
            generation(bench, {"alive": alive.port, "stopped": hung.port, "refusing": closed_port}, hung, blocks)
        finally:
            alive.stop()
            hung.stop()
    show(blocks)


def generation(bench, ports, hung, blocks):
    """blocks: by name, a list a generation."""
    workers = {"none": bench.plain("consumer_cost")}
    for name, port in ports.items():
        spool = tempfile.mkdtemp(dir=bench.scratch)
        workers[name] = bench.plain("consumer_cost", "--url", f"redis://127.0.0.1:{port}",
                                    env={"GREENPROF_SPOOL": spool})
    for worker in workers.values():
        worker.block(REQUESTS)  # unmeasured; those that will hang are connected
    os.kill(hung.process.pid, signal.SIGSTOP)
    workers["stopped"].block(REQUESTS)
    for values in (blocks.setdefault(name, []) for name in workers):
        values.append([])
    order = list(workers)
    for _ in range(bench.rounds(10)):
        order.append(order.pop(0))
        for name in order:
            blocks[name][-1].append(workers[name].block(REQUESTS).figures)
    os.kill(hung.process.pid, signal.SIGCONT)
    for worker in workers.values():
        worker.close()


def beyond(blocks, name, other, figure):
    """Per cent, block by block."""
    return Estimate.of_generations([[100 * (mine[figure] / its[figure] - 1) for mine, its in zip(*pair)]
                                    for pair in zip(blocks[name], blocks[other])])


def show(blocks):
    for name, label in (("none", "nothing records spans"), ("alive", "Redis that answers"), ("stopped", "Redis, stopped"),
                        ("refusing", "nobody listens")):
        all_of_it = [figures for generation in blocks[name] for figures in generation]
        for figure, what in ((MEDIAN, "median"), (LATE, "99th percentile"), (LATE_CPU, "99th percentile of CPU times")):
            table.figure(f"{label}: {what}", Estimate.of_generations([[each[figure] for each in generation] for generation in blocks[name]]),
                         "us", digits=1)
            if name in ("stopped", "refusing"):
                table.figure("    beyond one that answers", beyond(blocks, name, "alive", figure), "%",
                             bound=(1, "<= 1 %") if figure != MEDIAN else None)
        failed = sum(figures[FAILED] for figures in all_of_it)
        sent = sum(generation[-1][SENT] - generation[0][SENT] for generation in blocks[name])
        table.line(f"  {len(all_of_it) * REQUESTS} requests, {failed:.0f} failed; the backend took {sent:.0f} spans meanwhile")
