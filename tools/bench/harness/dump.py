# SPDX-License-Identifier: MIT
"""The first dump of a service of 20 modules, and requests beside a burst of dumps."""
import os
import subprocess

from . import table
from .rounds import Estimate

MODULES, WAIT_MS = 20, 500
REQUESTS, DUMPS, THREADS = 1000, 1000, 32


def figures(bench, name, *arguments):
    done = subprocess.run([bench.program(name), *map(str, arguments)], capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def run(bench):
    table.heading("dumps: the first one, and many at once")
    output = os.path.join(bench.scratch, "dump.prof")
    place = os.path.dirname(bench.program("first_dump"))
    first = [figures(bench, "first_dump", place, MODULES, WAIT_MS, output) for _ in range(bench.rounds(15))]
    table.figure(f"first dump, {MODULES} modules", milliseconds(first, 0), "ms", bound=(20, "<= 20"))
    table.figure("first dump, CPU of all threads", milliseconds(first, 1), "ms of CPU")
    table.figure("second dump", milliseconds(first, 2), "ms")
    table.figure("CPU of the process before the first dump", milliseconds(first, 4), "ms of CPU", digits=1,
                 note=f"({4 * MODULES} of it the program's)")
    burst = [figures(bench, "dump_burst", bench.scratch, REQUESTS, DUMPS, THREADS) for _ in range(bench.rounds(10))]
    table.figure("requests alone, 99th percentile", milliseconds(burst, 1), "ms")
    table.figure(f"beside a burst of {DUMPS} dumps, 99th percentile", milliseconds(burst, 3), "ms")
    table.figure("the burst makes it later by", Estimate.of_values([(block[3] - block[1]) / 1e3 for block in burst]), "ms",
                 bound=(2, "<= 2"))
    table.figure("the burst takes", milliseconds(burst, 4), "ms", digits=0)


def milliseconds(blocks, index):
    return Estimate.of_values([block[index] / 1e3 for block in blocks])
