# SPDX-License-Identifier: MIT
"""6. Captures: what writing one costs, and how long a large one takes to read."""
import os
import statistics
import struct
import subprocess
import tempfile
import threading

from . import table
from .rounds import Estimate

SAMPLES = 10_000_000
SCRIPT_PART = 50  # of the samples, as text for the script: all of them would be 20 GB
TURNS = 5
PROFILED = "/usr/bin/python3.11"  # the imagined frames are in its functions
STACKCOLLAPSE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "capture/stackcollapse.pl")
CHUNK, CHUNK_MAGIC, ZSTD = "<IHHIIQ", 0x4B435047, 2


class Cost:
    """Wall and CPU seconds and MiB of a command, over its turns."""

    def __init__(self):
        self.wall, self.cpu, self.peak = [], [], 0

    def add(self, wall, cpu, peak):
        self.wall.append(wall)
        self.cpu.append(cpu)
        self.peak = max(self.peak, peak)

    def __str__(self):
        return (f"{statistics.median(self.wall):7.2f} s, {statistics.median(self.cpu):6.2f} s of CPU, "
                f"{self.peak:4.0f} MiB at most")


def timed(command, stdin=None):
    """Run it in a process of its own that measures: wall, CPU, peak memory."""
    with tempfile.TemporaryFile() as out:
        code = ("import os, resource, subprocess, sys, time\n"
                "start = time.monotonic()\n"
                "status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
                "wall = time.monotonic() - start\n"
                "use = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
                "sys.stderr.write(f'\\n{wall} {use.ru_utime + use.ru_stime} {use.ru_maxrss / 1024} {status}')\n")
        with open(stdin or os.devnull, "rb") as source:
            subprocess.run(["python3", "-c", code, *command], stdin=source, stderr=out, check=True)
        out.seek(0)
        wall, cpu, peak, status = out.read().splitlines()[-1].split()
    if int(status) != 0:
        raise RuntimeError(f"{' '.join(command)}: status {int(status)}")
    return float(wall), float(cpu), float(peak)


def side_by_side(commands, turns):
    """{name: (command, stdin)}, one after the other in each turn. Returns {name: Cost}."""
    costs = {name: Cost() for name in commands}
    for _ in range(turns):
        for name, (command, stdin) in commands.items():
            costs[name].add(*timed(command, stdin))
    return costs


def write_symbols(path):
    notes = subprocess.run(["readelf", "-n", PROFILED], capture_output=True, text=True, check=True).stdout
    build_id = notes.split("Build ID:")[1].split()[0]
    names = subprocess.run(["nm", "-D", "--defined-only", PROFILED], capture_output=True, text=True, check=True).stdout
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{PROFILED} {build_id}\n")
        for line in names.splitlines():
            address, kind, name = line.split()
            if kind == "T":
                file.write(f"{address} {name}\n")


def make(bench, output, samples, symbols, *options):
    """Returns samples, stacks, coroutines, ns a sample, bytes."""
    done = subprocess.run([bench.program("make_samples"), output, str(samples), symbols, *options],
                          capture_output=True, text=True, check=True)
    words = done.stdout.split()
    return int(words[0]), int(words[1]), int(words[2]), float(words[3]), int(words[4])


def compressed_raw(bench, output, samples, symbols, raw):
    """A capture, and the same records uncompressed and unpacked, compressed by the zstd command as one stream."""
    fifo = raw + ".fifo"
    os.mkfifo(fifo)
    with open(raw, "wb") as file:
        def compress():
            with open(fifo, "rb") as source:
                subprocess.run(["zstd", "-1", "-q", "-c"], stdin=source, stdout=file, check=True)
        thread = threading.Thread(target=compress)
        thread.start()
        made = make(bench, output, samples, symbols, "--raw", fifo)
        thread.join()
    return made


def write_frames(capture, frames):
    """The zstd frames of a capture's chunks, one after the other: what zstdcat takes. Returns what they hold."""
    with open(capture, "rb") as file, open(frames, "wb") as out:
        file.seek(128)
        while len(header := file.read(24)) == 24:
            magic, _, flags, length, _, _ = struct.unpack(CHUNK, header)
            if magic != CHUNK_MAGIC:
                raise RuntimeError(f"{capture}: no chunk where one should be")
            payload = file.read(length + 7 & ~7)[:length]
            if flags & ZSTD:
                out.write(payload)


def run(bench):
    table.heading("6. captures: writing one, reading a large one")
    samples = int(SAMPLES * min(1.0, bench.effort))
    capture, raw, frames, symbols, part, script = (
        os.path.join(bench.scratch, name) for name in
        ("large.greenprof", "records.zst", "frames.zst", "symbols", "part.greenprof", "script.txt"))
    write_symbols(symbols)
    count, stacks, coroutines, ns, size = compressed_raw(bench, capture, samples, symbols, raw)
    table.line(f"{count} samples, {stacks} stacks, {coroutines} coroutines with as many traces")
    table.figure("packing, compressing and writing", Estimate.of_values([ns]), "ns of CPU a sample", digits=0)
    table.figure("file, all records", Estimate.of_values([size / count]), "bytes a sample", digits=1,
                 note=f"(zstd -1 of the bare records: {os.path.getsize(raw) / count:.1f})")
    write_frames(capture, frames)
    read(bench, capture, raw, frames)
    memory(bench, capture)
    make(bench, part, samples // SCRIPT_PART, symbols, "--script", script)
    fold(bench, part, script, samples // SCRIPT_PART)


def export(bench, capture):
    return [os.path.join(bench.build, "tools/greenprof/greenprof"), "export", capture, "--format", "folded"]


def read(bench, capture, raw, frames):
    ours, bare, own = "export --format folded", "zstdcat of the bare records", "zstdcat of the capture's own frames"
    costs = side_by_side({ours: (export(bench, capture), None), bare: (["zstdcat", raw], None),
                          own: (["zstdcat", frames], None)}, TURNS)
    for name, cost in costs.items():
        table.line(f"{name:<40} {cost}")
    for name, bound in ((bare, (1.2, "<= 1.2")), (own, None)):
        for what, of in (("time", "wall"), ("CPU", "cpu")):
            ratios = [a / b for a, b in zip(getattr(costs[ours], of), getattr(costs[name], of))]
            table.figure(f"{what}, beside {name}", Estimate.of_values(ratios), "times", bound=bound)
    table.figure("peak memory", Estimate.of_values([costs[ours].peak]), "MiB", digits=0, bound=(200 / 1.048576, "<= 200 MB"))


def memory(bench, capture):
    """Peak memory of each choice, and of each format that keeps coroutines or moments apart."""
    trace = f"{1:032x}"
    traces = subprocess.run([export(bench, capture)[0], "report", capture, "--by", "trace", "-n", "1"],
                            capture_output=True, text=True, check=True).stdout.split()
    trace = next((word for word in traces if len(word) == 32), trace)
    for options in (["--trace", trace], ["--coroutine", "17"], ["--thread", "worker-3"], ["--name", "."],
                    ["--from", "1", "--to", "-1"], ["--focus", "PyObject"], ["--ignore", "PyObject"], ["--clock", "wall"],
                    *(["--format", form] for form in ("pprof", "otlp", "json", "speedscope", "firefox", "chrome"))):
        wall, cpu, peak = timed(export(bench, capture) + [*options, "--output", "/dev/null"])
        label = " ".join(options)[:40]
        table.line(f"{label:<40} {peak:4.0f} MiB at most, {wall:6.2f} s, {cpu:6.2f} s of CPU")
        if options[0] == "--format":
            table.figure(label, Estimate.of_values([wall]), "s", bound=(10, "<= 10") if options[1] == "pprof" else None)


def fold(bench, part, script, samples):
    ours, theirs = "export --format folded", "stackcollapse.pl"
    costs = side_by_side({ours: (export(bench, part), None), theirs: (["perl", STACKCOLLAPSE], script)}, 3)
    for name, cost in costs.items():
        table.line(f"{name + f', {samples} samples':<40} {cost}")
    ratios = [b / a for a, b in zip(costs[ours].cpu, costs[theirs].cpu)]
    estimate = Estimate.of_values(ratios)
    table.figure("faster than the script, CPU", estimate, "times", digits=0,
                 note=">= 10: " + ("holds" if estimate.value >= 10 else "MISSED"))
