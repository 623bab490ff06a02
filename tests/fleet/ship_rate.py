#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""How many rows a second `greenprof ship` sends to a ClickHouse on this machine, by hand.

    GREENPROF=build/release/tools/greenprof/greenprof tests/fleet/ship_rate.py CAPTURE [GRAIN]

CAPTURE is a large one, as build/release/tools/bench/bench_make_samples makes; with a grain of 1s (the default here) nearly each
sample is a row.
"""
import os
import resource
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from clickhouse_server import ClickHouse  # noqa: E402
from shipping import GREENPROF, environment  # noqa: E402


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    with ClickHouse() as store, tempfile.TemporaryDirectory() as state:
        start, cpu = time.monotonic(), cpu_s()
        subprocess.run([GREENPROF, "ship", sys.argv[1], "--state", state, "--once", "--grain", *(sys.argv[2:3] or ["1s"]), "--to",
                        store.url()], env=environment(), check=True)
        took, cpu = time.monotonic() - start, cpu_s() - cpu
        rows = store.number("SELECT count() FROM greenprof_samples")
    print(f"{rows:,} rows; {rows / took:,.0f} a second by the clock, {rows / cpu:,.0f} a second of the shipper's CPU time")


main()
