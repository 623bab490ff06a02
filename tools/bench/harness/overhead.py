# SPDX-License-Identifier: MIT
"""3. The cost of profiling to a program that works like a service, and how much of its CPU time the profile reports."""
import os
import re
import subprocess

from . import gperftools, table
from .rounds import Comparison, Estimate, amount_for
from .sample import OVERHEAD_BOUND

BLOCK_MS = 100
SOLO_S = 3
FREQUENCIES = (100, 1000, 10000)
PROGRAM = "service_work"


def run(bench):
    table.heading("3. overhead: SQLite, JSON and zlib on coroutines; CPU of the program's thread")
    if not bench.has(PROGRAM):
        table.line("left out: it needs libsqlite3-dev, zlib1g-dev and libjansson-dev")
        return
    if gperftools.library() is None:
        table.line("without gperftools: it needs libgoogle-perftools-dev")
    for hz in FREQUENCIES:
        compare(bench, hz)
    table.heading("3b. the same program for some seconds at a stretch: how much of its true CPU time its profile has")
    for hz in FREQUENCIES:
        solo_greenprof(bench, hz)
        if gperftools.library() is not None:
            solo_gperftools(bench, hz)


def peer(bench, hz, path, probed=False, errors=None):
    preload = ([bench.probe()] if probed else []) + [gperftools.library()]
    return bench.plain(PROGRAM, preload=preload, env=gperftools.environment(path, hz), errors=errors)


def start(bench, hz):
    """Start the variants, whose last words are of no interest here."""
    quiet = {"errors": subprocess.DEVNULL}
    variants = {
        "nothing": (bench.plain(PROGRAM, **quiet), 0),
        "empty handler": (bench.empty(PROGRAM, hz, **quiet), 0),
        "greenprof run": (bench.run(PROGRAM, hz, probed=True, **quiet), 0),
    }
    if gperftools.library() is not None:
        path = os.path.join(bench.scratch, "peer.prof")
        variants["gperftools"] = (peer(bench, hz, path, probed=True, **quiet), 0)
    return variants


def compare(bench, hz):
    comparison = Comparison(lambda: start(bench, hz), BLOCK_MS, bench.rounds(75))
    for name in comparison.names[1:]:
        percent = comparison.extra_percent(name, "nothing")
        rate, inside = comparison.signals_per_second(name), comparison.figure(name, 0)
        table.figure(f"{hz} Hz: {name}", percent, "%", ratio=1 + percent.value / 100,
                     note=f"({rate:.0f} signals/s, {inside.value / 1e3:.1f} us each inside the handler)")
    bound = OVERHEAD_BOUND if hz == 1000 else None
    beyond = comparison.extra_percent("greenprof run", "empty handler")
    table.figure(f"{hz} Hz: greenprof beyond the empty handler", beyond, "%", bound=bound)
    inside = comparison.figure_beyond("greenprof run", "empty handler", 0)
    rate = comparison.signals_per_second("greenprof run")
    table.figure(f"{hz} Hz: the same, inside the handler only", inside.scaled(rate / 1e7), "%", bound=bound)


def solo(bench, worker):
    """Run a single long block. Returns the true CPU ns, the collector's share of it, and us inside a handler."""
    amount = amount_for(worker, 1000 * SOLO_S * min(1.0, bench.effort))
    before, block = worker.block(1), worker.block(amount)
    inside = worker.gathered()[0] / 1e3
    truth = int(re.search(r"own CPU ns: (\d+)", worker.close()).group(1))
    return truth, (block.process - before.process - block.cpu) / block.cpu, inside


def report_share(label, reported, truth, note):
    table.figure(label, Estimate(100 * reported / truth), "% of its time", digits=1, note=f"({note})")


def solo_greenprof(bench, hz):
    path = bench.capture_path()
    truth, own, inside = solo(bench, bench.run(PROGRAM, hz, probed=True, output=path, errors=subprocess.PIPE))
    folded = subprocess.run(
        [os.path.join(bench.build, "tools/greenprof/greenprof"), "export", path, "--format", "folded", "-o", "-"],
        check=True, stdout=subprocess.PIPE, text=True).stdout
    reported = sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()) * 1000
    size = os.path.getsize(path) / 1e6 / (truth / 1e9)
    report_share(f"{hz} Hz: greenprof", reported, truth,
                 f"{inside:.1f} us inside a handler, collector {100 * own:.2f} %, capture {size:.2f} MB per CPU second")


def solo_gperftools(bench, hz):
    path = os.path.join(bench.scratch, "peer.prof")
    truth, _, inside = solo(bench, peer(bench, hz, path, probed=True, errors=subprocess.PIPE))
    report_share(f"{hz} Hz: gperftools", gperftools.total_ns(path), truth, f"{inside:.1f} us inside a handler")
