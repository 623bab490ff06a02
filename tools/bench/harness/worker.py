# SPDX-License-Identifier: MIT
"""Benchmark processes: started once per variant, each does a block of work when it is told to (see worker.h)."""
import collections
import os
import subprocess

# wall, cpu, signals: of the block; process: CPU of all threads since the start. Times are in ns.
Block = collections.namedtuple("Block", "wall cpu process signals figures")


class Worker:
    def __init__(self, argv, env=None, errors=None):
        self.argv = [str(arg) for arg in argv]
        self.signals = 0
        self.process = subprocess.Popen(
            self.argv, env={**os.environ, **(env or {})}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=errors, text=True, bufsize=1)

    def block(self, amount, which=0):
        self.process.stdin.write(f"{amount} {which}\n")
        answer = self.process.stdout.readline().split()
        if len(answer) < 4:
            raise RuntimeError(f"{' '.join(self.argv)}: ended with status {self.process.wait()}")
        wall, cpu, process, signals = (int(word) for word in answer[:4])
        new_signals, self.signals = signals - self.signals, signals
        return Block(wall, cpu, process, new_signals, [float(word) for word in answer[4:]])

    def gathered(self):
        """Since this was last called: mean ns inside the handler, its error, two figures of the program's own."""
        return self.block(0).figures

    def close(self):
        """End it; returns what it said on standard error, where that was asked for."""
        _, errors = self.process.communicate()
        if self.process.returncode != 0:
            raise RuntimeError(f"{' '.join(self.argv)}: ended with status {self.process.returncode}")
        return errors or ""


class Bench:
    """Where things are, and how much to do."""

    def __init__(self, build, scratch, effort, cpu):
        self.build, self.scratch, self.effort, self.cpu = build, scratch, effort, cpu
        self.captures = 0

    def program(self, name):
        return os.path.join(self.build, "tools/bench", "bench_" + name)

    def has(self, name):
        return os.path.exists(self.program(name))

    def plain(self, name, *arguments, preload=(), env=None, errors=None):
        """A process of its own; it computes on one processor, other threads of it may use all."""
        env = dict(env or {})
        if preload:
            env["LD_PRELOAD"] = ":".join(preload)
        return Worker([self.program(name), "--pin", self.cpu, *arguments], env, errors)

    def bare(self, command, preload=()):
        """Any command that speaks as worker.h says, on one processor."""
        return Worker(["taskset", "-c", self.cpu, *command], {"LD_PRELOAD": ":".join(preload)} if preload else None)

    def run_command(self, command, hz):
        """The same under `greenprof run`."""
        greenprof = os.path.join(self.build, "tools/greenprof/greenprof")
        return Worker([greenprof, "run", "-F", hz, "-o", self.capture_path(), "--", *command])

    def under(self, command):
        """Any command line that speaks as worker.h says; its other words are of no interest."""
        return Worker(command, errors=subprocess.DEVNULL)

    def core(self):
        return os.path.join(self.build, "src/libgreenprof-core.so")

    def probe(self):
        return os.path.join(self.build, "tools/bench/libbench_probe.so")

    def counter_hooks(self):
        """To be preloaded: hooks that read the time-stamp counter only."""
        return os.path.join(self.build, "tools/bench/libbench_counter_hooks.so")

    def empty(self, name, hz, *arguments, engine=None, errors=None):
        """The program with an empty handler, which the probe times. engine: None is the first that works."""
        env = {"BENCH_EMPTY_HZ": str(hz), **({"BENCH_EMPTY_ENGINE": engine} if engine else {})}
        return self.plain(name, *arguments, preload=[self.probe()], env=env, errors=errors)

    def capture_path(self):
        self.captures += 1
        return os.path.join(self.scratch, f"{self.captures}.greenprof")

    def run(self, name, hz, *arguments, probed=False, exact=False, output=None, errors=None):
        """The program under `greenprof run`."""
        command = os.path.join(self.build, "tools/greenprof/greenprof")
        output = output or self.capture_path()
        return Worker([command, "run", *(["--exact"] if exact else []), "-F", hz, "-o", output, "--", self.program(name), "--pin", self.cpu,
                       *arguments], {"LD_PRELOAD": self.probe()} if probed else None, errors)

    def rounds(self, count):
        return max(5, int(count * self.effort))
