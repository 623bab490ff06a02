# SPDX-License-Identifier: MIT
"""What grow.c prints: resident memory, CPU time an event, and mappings, by tenths of its events."""
import collections
import os
import subprocess
import tempfile

Tenth = collections.namedtuple("Tenth", "rss_kib ns maps")


def tenths(text):
    rows = [line.split() for line in text.splitlines() if line.startswith("TENTH ")]
    if [int(row[1]) for row in rows] != list(range(1, 11)):
        raise AssertionError(text)
    return [Tenth(int(row[3]), float(row[5]), int(row[7])) for row in rows]


def second_half_kib(rows):
    """How much more memory the program has at its end than after the first half of its events."""
    return rows[9].rss_kib - rows[4].rss_kib


def cost_ratio(rows):
    """CPU time an event in the last three tenths, as a multiple of that in the second to the fourth."""
    return sum(row.ns for row in rows[7:]) / max(sum(row.ns for row in rows[1:4]), 1e-9)


def environment(**more):
    """As it is, without what is meant for a profiler around this test."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GREENPROF_")}
    return {**clean, **more}


def soak(command):
    """The tenths of a day of grow.c, and how many coroutines, traces, threads and loads there were."""
    done = subprocess.run(command, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
    text = done.stdout.decode()
    did, = (line for line in text.splitlines() if line.startswith("DID "))
    return tenths(text), [int(word) for word in did.split()[1:]]


def soak_recorded(greenprof, command, options):
    """The same under `greenprof run`, in parts of which the latest stay."""
    with tempfile.TemporaryDirectory() as directory:
        return soak([greenprof, "run", "-q", "--rotate", "64M", "--keep", "2", *options,
                     "-o", os.path.join(directory, "c.greenprof"), "--", *command])


def own_kib(rows, bare):
    """What greenprof adds to the resident set, by tenths; the program alone has no more later on."""
    return [row.rss_kib - bare[-1].rss_kib for row in rows]
