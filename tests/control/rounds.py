# SPDX-License-Identifier: MIT
"""Attach and detach in a row, on a program under load: nothing fails, and nothing is left behind.

    GREENPROF=... BUSY=... rounds.py --rounds 1000 pdns     # or nova, tarantool, oslo, fpm, threads

Prints what doc/attach.md's table has, and the mappings before and after. Exits 1 where a request failed, or a thread or
a descriptor is left, and 77 where the program is not installed."""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time

from rounds_programs import LIMIT_SECONDS, PROGRAMS

GREENPROF = os.environ["GREENPROF"]
LOADERS = 4
PAUSE_SECONDS = 0.004  # of each: what asks shares the machine with what is asked
BEGIN_SECONDS, SETTLE_SECONDS = 120, 20
SETTLED = 0.1  # of all rounds: what is allocated once is there by then


class Load:
    def __init__(self, program):
        self.program, self.is_over, self.may_ask = program, False, threading.Event()
        self.asked = self.failed = 0
        self.slowest, self.why, self.lock = 0.0, "", threading.Lock()
        self.threads = [threading.Thread(target=self.ask, daemon=True) for _ in range(LOADERS if program.request else 0)]

    def ask(self):
        while self.may_ask.wait() and not self.is_over:
            start, why = time.monotonic(), "a wrong answer"
            try:
                is_right = self.program.request()
            except OSError as error:
                is_right, why = False, repr(error)
            with self.lock:
                self.asked += 1
                self.slowest = max(self.slowest, time.monotonic() - start)
                if not is_right:
                    self.failed, self.why = self.failed + 1, why
            time.sleep(PAUSE_SECONDS)

    def end(self):
        self.is_over = True
        for thread in self.threads:
            thread.join()


def status(pid, key):
    with open(f"/proc/{pid}/status") as file:
        return int(next(line.split()[1] for line in file if line.startswith(key + ":")))


def resident_kb(pid):
    """Private memory: pages of files come and go."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Private_Dirty:"))


def has_left(pid):
    """Greenprof's descriptors in the process."""
    names = [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")
             if os.path.islink(f"/proc/{pid}/fd/{number}")]
    return [name for name in names if "greenprof" in name or "capture" in name]


def mappings(pid):
    with open(f"/proc/{pid}/maps") as file:
        return sum(1 for _ in file)


def wait_for(condition, seconds=SETTLE_SECONDS):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def begin(program, directory, command):
    # In a session of its own, as services are: the kernel shares the processors among sessions (autogroup).
    process = subprocess.Popen(command, cwd=directory, stdin=program.stdin, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, start_new_session=True)

    def works():
        try:
            return program.request is None or program.request()
        except OSError:
            return process.poll() is not None
    if not wait_for(works, BEGIN_SECONDS) or process.poll() is not None:
        sys.exit(f"{command[0]} did not begin")
    program.wait(process)
    return process


def one_round(pid, directory):
    """Seconds that the attachment takes."""
    environment = dict(os.environ, XDG_RUNTIME_DIR=directory)
    capture = os.path.join(directory, "capture")
    start = time.monotonic()
    for words in (["attach", str(pid), "-o", capture], ["detach", str(pid)]):
        subprocess.run([GREENPROF, *words], env=environment, cwd=directory, check=True, stdout=subprocess.DEVNULL)
        if words[0] == "attach":
            took = time.monotonic() - start
            time.sleep(0.002)
    return took


def count(pid):
    return {"threads": status(pid, "Threads"), "mappings": mappings(pid), "private": resident_kb(pid)}


def run_rounds(pid, rounds, seconds, directory):
    """The longest attachment, what there is after a tenth, and how many rounds there were."""
    end = time.monotonic() + seconds
    longest, settled, done = 0.0, None, 0
    while done < rounds and time.monotonic() < end:
        longest = max(longest, one_round(pid, directory))
        done += 1
        if settled is None and done >= rounds * SETTLED:
            settled = count(pid)
    return longest, settled, done


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=86400, help="no further round after them")
    parser.add_argument("program", choices=PROGRAMS)
    arguments = parser.parse_args()
    program = PROGRAMS[arguments.program]()
    with tempfile.TemporaryDirectory() as directory:
        command = program.command(directory)
        if command is None:
            print(f"{arguments.program} is not installed")
            sys.exit(77)
        process = begin(program, directory, command)
        load = Load(program)
        try:
            pid = program.target(process)
            before = count(pid)
            for thread in load.threads:
                thread.start()
            load.may_ask.set()
            start = time.monotonic()
            longest, settled, done = run_rounds(pid, arguments.rounds, arguments.seconds, directory)
            seconds = time.monotonic() - start
            load.end()
            is_gone = wait_for(lambda: not has_left(pid) and status(pid, "Threads") <= before["threads"])
            after, failed = count(pid), load.failed + program.failures(process)
            print(f"{arguments.program}: {done} rounds in {seconds:.0f} s, {load.asked} requests, {failed} wrong or failed "
                  f"{load.why}; longest attachment {longest:.2f} s, slowest request {load.slowest * 1000:.0f} ms; before "
                  f"{before}, after a tenth {settled}, at the end {after}, left {has_left(pid)}", flush=True)
            sys.exit(0 if failed == 0 and is_gone and process.poll() is None else 1)
        finally:
            process.terminate()
            try:
                process.wait(LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
