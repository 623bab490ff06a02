# SPDX-License-Identifier: MIT
"""Threads that come and go, coroutines that move between them, threads that were there before greenprof."""
import os
import subprocess

import check


class Threads(check.Case):
    def test_migrating_coroutines(self):
        run = self.profile(["threads", "migrate"])
        folded = run.folded("--by", "coroutine")
        self.check_functions(folded, run.truth, len(run.capture().samples))
        self.check_total(folded, run.truth)
        self.check_ledger(run)
        roots = [root for root in folded.roots() if root.startswith("[coroutine")]
        self.assertEqual(len(roots), 8, roots)
        for root in roots:
            number = root.rstrip("]").rpartition("_")[2]
            works = {frame for stack, _ in folded.under(root).stacks for frame in stack if frame.startswith("work_")}
            self.assertEqual(works, {f"work_moving_{number}"}, root)

    def test_churn(self):
        run = self.profile(["threads", "churn"])
        folded = run.folded()
        capture = run.capture()
        # Each thread's last moments, half an interval on average, are in no sample: 3 ms lose more of it than 6 ms.
        self.check_functions(folded, run.truth, len(capture.samples), tolerance=0.08)
        # Making and ending a thread is outside its books: ~30 us, and ~80 us with a timer of its own.
        self.check_total(folded, run.truth, slack=401 * 0.0003)
        self.assertEqual(len(capture.threads), 401)
        self.check_weights(capture, slack=401 * 0.0015)
        threads = sum(thread.cpu_ns for thread in capture.threads.values()) / 1e9
        self.near("CPU time of all threads", threads, run.truth.total, 0.005, 401 * 0.0003)

    def test_kinds(self):
        run = self.profile(["threads", "kinds"])
        folded = run.folded("--by", "coroutine")
        self.check_functions(folded, run.truth, len(run.capture().samples))
        self.check_total(folded, run.truth)
        roots = folded.roots()
        self.assertIn("[thread fish]", roots)
        self.assertEqual({frame for stack, _ in folded.under("[thread fish]").stacks for frame in stack
                          if frame.startswith("work_")}, {"work_named"})
        hosted = [root for root in roots if root.startswith("[coroutine")]
        self.assertEqual(len(hosted), 1, hosted)
        self.assertTrue(hosted[0].endswith("hosted_entry]"), hosted)
        for name in ("named", "detached", "exiting", "small", "cancelled"):
            stacks = [stack for stack, _ in folded.stacks if "work_" + name in stack]
            self.assertTrue(any(name in stack[:4] for stack in stacks), stacks[:3])

    def test_address_space(self):
        """The C library makes no heap, 64 MB of address space, for a thread that does not allocate: before, one each."""
        def space(run):
            return int(run.values["SPACE_MB"][0][0])
        alone = space(self.run_alone(["threads", "space"]))
        for engine in "perf", "cpu", "monotonic":
            profiled = space(self.profile(["threads", "space"], options=["--engine", engine]).truth)
            self.assertLess(profiled - alone, 600, f"{engine}: {alone} MB alone")

    def test_loaded_late(self):
        library = os.path.join(check.LIBRARIES, "libgreenprof.so.0")
        done = subprocess.run([check.program("late"), library, self.directory], capture_output=True,
                              timeout=check.LIMIT_SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        truth = check.Truth(done.stdout.decode())
        with open(os.path.join(self.directory, "late.folded")) as file:
            folded = check.Folded(file.read())
        self.near("prof_total_ns()", float(truth.values["PROFILE"][0][0]), truth.total, 0.005, 0.003)
        self.check_total(folded, truth)
        # A thread born after the start is not seen being born here: it is found within half a second.
        later = truth.functions.pop("work_later")
        self.at_least("work_later", folded.inclusive()["work_later"], 0.3 * later)
        whole = sum(truth.functions.values())
        seen = sum(folded.inclusive()[name] for name in truth.functions)
        for name, seconds in truth.functions.items():
            self.near("share of " + name, folded.inclusive()[name] / seen, seconds / whole, 0.03, samples=1000 * whole)


if __name__ == "__main__":
    check.main()
