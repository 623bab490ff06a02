"""3. What profiling costs a program that does what services do, and how much of its CPU time the profile reports."""
import os
import re
import subprocess

from . import gperftools, table
from .rounds import Estimate, amount_for, extra_share, signals_per_second, take_turns
from .sample import OVERHEAD_BOUND
from .switch import close

BLOCK_MS = 30
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
    table.heading("3b. the same program for some seconds at a stretch: how much of its CPU time is in the profile")
    for hz in FREQUENCIES:
        solo_greenprof(bench, hz)
        if gperftools.library() is not None:
            solo_gperftools(bench, hz)


def peer(bench, hz, path, probed=False, errors=None):
    preload = ([bench.probe()] if probed else []) + [gperftools.library()]
    return bench.plain(PROGRAM, preload=preload, env=gperftools.environment(path, hz), errors=errors)


def quiet(worker_of, *arguments, **options):
    """What programs say at their end is of no interest here."""
    return worker_of(*arguments, errors=subprocess.DEVNULL, **options), 0


def compare(bench, hz):
    variants = {
        "nothing": quiet(bench.plain, PROGRAM),
        "empty handler": quiet(bench.empty, PROGRAM, hz),
        "greenprof run": quiet(bench.run, PROGRAM, hz, probed=True),
    }
    if gperftools.library() is not None:
        path = os.path.join(bench.scratch, "peer.prof")
        variants["gperftools"] = quiet(peer, bench, hz, path, probed=True)
    amount = amount_for(variants["nothing"][0], BLOCK_MS)
    blocks = take_turns(variants, amount, bench.rounds(150))
    inside = {name: Estimate.of(*worker.block(0).figures[0:2]) for name, (worker, _) in variants.items()}
    close(variants)
    for name in list(variants)[1:]:
        share = extra_share(blocks[name], blocks["nothing"]).scaled(100)
        rate = signals_per_second(blocks[name])
        table.figure(f"{hz} Hz: {name}", share, "%", ratio=1 + share.value / 100,
                     note=f"({rate:.0f} signals/s, {inside[name].value / 1e3:.2f} us each inside the handler)")
    beyond = extra_share(blocks["greenprof run"], blocks["empty handler"]).scaled(100)
    bound = OVERHEAD_BOUND if hz == 1000 else None
    table.figure("    greenprof beyond the empty handler", beyond, "%", bound=bound)
    handler = inside["greenprof run"].minus(inside["empty handler"])
    table.figure("    the same, inside the handler only", handler.scaled(rate_of(blocks) / 1e7), "%", bound=bound)


def rate_of(blocks):
    return signals_per_second(blocks["greenprof run"])


def solo(bench, worker):
    amount = amount_for(worker, 1000 * SOLO_S * min(1.0, bench.effort))
    before, block = worker.block(1), worker.block(amount)
    truth = int(re.search(r"own CPU ns: (\d+)", worker.close()).group(1))
    return truth, block, (block.process - before.process - block.cpu) / block.cpu


def report_share(label, reported, truth, note=""):
    table.figure(label, Estimate.of(100 * reported / truth), "% of the true CPU time", digits=1, note=note)


def solo_greenprof(bench, hz):
    path = bench.capture_path()
    truth, _, own = solo(bench, bench.run(PROGRAM, hz, output=path, errors=subprocess.PIPE))
    folded = subprocess.run(
        [os.path.join(bench.build, "tools/greenprof/greenprof"), "export", path, "--format", "folded", "-o", "-"],
        check=True, stdout=subprocess.PIPE, text=True).stdout
    reported = sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()) * 1000
    size = os.path.getsize(path) / 1e6 / (truth / 1e9)
    report_share(f"{hz} Hz: greenprof", reported, truth,
                 f"(collector {100 * own:.2f} % of it; capture {size:.2f} MB per CPU second)")


def solo_gperftools(bench, hz):
    path = os.path.join(bench.scratch, "peer.prof")
    truth, _, _ = solo(bench, peer(bench, hz, path, errors=subprocess.PIPE))
    report_share(f"{hz} Hz: gperftools", gperftools.total_ns(path), truth)
