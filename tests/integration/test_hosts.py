# SPDX-License-Identifier: MIT
"""What hosts do: exceptions, plugins that come and go, longjmp, deep stacks, signals of their own, waits."""
import os
import subprocess
import sys
import unittest

import check
from capture import TRUNCATED

NAMESPACES = """
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)

def call(name, *arguments):
    ctypes.set_errno(0)
    print(name, getattr(libc, name)(*arguments), ctypes.get_errno(), flush=True)

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

def before():
    burn(0.3)

def after():
    burn(0.3)

before()
if len(sys.argv) > 1:  # a thread of the program's own
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    call("unshare", 0x10000000)
    os._exit(0)
call("unshare", 0x10000000 | 0x00020000)  # CLONE_NEWUSER | CLONE_NEWNS
own = os.open("/proc/self/ns/mnt", os.O_RDONLY)
call("setns", own, 0x00020000)
call("setns", own, 0)
call("unshare", 0x04000000)  # CLONE_NEWUTS, which takes no single thread
call("unshare", 0x10000000)  # refused, alone, too
call("setns", -1, 0)
after()
"""


# A root below another one, with a /proc of a process id namespace of its own: setns() leads out of both.
ROOM = """mount --rbind / "$1" && mount -t proc proc "$1/proc" && shift && exec chroot "$0" "$@" """

CHROOT = """
import os, sys, time

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

def before():
    burn(0.2)

def after():
    burn(0.3)

before()
os.chroot(sys.argv[1])
after()
"""


def in_namespaces():
    """Where nothing is shared, nothing has to be made private; below another root it cannot be."""
    with open("/proc/self/mountinfo") as mounts:
        private = [] if "shared:" in mounts.read() else ["--propagation", "unchanged"]
    return ["unshare", "--mount", *private, "--pid", "--fork", "--kill-child"]


def one_processor():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


class Namespaces(check.Case):
    """Calls that the kernel refuses to a process with a second thread: greenprof's own are out of the way meanwhile."""
    def test_as_alone(self):
        for arguments in ((), ("threads",)):
            alone = subprocess.run([sys.executable, "-c", NAMESPACES, *arguments], capture_output=True,
                                   timeout=check.LIMIT_SECONDS)
            self.assertEqual(alone.returncode, 0, alone.stderr)
            for engine in ("cpu", "monotonic", "perf"):
                with self.subTest(engine, arguments=arguments):
                    self.check_run(engine, arguments, alone.stdout.decode())

    def check_run(self, engine, arguments, expected):
        output = os.path.join(self.directory, f"{engine}.greenprof")
        done = check.greenprof("run", "-o", output, "--engine", engine, "--", sys.executable, "-c", NAMESPACES, *arguments)
        if engine == "perf" and done.returncode == 1:
            return  # it cannot be had here
        self.assertEqual((done.returncode, done.stdout.decode()), (0, expected), done.stderr)
        shown = check.greenprof("export", output, "--format", "folded").stdout.decode()
        counters = check.greenprof("info", output).stdout.decode()
        for function in ("before",) if arguments else ("before", "after"):
            self.assertRegex(shown, rf"\b{function}\b", f"{done.stderr.decode()}{counters}")


    def need_root(self):
        os.mkdir(self.path("root"))
        check.need(os.geteuid() == 0, "another root takes root")

    def check_after(self, output, done):
        """Samples go on on one processor, where the sampler's thread and the program never run at a time."""
        self.assertEqual(done.returncode, 0, done.stderr)
        folded = check.Folded(check.greenprof("export", output, "--format", "folded").stdout.decode())
        info = check.greenprof("info", output).stdout.decode()
        self.near("after", folded.inclusive()["after"], 0.3, 0.15)
        self.assertIn(" 1 thread,", info)

    def test_out_of_another_root(self):
        self.need_root()
        inside = [*in_namespaces(), "sh", "-c", ROOM, self.path("root"), self.path("root")]
        check.need(subprocess.run([*inside, "true"], capture_output=True).returncode == 0, "no namespaces here")
        for engine in ("cpu", "monotonic"):
            with self.subTest(engine):
                output = self.path(f"{engine}.greenprof")
                done = subprocess.run([*inside, check.GREENPROF, "run", "-o", output, "--engine", engine, "--", sys.executable,
                                       "-c", NAMESPACES], capture_output=True, timeout=check.LIMIT_SECONDS,
                                      preexec_fn=one_processor)
                self.check_after(output, done)

    def test_without_proc(self):
        self.need_root()
        for engine in ("cpu", "monotonic"):
            with self.subTest(engine):
                output = self.path(f"{engine}.greenprof")
                done = check.greenprof("run", "-o", output, "--engine", engine, "--", sys.executable, "-c", CHROOT,
                                       self.path("root"), preexec_fn=one_processor)
                self.check_after(output, done)


class Exceptions(check.Case):
    def test_storm(self):
        run = self.profile(["exceptions", 2.0])
        folded, capture = run.folded(), run.capture()
        self.check_functions(folded, run.truth, len(capture.samples), tolerance=0.12)
        self.check_total(folded, run.truth)
        print("exceptions thrown:", run.truth.values["THROWN"][0][0])
        self.at_most("incomplete walks", capture.counters["incomplete"], 0.01 * len(capture.samples))
        coroutines = [row for row in run.ledger() if not row[6].startswith("[thread")]
        self.assertEqual(len(coroutines), 4)

    def test_storm_at_a_high_rate(self):
        run = self.profile(["exceptions", 1.5], hz=20000)
        self.check_total(run.folded(), run.truth, tolerance=0.02)


class Plugins(check.Case):
    def test_loaded_in_turn(self):
        run = self.profile(["plugins", check.PROGRAMS, 400])
        folded, capture = run.folded(), run.capture()
        print("at the same address:", run.truth.values["SAME_PLACE"][0][0], "of 400")
        self.check_functions(folded, run.truth, len(capture.samples))
        self.check_total(folded, run.truth)
        self.at_most("incomplete walks", capture.counters["incomplete"], 0.01 * len(capture.samples))

    @unittest.skipUnless(os.path.exists(os.path.join(check.PROGRAMS, "deepbind")), "sanitizers refuse RTLD_DEEPBIND")
    def test_bound_past(self):
        """By RTLD_DEEPBIND: its signals are its own, and the thread on which it blocks them is sampled."""
        run = self.profile(["deepbind", check.PROGRAMS])
        self.assertEqual(run.truth.values["HANDLED"], [["3"]])
        self.check_functions(run.folded(), run.truth, len(run.capture().samples))

    def test_churn(self):
        """Loading and unloading as fast as it goes, at the highest rate: nothing may crash or hang."""
        run = self.profile(["plugins", check.PROGRAMS, 6000, "quick"], hz=20000)
        self.check_total(run.folded(), run.truth)


class SplitStacks(check.Case):
    @unittest.skipUnless(os.path.exists(os.path.join(check.PROGRAMS, "split_stacks")), "no -fsplit-stack here")
    def test_segments_are_their_threads(self):
        run = self.profile(["split_stacks"])
        capture = run.capture()
        self.check_functions(run.folded(), run.truth, len(capture.samples))
        self.check_total(run.folded(), run.truth)
        self.at_most("incomplete walks", capture.counters["incomplete"], 0.01 * len(capture.samples))
        self.assertEqual(capture.counters.get("outside", 0), 0)


class ControlFlow(check.Case):
    def check(self, *command, hz=1000, **options):
        run = self.profile(["control_flow", *command], hz=hz, **options)
        self.check_total(run.folded(), run.truth)
        if run.truth.functions:
            self.check_functions(run.folded(), run.truth, len(run.capture().samples))
        self.at_most("incomplete walks", run.capture().counters["incomplete"], 0.01 * len(run.capture().samples))
        return run

    def test_longjmp(self):
        self.check("longjmp")

    def test_alloca(self):
        self.check("alloca")

    def test_deep_recursion(self):
        run = self.profile(["control_flow", "deep", 3000])
        capture, folded = run.capture(), run.folded()
        self.check_total(folded, run.truth)
        # The leaf is the only innermost frame kept: work_bottom() itself, or the clock it reads.
        self.near("below main's dive", folded.inclusive()["dive"], run.truth.functions["work_bottom"], 0.05)
        # A sample on the way down, or up again, has dive() itself as its leaf.
        deep = [stack for stack, _ in folded.stacks if "dive" in stack and stack[-1] != "dive"]
        self.assertTrue(deep)
        for stack in deep:  # leaf and root end are there, and it says that something is missing
            self.assertEqual(stack.count("[truncated]"), 1)
            self.assertIn("main", stack[:6])
            self.assertGreater(stack.count("dive"), 100)
        flagged = sum(1 for sample in capture.samples if capture.stack_flags.get(sample.stack, 0) & TRUNCATED)
        self.assertEqual(flagged, capture.counters["truncated"])
        self.near("truncated samples", flagged / len(capture.samples), 1 / 1.3, 0.1)

    def test_depth_within_the_limit(self):
        run = self.check("deep", 400)
        self.assertEqual(run.capture().counters["truncated"], 0)
        deep = [stack for stack, _ in run.folded().stacks if "work_bottom" in stack]
        self.assertTrue(all(stack.count("dive") == 401 for stack in deep), [stack.count("dive") for stack in deep])

    def test_vector_registers(self):
        self.check("vectors", hz=10000)

    def test_errno(self):
        self.check("errno", hz=10000)


class Signals(check.Case):
    def check(self, what, hz=1000, options=()):
        run = self.profile(["host_signals", what], hz=hz, options=options)
        capture, folded = run.capture(), run.folded()
        self.check_functions(folded, run.truth, len(capture.samples))
        self.check_total(folded, run.truth)
        return run, folded

    def test_handlers(self):
        run, folded = self.check("handlers")
        stacks = [stack for stack, _ in folded.stacks if "work_handler" in stack]
        whole = [stack for stack in stacks if "main" in stack and any(check.bare(frame) == "storm" for frame in stack)]
        self.assertEqual(len(whole), len(stacks), "walks end at the signal frame")

    def test_own_alternate_stack(self):
        run, folded = self.check("altstack")
        self.assertGreater(folded.inclusive()["work_handler"], 0)

    def test_small_alternate_stack(self):
        """The program's handler leaves a sample no room: none is taken in it, its time is [signal blocked], and the
        program goes on, also where two of the kernel's frames do not fit. Before: killed."""
        raw = ["numbered_altstack", "raw_altstack"] if os.uname().machine == "x86_64" else []
        for what in ["small_altstack", "tight_altstack"] + raw:
            for engine in "perf", "cpu", "monotonic":
                run = self.profile(["host_signals", what], hz=1000, options=["--engine", engine])
                own = run.folded().own()
                self.near(f"{what}, {engine}", own["[signal blocked]"], run.truth.functions["work_handler"], 0.1,
                          0.01 if engine == "perf" else 0.04)

    def test_smallest_alternate_stack(self):
        """A thread is sampled, whatever alternate stack it has. Before: no sample of it."""
        self.check("smallest_altstack")

    def test_held_back(self):
        """Time while the signal is blocked without the C library is nobody's, not of where it comes through. Before:
        all of it was."""
        kinds = ["held_mask", "held_old", "held_wait", "held_handler", "held_context"]
        for what in kinds + (["held_action"] if os.uname().machine == "x86_64" else []):
            for engine in "perf", "cpu", "monotonic":
                run = self.profile(["host_signals", what], hz=1000, options=["--engine", engine])
                held, own = float(run.truth.values["HELD"][0][0]), run.folded().own()
                # Ten blocks: the others know when a signal was due to within a tick of the kernel's, 4 ms; the CPU clock's
                # counts only ticks that meet the thread, on a busy machine every second or third.
                slack = {"perf": 0.01, "monotonic": 10 * 0.004, "cpu": 10 * 0.010}[engine]
                self.near(f"{what}, {engine}: blocked", own["[signal blocked]"], held, 0.1, slack)
                self.at_most(f"{what}, {engine}: let through", run.folded().inclusive()["let_through"], 0.02 * held)

    def test_shortly_held_back(self):
        """So it is for less than an interval, but for the last 0.1 ms."""
        run = self.profile(["host_signals", "shortly_held"], hz=1000, options=["--engine", "perf"])
        held, own = float(run.truth.values["HELD"][0][0]), run.folded().own()
        self.at_least("blocked", own["[signal blocked]"], 0.4 * held)
        self.at_most("blocked", own["[signal blocked]"], 1.2 * held)

    def test_long_calls_are_not_held_back(self):
        """Long system calls and page faults have their time: their signals wait, too."""
        run = self.profile([sys.executable, "-c", "import os; [os.urandom(1 << 26) for _ in range(4)]"],
                           options=["--engine", "perf"])
        capture = run.capture()  # nearly all of it is in these; glibc blocks all signals for a moment as threads begin
        self.assertLessEqual(capture.counters.get("held_back", 0), 0.02 * len(capture.samples))

    def test_way_into_the_kernel(self):
        """Frames that stand between a call of glibc 2.41 and the kernel are not shown."""
        run = self.profile(["host_signals", "cancellable"])
        names = {check.bare(frame) for stack, _ in run.folded().stacks for frame in stack}
        self.assertIn("cancellable", names)
        self.assertFalse([name for name in names if "syscall_cancel" in name], names)

    def test_blocked_for_a_while(self):
        """Time while the sampling signal is blocked is in the total; samples come when it is let through again."""
        run = self.profile(["host_signals", "mask"])
        self.check_total(run.folded(), run.truth)
        self.check_weights(run.capture())

    def test_waits_are_not_interrupted(self):
        self.check("waits", hz=2000)

    def test_thread_that_blocks_everything(self):
        """It is sampled all the same."""
        self.check("masked_thread")

    def test_masks_as_the_program_sees_them(self):
        self.check("mask_view")

    def test_thread_that_takes_all_signals(self):
        """It blocks every signal, is sampled, and gets none of greenprof's by sigwait()."""
        self.check("wait_all")

    def test_blocked_from_the_start(self):
        self.check("blocked")


if __name__ == "__main__":
    check.main()
