# SPDX-License-Identifier: MIT
"""The ring file of `run --flush`: what the threads of a killed program recorded is recovered, however long greenprof's
own threads had no CPU before. Here they are stopped, by ptrace(2), so that nothing is written any more."""
import ctypes
import os
import resource
import signal
import struct
import subprocess
import time
import unittest

import check
from capture import Capture

PTRACE_SEIZE, PTRACE_INTERRUPT, WAIT_ALL = 0x4206, 0x4207, 0x40000000  # linux/ptrace.h, linux/wait.h
END_EXIT, END_KILLED, SPAN_OPEN = 0, 8, 2                              # capture/format.h, model/span_kind.h
STARVED_SPANS = 150  # of 1 ms: 15 times what --flush 10 may lose; a ring has room for 380
PRESSED_SPANS = 2000 # three times what a ring has room for, with names that long
LONG_NAME = "n" * 230
SPANS_MAX = 1 << 20  # killed.c
FLUSH = ("--flush", "10")


def ptrace(request, tid):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    return 0 if libc.ptrace(request, tid, None, None) == 0 else ctypes.get_errno()


class Rings(check.Case):
    def start(self, *program, options=FLUSH):
        command = [check.GREENPROF, "run", "-q", *options, "-o", self.path("killed.greenprof"), "--", *program]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self.victim = self.process.pid

    def wait_for(self, happened):
        check.until(happened, process=self.process)

    def stop_own_threads(self, latest_only=False):
        """All but the program's only one; or the one that began last, which is the writer."""
        own = [int(name) for name in os.listdir(f"/proc/{self.victim}/task") if int(name) != self.victim]  # as they began
        self.assertGreater(len(own), 1, "collector and writer")
        for tid in own[-1:] if latest_only else own:
            error = ptrace(PTRACE_SEIZE, tid)
            if error:
                raise unittest.SkipTest(f"may not trace: {os.strerror(error)}")
            ptrace(PTRACE_INTERRUPT, tid)
            os.waitpid(tid, WAIT_ALL)
        return own[-1:] if latest_only else own

    def kill(self, stopped):
        os.kill(self.victim, signal.SIGKILL)
        for tid in stopped:
            os.waitpid(tid, WAIT_ALL)
        self.process.wait(check.LIMIT_SECONDS)

    def ended_spans(self):
        """As the program has noted them, in a file of its own."""
        if not os.path.exists(self.path("truth")):
            return 0
        with open(self.path("truth"), "rb") as file:
            data = file.read(8)
        return struct.unpack("<Q", data)[0] if len(data) == 8 else 0

    def ids(self, since_ns):
        """Of the spans that have ended since then."""
        with open(self.path("truth"), "rb") as file:
            data = file.read()
        count, = struct.unpack_from("<Q", data)
        ends_ns, ids = (struct.unpack_from(f"<{count}Q", data, 8 + at * SPANS_MAX * 8) for at in (0, 1))
        return [span_id for span_id, end_ns in zip(ids, ends_ns) if end_ns > since_ns]

    def is_recorded_in(self, rings):
        """Is a ring of a thread in the file by now? That of a thread that runs comes there by and by."""
        if not os.path.exists(rings):
            return False
        with open(rings, "rb") as file:
            data = file.read()
        first, owner, ring = (struct.unpack_from("<I", data, at)[0] for at in (12, 24, 28))
        return first > 0 and any(data[first + owner:first + owner + ring])

    def is_mapped(self, name):
        with open(f"/proc/{self.victim}/maps") as file:
            return name in file.read()

    def is_in(self, name, data):
        if not os.path.exists(self.path(name)):
            return False
        with open(self.path(name), "rb") as file:
            return data in file.read()

    def starve(self, spans, latest_only=False):
        """Stop greenprof's threads until so many spans have ended, then kill the program."""
        stopped = self.stop_own_threads(latest_only)
        start = self.ended_spans()
        self.wait_for(lambda: self.ended_spans() >= start + spans)
        self.kill(stopped)

    def check_each(self, capture, since_ns=0):
        """Each span that has ended since then is there, once."""
        there = {span.id for span in capture.spans if not span.flags & SPAN_OPEN}
        ended = self.ids(since_ns)
        self.assertGreater(len(ended), STARVED_SPANS)
        self.assertEqual(len({span.id for span in capture.spans}), len(capture.spans))
        self.assertEqual([i for i, span_id in enumerate(ended) if span_id not in there and (i > 0 or span_id != 0)], [],
                         f"lost, of {len(ended)}; the first may have begun before")

    def recover(self, name="killed.greenprof"):
        done = check.greenprof("recover", name, "-o", "out", cwd=self.directory)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        capture = Capture(self.path("out"))
        self.assertTrue(capture.whole)
        self.assertEqual(capture.end, END_KILLED)
        return capture, done.stdout.decode()

    def kill_starved(self):
        self.start(check.program("killed"), self.path("truth"))
        self.wait_for(lambda: self.ended_spans() > 100)
        self.starve(STARVED_SPANS)

    def test_starved(self):
        """Each span that has ended is there, once, and the samples beside them; without the file they are not."""
        self.kill_starved()
        rings, ended = self.path("killed.greenprof.rings"), self.ended_spans()
        self.assertEqual(os.stat(rings).st_mode & 0o777, 0o600)
        capture, said = self.recover()
        self.assertRegex(said, r"; of them \d+ samples and \d+ ended spans are from killed.greenprof.rings; next: ")
        spans = [span for span in capture.spans if not span.flags & SPAN_OPEN]
        self.assertGreaterEqual(len(spans), ended)
        self.assertLessEqual(len(spans), ended + 1)
        self.assertEqual({span.name for span in spans}, {"one"})
        self.assertEqual(len({span.id for span in capture.spans}), len(capture.spans))
        thread, = (thread for thread in capture.threads.values() if thread.tid == self.process.pid)
        for span in spans:
            self.assertLess(span.start_ns, span.end_ns)
            self.assertEqual((span.thread, span.coro), (thread.index, thread.coro))
        self.near("exact and sampled, s", capture.process_cpu_ns / 1e9, capture.sampled_ns / 1e9, 0.02, 0.02)
        self.near("ledger and sampled, s", sum(cpu_ns for cpu_ns, _ in capture.ledger.values()) / 1e9,
                  capture.sampled_ns / 1e9, 0.02, 0.02)
        self.assertEqual(len({(sample.time_ns, sample.thread) for sample in capture.samples}), len(capture.samples))
        with_rings = sorted(capture.samples)
        os.rename(rings, rings + ".aside")
        without, said = self.recover()
        self.assertNotIn("rings", said)
        self.assertLess(len([span for span in without.spans if not span.flags & SPAN_OPEN]), ended - STARVED_SPANS / 2)
        self.assertLess(len(without.samples), len(with_rings))
        self.assertEqual(set(stack for *_, stack, _ in without.samples) - set(stack for *_, stack, _ in with_rings), set())
        folded = check.greenprof("export", self.path("out"), "--format", "folded").stdout.decode()
        self.assertIn("main", folded)

    def test_pressed(self):
        """The writing thread alone has no processor, and the ring no room for what is not written: that is put aside."""
        self.start(check.program("killed"), self.path("truth"), LONG_NAME)
        self.wait_for(lambda: self.ended_spans() > 100)
        self.starve(PRESSED_SPANS, latest_only=True)
        capture, _ = self.recover()
        self.check_each(capture)
        self.assertEqual({span.name for span in capture.spans}, {LONG_NAME})

    def test_child(self):
        """A child by fork has a file of its own, beside its own capture."""
        self.start(check.program("killed"), self.path("truth"), "of_the_child", "fork")
        self.wait_for(lambda: self.ended_spans() > 0)
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            self.victim = int(file.read())
        name = f"killed.greenprof.{self.victim}"
        self.wait_for(lambda: self.is_in(name + ".rings", b"of_the_child"))
        self.assertFalse(self.is_in("killed.greenprof.rings", b"of_the_child"))
        self.starve(STARVED_SPANS)
        capture, said = self.recover(name)
        self.assertIn(f" ended spans are from {name}.rings", said)
        self.check_each(capture)
        self.assertEqual(self.process.wait(check.LIMIT_SECONDS), 0)
        self.assertNotIn("killed.greenprof.rings", os.listdir(self.directory))

    def start_later(self, *command):
        done = check.greenprof(*command)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        started_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        self.wait_for(lambda: self.is_recorded_in(self.path("later.greenprof.rings")))
        self.starve(STARVED_SPANS)
        capture, said = self.recover("later.greenprof")
        self.assertIn(" ended spans are from later.greenprof.rings", said)
        self.check_each(capture, started_ns)

    def test_started(self):
        """So has a recording that begins while the program runs."""
        self.start(check.program("killed"), self.path("truth"), options=("--stopped",))
        self.wait_for(lambda: self.ended_spans() > 100)
        self.start_later("start", self.victim, "--flush", "10", "-o", self.path("later.greenprof"))

    def test_started_again(self):
        """One after another; the file goes each time, and so does its memory."""
        self.start(check.program("killed"), self.path("truth"), options=("--stopped", *FLUSH))
        self.wait_for(lambda: self.ended_spans() > 100)
        for i in range(3):
            rings = self.path(f"{i}.greenprof.rings")
            self.assertEqual(check.greenprof("start", self.victim, "-o", self.path(f"{i}.greenprof")).returncode, 0)
            self.wait_for(lambda: self.is_recorded_in(rings))
            self.assertEqual(check.greenprof("stop", self.victim).returncode, 0)
            self.assertFalse(os.path.exists(rings))
            self.wait_for(lambda: not self.is_mapped(".rings"))  # a thread may be in the middle of a record
            capture = Capture(self.path(f"{i}.greenprof"))
            self.assertTrue(capture.whole)
            self.assertEqual(capture.drops - capture.counters["idle"], 0)  # idle: the timer's last signal, at stop
            self.assertGreater(len(capture.spans), 3)
        self.start_later("start", self.victim, "-o", self.path("later.greenprof"))

    def test_said(self):
        """Where it cannot be had, the command says so, and what it asked for is recorded."""
        self.start(check.program("killed"), self.path("truth"), options=("--stopped",))
        self.wait_for(lambda: self.ended_spans() > 100)
        with open(self.path("later.greenprof.rings"), "w") as file:
            file.write("somebody's")
        done = check.greenprof("start", self.victim, "--flush", "10", "-o", self.path("later.greenprof"))
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr.decode(), r"^greenprof: .*/later.greenprof.rings: is there, and no such file: a kill may take "
                                               r"more than --flush says\n$")
        self.assertEqual(check.greenprof("stop", self.victim).returncode, 0)
        self.assertTrue(Capture(self.path("later.greenprof")).whole)

    def test_attached(self):
        """And that of a process that was attached to."""
        self.process = subprocess.Popen([check.program("killed"), self.path("truth")])
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self.victim = self.process.pid
        self.wait_for(lambda: self.ended_spans() > 100)
        self.start_later("attach", self.victim, "--flush", "10", "-o", self.path("later.greenprof"))

    def test_damaged(self):
        """Whatever is in the file: the capture is recovered."""
        self.kill_starved()
        rings = self.path("killed.greenprof.rings")
        with open(rings, "rb") as file:
            data = file.read()
        whole = len(self.recover()[0].spans)
        used = max(i for i in range(0, len(data), 4096) if any(data[i:i + 4096]))
        for i, junk in enumerate((b"\0", b"\xff", b"\x08", b"\x02\0\0\0\x70\0\0\0")):
            for at in (24, 40, 4096, 140000, used - 4096, used):
                changed = bytearray(data)
                changed[at:at + 512] = (junk * 512)[:512]
                with open(rings, "wb") as file:
                    file.write(changed[:len(data) - i * 8])
                self.assertLessEqual(len(self.recover()[0].spans), whole + 1)
        with open(rings, "wb") as file:
            file.write(b"GRNRING\n")
        self.assertIn("; killed.greenprof.rings is left out: nothing that this greenprof reads; next: ", self.recover()[1])
        changed = bytearray(data)
        changed[16:20] = struct.pack("<I", self.process.pid + 1)
        with open(rings, "wb") as file:
            file.write(changed)
        self.assertIn("; killed.greenprof.rings is left out: of another recording; next: ", self.recover()[1])

    def test_python(self):
        """Frames of a language are known by those of before."""
        script = "def spin():\n    while True:\n        pass\nspin()"
        self.start("/usr/bin/python3", "-c", script)
        self.wait_for(lambda: os.path.exists(self.path("killed.greenprof")) and
                      os.path.getsize(self.path("killed.greenprof")) > 4000)
        cpu_clock = ~self.victim << 3 | 2  # its process' CPU clock, CPUCLOCK_SCHED
        self.wait_for(lambda: time.clock_gettime(cpu_clock) > 0.7)  # loading is little beside this
        stopped, stopped_at = self.stop_own_threads(), time.clock_gettime(cpu_clock)
        before = len(Capture(self.path("killed.greenprof")).samples)
        self.wait_for(lambda: time.clock_gettime(cpu_clock) > stopped_at + 0.3)
        self.kill(stopped)
        capture, _ = self.recover()
        self.at_least("samples", len(capture.samples), before + 20)
        folded = check.Folded(check.greenprof("export", self.path("out"), "--format", "folded").stdout.decode())
        total = sum(weight for _, weight in folded.stacks)
        self.at_least("share of spin()", sum(weight for stack, weight in folded.stacks if "spin" in " ".join(stack)) / total, 0.9)

    def test_ends(self):
        """A program that ends leaves no ring file, and that of a former one that was killed goes; so with children."""
        self.kill_starved()
        os.rename(self.path("killed.greenprof.rings"), self.path("capture.greenprof.rings"))
        run = self.profile(["parts", 0.4, "fork"], options=FLUSH)
        self.assertFalse([name for name in os.listdir(self.directory) if name.startswith("capture") and "rings" in name])
        captures = [Capture(path) for path in run.files().values()]
        self.assertEqual([capture.end for capture in captures], [END_EXIT] * 2)
        said = {name: int(count) for name, count, _ in run.truth.values["SPANS"]}
        for capture in captures:
            self.assertTrue(capture.whole)
            self.assertEqual(capture.counters["signals"], capture.counters["samples"] + capture.drops)
            name, = {span.name for span in capture.spans} & {"parent", "child"}
            self.assertEqual(sum(span.name == "short" for span in capture.spans), said[name])

    def test_refused(self):
        """What is no ring file stays; where there can be none, it is said, and the program runs."""
        with open(self.path("capture.greenprof.rings"), "w") as file:
            file.write("somebody's")
        run = self.profile(["parts", 0.1], options=FLUSH)
        self.assertIn("capture.greenprof.rings: is there, and no such file: a kill may take more than --flush says\n", run.stderr)
        with open(self.path("capture.greenprof.rings")) as file:
            self.assertEqual(file.read(), "somebody's")
        os.unlink(self.path("capture.greenprof.rings"))

        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, 8 << 20))

        done = check.greenprof("run", *FLUSH, "-o", self.path("limited.greenprof"), "--", check.program("parts"), "0.1",
                               preexec_fn=limited)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b".rings: File too large: a kill may take more than --flush says\n", done.stderr)
        self.assertFalse(os.path.exists(self.path("limited.greenprof.rings")))


if __name__ == "__main__":
    check.main()
