#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A fleet's flame graph over 100 million rows of samples, by hand: how long it takes, and what rows take on disk.

    GREENPROF=build/release/tools/greenprof/greenprof MAKE_CAPTURE=build/release/tests/capture/make_capture \\
        tests/fleet/many_rows.py [--rows 100000000] [--runs 5] [--keep FOLDER]

The tables are those that `greenprof ship` makes; the rows are made by the store: 500 hosts with 20 services in two versions, 100
rows a host and grain of 10 s, 5,000 stacks, every second row with a trace. FOLDER keeps the store for the next time.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from captures import Capture  # noqa: E402
from clickhouse_server import ClickHouse  # noqa: E402
from shipping import GREENPROF, environment  # noqa: E402

HOSTS, SERVICES, A_GRAIN, STACKS, START_S = 500, 20, 50_000, 5_000, 1_790_000_000
AT_ONCE = 5_000_000

ROWS = f"""INSERT INTO greenprof_samples (day, time, tenant, service, version, host, process, endpoint, trace, coroutine, measure, state, stack,
    weight_ns, samples, batch, squares_ns2)
SELECT toDate(time), toDateTime({START_S} + 10 * intDiv(number, {A_GRAIN})) AS time, 'acme',
    concat('service-', toString(one % {SERVICES})), if(number % {2 * A_GRAIN} < {A_GRAIN}, '41', '42'), concat('host-', toString(one)),
    intHash64(one), concat('GET /', toString(chance % 10)),
    if(number % 2 = 0, toFixedString('', 16), toFixedString(unhex(substring(hex(SHA1(toString(intDiv(number, 16)))), 1, 32)), 16)),
    concat('worker_', toString(chance % 7)), 0, if(chance % 3 = 0, 0, chance % 6),
    intHash64(one % {SERVICES} * 1000 + intDiv(chance, 64) % {STACKS // SERVICES}),
    10000000 + intDiv(chance, 1024) % 1000000, 1 + (chance % 16 = 0) AS taken, intHash64(intDiv(number, 100)),
    if(taken > 1, 1e14, 0)
FROM (SELECT number, intHash64(number) AS chance, toUInt64(intDiv(number % {A_GRAIN}, {A_GRAIN // HOSTS})) AS one FROM numbers({{}}, {{}}))"""

NAMES = f"""INSERT INTO greenprof_stacks (tenant, stack, names, files, lines, modules, addresses, builds, inlined)
SELECT 'acme', intHash64(service * 1000 + of) AS stack,
    arrayMap(d -> concat('function_', toString(intHash32(service * 100000 + intDiv(of, bitShiftLeft(toUInt64(1), 14 - d))) % 40000)), range(15)) AS names,
    arrayMap(d -> 'service.py', names), arrayMap(d -> toUInt32(1), names), arrayMap(d -> '', names), arrayMap(d -> toUInt64(0), names),
    arrayMap(d -> '', names), arrayMap(d -> toUInt8(0), names)
FROM (SELECT intDiv(number, {STACKS // SERVICES}) AS service, number % {STACKS // SERVICES} AS of FROM numbers({STACKS}))"""


def make_tables(store, folder):
    captures = os.path.join(folder, "captures")
    os.makedirs(captures)
    Capture(os.path.join(captures, "1.greenprof"), 1).finish()
    subprocess.run([GREENPROF, "ship", captures, "--state", os.path.join(folder, "state"), "--once", "--to", store.url()], check=True,
                   env=environment(), stdout=subprocess.DEVNULL)


def fill(store, rows):
    with tempfile.TemporaryDirectory() as folder:
        make_tables(store, folder)
    store.query(NAMES)
    for first in range(0, rows, AT_ONCE):
        store.query(ROWS.format(first, min(AT_ONCE, rows - first)))
        print(f"\r{first + AT_ONCE:,} rows", end="", file=sys.stderr)
    print(file=sys.stderr)
    while store.number("SELECT count() FROM system.merges"):
        time.sleep(1)


def ask(store, *arguments, parameters=""):
    """Returns seconds by the clock, and what came out."""
    start = time.monotonic()
    done = subprocess.run([GREENPROF, *arguments[:1], store.url("?tenant=acme" + parameters), *arguments[1:]], check=True, env=environment(),
                          stdin=subprocess.DEVNULL, capture_output=True)
    return time.monotonic() - start, done.stdout


def measure(store, runs):
    rows, on_disk = map(int, store.query("SELECT sum(rows), sum(bytes_on_disk) FROM system.parts WHERE active AND table = 'greenprof_samples'")[0])
    print(f"{rows:,} rows, {on_disk / rows:.1f} bytes a row on disk")
    truth = store.number("SELECT sum(weight_ns) FROM greenprof_samples WHERE tenant = 'acme' AND measure = 0 AND state = 0")
    answer = json.loads(ask(store, "export", "--format", "json", "--clock", "cpu")[1])
    print("sums are those of the rows:", answer["total_ns"] == truth, answer["total_ns"], truth)
    graph = os.path.join(store.folder, "graph.svg")
    for what, arguments, parameters in (("a flame graph of all", ("flamegraph", "--clock", "wall", "-o", graph), ""),
                                        ("of the CPU", ("flamegraph", "--clock", "cpu", "-o", graph), ""),
                                        ("of one service", ("flamegraph", "--clock", "wall", "-o", graph), "&service=service-3"),
                                        ("report --by service", ("report", "--by", "service"), ""),
                                        ("report --by coroutine", ("report", "--by", "coroutine"), "")):
        took = sorted(ask(store, *arguments, parameters=parameters)[0] for _ in range(runs))
        print(f"{what:28} {took[len(took) // 2]:6.2f} s   ({took[0]:.2f} to {took[-1]:.2f})", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--keep")
    options = parser.parse_args()
    is_new = not options.keep or not os.path.exists(options.keep)
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    store = ClickHouse(folder=options.keep)
    try:
        store.start()
        if is_new:
            fill(store, options.rows)
        measure(store, options.runs)
    finally:
        store.kill()
        if not options.keep:
            store.close()


if __name__ == "__main__":
    main()
