# SPDX-License-Identifier: MIT
"""What `greenprof ship` costs a host: its CPU time while it follows 8 processes that are sampled at 100 Hz.

    GREENPROF=build/release/tools/greenprof/greenprof MAKE_CAPTURE=x /usr/bin/python3 tests/fleet/ship_cost.py [SECONDS] [PERIOD_S]

The processes want a quarter of a core each, in some forty stacks. The first two rounds are not counted: names are looked
up then. CPU time is read from /proc, so that a busy machine makes it no better.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from clickhouse_server import ClickHouse

GREENPROF = os.environ["GREENPROF"]
PROCESSES, ROUNDS_LEFT_OUT = 8, 2
WORK = """
import time
def down(depth, n):
    return down(depth - 1, n) if depth else sum(range(n))
end = time.monotonic() + %d
i = 0
while time.monotonic() < end:
    i += 1
    start = time.thread_time()
    while time.thread_time() - start < 0.0125:
        down(i %% 40, 2000)
    time.sleep(0.0375)
"""


def cpu_s(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e9


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    period = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    folder = tempfile.mkdtemp(prefix="greenprof-cost-")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GREENPROF_")}
    running = []
    try:
        with ClickHouse() as store:
            for number in range(PROCESSES):
                running.append(subprocess.Popen([GREENPROF, "run", "-q", "-F", "100", "-o", f"{folder}/{number}.greenprof", "--",
                                                 "/usr/bin/python3", "-c", WORK % (seconds + 60)], env=environment))
            ship = subprocess.Popen([GREENPROF, "ship", folder, "--state", folder + "/state", "--interval", f"{period}s",
                                     "--to", store.url()], env=environment)
            running.append(ship)
            time.sleep(ROUNDS_LEFT_OUT * period + period / 2)
            before, start = cpu_s(ship.pid), time.monotonic()
            rows = store.number("SELECT count() FROM greenprof_samples")
            time.sleep(seconds)
            used, took = cpu_s(ship.pid) - before, time.monotonic() - start
            rows = store.number("SELECT count() FROM greenprof_samples") - rows
            share = used / took
            print(f"{used:.3f} s of CPU in {took:.0f} s, {rows} rows: {100 * share:.3f} % of a core, "
                  f"{100 * share / os.cpu_count():.3f} % of this host ({os.cpu_count()} cores)")
    finally:
        for process in running:
            process.send_signal(signal.SIGKILL)
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
