# SPDX-License-Identifier: MIT
"""Programs of known truth for aarch64, under qemu-user: shares, exact accounts, names, read by the command of this machine.

The emulator delivers a signal between two blocks of translated code, after a system call mostly: where a function's
samples are inside of it, and what the rate is, says nothing. Functions are held to 5 points of the whole.
"""
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import check  # noqa: E402

ROOT, CORE = os.environ["ROOT"], os.environ["CORE"]
TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
POINTS = 0.05
COMPILER = ["aarch64-linux-gnu-gcc", "--sysroot=" + ROOT, "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g"]


def build(name, sources, *options):
    path = check.program(name)
    subprocess.run([*COMPILER, *options, *(os.path.join(TESTS, source) for source in sources), "-o", path], check=True)
    return path


class Emulated(check.Case):
    def profile(self, command, environment=None, emulator=(), **_):
        path = self.path("capture.greenprof")
        settings = {"LD_PRELOAD": CORE, "GREENPROF_OUTPUT": path, **(environment or {})}
        done = subprocess.run(["qemu-aarch64", "-L", ROOT, *emulator, *(word for name, value in settings.items() for word in ("-E", f"{name}={value}")),
                               *map(str, command)], capture_output=True, timeout=check.limit(), cwd=self.directory)
        return check.Run(self.directory, done, path)

    def check_shares(self, run):
        """Each function's share of all functions', by samples and by the accounts of coroutines."""
        inclusive, whole = run.folded("--symfs", ROOT).inclusive(), sum(run.truth.functions.values())
        sampled = sum(inclusive[name] for name in run.truth.functions)
        for name, seconds in run.truth.functions.items():
            self.near(f"share of {name}", inclusive[name] / sampled, seconds / whole, 0, POINTS, len(run.capture().samples))

    def check_accounts(self, run):
        rows = {row[-1].split()[-1]: row for row in run.ledger()}
        for name, (seconds, switches) in run.truth.coroutines.items():
            cpu, _, _, switched = rows["entry_" + name if "entry_" + name in rows else name][:4]
            self.near(f"exact CPU time of {name}", cpu, seconds, 0.05, 0.01)
            self.assertLessEqual(abs(switched - switches), 1, name)


class Ucontext(Emulated):
    def check(self, engine, emulator=()):
        build("coroutines", ["runtimes/shape_program.c", "runtimes/ucontext.c"], "-fomit-frame-pointer", "-DSHARES_STATUS=0")
        run = self.profile([check.program("coroutines"), 2, 200], {"GREENPROF_ENGINE": engine}, emulator)
        self.assertEqual(run.status, 0, run.stderr)
        self.check_health(run.capture())
        self.check_shares(run)
        self.check_accounts(run)
        return run

    def test_cpu_engine(self):
        run = self.check("cpu")
        info = check.greenprof("info", run.output).stdout.decode()
        self.assertIn("aarch64, 64 bits, little-endian", info)
        report = check.greenprof("report", run.output, "--symfs", ROOT).stdout.decode()
        self.assertRegex(report, r"/shares\.h:\d+\(work_alpha\)")
        self.assertRegex(report, r"/shape_program\.c:\d+\(entry_alpha\)")

    def test_monotonic_engine(self):
        self.check("monotonic")

    def test_large_pages(self):
        self.check("monotonic", ["-p", "65536"])

    def test_no_perf_events(self):
        """The default: an engine that the emulator has."""
        run = self.profile([build("coroutines", ["runtimes/shape_program.c", "runtimes/ucontext.c"], "-DSHARES_STATUS=0"), 0.3, 50])
        self.assertNotEqual(run.capture().engine, check.PERF)
        self.assertGreater(len(run.capture().samples), 0)


class Threads(Emulated):
    def test_migrating_coroutines(self):
        build("threads", ["integration/threads.c"], "-fomit-frame-pointer", "-pthread")
        run = self.profile([check.program("threads"), "migrate"], {"GREENPROF_ENGINE": "monotonic"})
        self.assertEqual(run.status, 0, run.stderr)
        self.check_shares(run)
        folded = run.folded("--by", "coroutine")
        for root in (root for root in folded.roots() if root.startswith("[coroutine")):
            number = root.rstrip("]").rpartition("_")[2]
            works = {frame for stack, _ in folded.under(root).stacks for frame in stack if frame.startswith("work_")}
            self.assertEqual(works, {f"work_moving_{number}"}, root)


class Machines(Emulated):
    MACHINE_AT, CHECKSUM_AT = 56, 120  # src/capture/format.h

    def test_another_machine_is_refused(self):
        run = self.profile([build("coroutines", ["runtimes/shape_program.c", "runtimes/ucontext.c"], "-DSHARES_STATUS=0"), 0.1, 10])
        with open(run.output, "r+b") as capture:
            capture.seek(self.MACHINE_AT)
            self.assertEqual(struct.unpack("<I", capture.read(4))[0], 183)
            capture.seek(self.MACHINE_AT)
            capture.write(struct.pack("<I", 243))
            capture.seek(self.CHECKSUM_AT)
            capture.write(bytes(8))  # none
        done = check.greenprof("report", run.output)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"is of a machine that this greenprof does not know", done.stderr)


if __name__ == "__main__":
    check.main()
