# SPDX-License-Identifier: MIT
"""coro.h with a hand-written switch that has no unwind information."""
import collections
import os

import check


def works_under(folded, root):
    return {frame for stack, _ in folded.under(root).stacks for frame in stack if frame.startswith("work_")}


class Explicit(check.Case):
    def setUp(self):
        super().setUp()
        check.need(os.path.exists(check.program("explicit")), "the switch routine is written for x86-64 only")

    def test_pure_switch_loop(self):
        run = self.profile(["explicit", "loop", 2.0], hz=5000)
        capture, folded = run.capture(), run.folded("--by", "coroutine")
        self.assertEqual(capture.drops - capture.counters["idle"], 0)
        rows = {row[6].strip(): row for row in run.ledger()}
        for name, (_, switches) in run.truth.coroutines.items():
            self.assertEqual(rows[name][3], switches, name)
        # The three do the same: a third each, by the ledger and by the samples. At 5000 Hz a good part of this loop's time is
        # the samples' own, each charged to the coroutine it interrupts: 3000 of them each, at random.
        exact = {name: rows[name][0] for name in run.truth.coroutines}
        for name, seconds in exact.items():
            self.near(f"ledger of {name}", seconds, sum(exact.values()) / 3, 0.10)
        self.check_total(folded, run.truth)
        on_coroutines = sum(weight for root, weight in folded.roots().items() if root.startswith("[coroutine"))
        self.at_least("on coroutines", on_coroutines, 0.95 * folded.total)
        # Every leaf is a frame of the loop, or [switching]; never a guess.
        leaves = collections.Counter()
        for stack, weight in folded.stacks:
            if stack[0].startswith("[coroutine"):
                leaves[stack[-1].partition(" ")[0]] += weight
        print({leaf: f"{weight / on_coroutines:.2%}" for leaf, weight in leaves.most_common()})
        own = {"loop_green", "leave_for", "shape_swap", "prof_coro_switch", "enter_green", "trampoline", "truth_clock_ns"}
        others = {"[switching]", "[incomplete]", "clock_gettime", "clock_gettime@plt", "prof_coro_switch_hook@plt"}
        self.assertLessEqual({leaf.partition("(")[0] for leaf in leaves}, own | others)
        self.at_most("incomplete", leaves["[incomplete]"], 0.02 * on_coroutines)

    def test_work(self):
        run = self.profile(["explicit", "work", 2.0])
        folded = run.folded("--by", "coroutine")
        self.check_functions(folded, run.truth, len(run.capture().samples))
        self.check_total(folded, run.truth)
        self.check_ledger(run)
        for root in folded.roots():
            if root.startswith("[coroutine"):
                self.assertEqual(works_under(folded, root), {"work_" + root.rstrip("]").split()[-1]})

    def test_pooled_stack(self):
        """One stack, 600 lives: each is a coroutine of its own, with its own name and work."""
        run = self.profile(["explicit", "pool", 600], hz=5000)
        folded = run.folded("--by", "coroutine")
        self.check_functions(folded, run.truth, len(run.capture().samples))
        self.check_total(folded, run.truth)
        roots = [root for root in folded.roots() if root.startswith("[coroutine")]
        self.at_least("lives in samples", len(roots), 590)
        for root in roots:
            wanted = "work_ping" if root.endswith(" odd]") else "work_pong"
            self.assertLessEqual(works_under(folded, root), {wanted}, root)
        rows = [row for row in run.ledger() if row[6].strip() in ("odd", "even")]
        self.assertEqual(len(rows), 600)
        self.assertEqual({row[3] for row in rows}, {1})
        capture = run.capture()
        odd = sum(cpu_ns for coro, (cpu_ns, _) in capture.ledger.items() if capture.coros[coro].name == "odd")
        self.near("ledger of odd", odd / 1e9, run.truth.functions["work_ping"], check.LEDGER_TOLERANCE)

    def test_shared_stack(self):
        run = self.profile(["explicit", "shared", 700])
        folded = run.folded("--by", "coroutine")
        self.check_functions(folded, run.truth, len(run.capture().samples))
        self.check_ledger(run)
        for root in folded.roots():
            wanted = {"ping]": {"work_ping"}, "pong]": {"work_pong"}}.get(root.split()[-1], {"work_pang"})
            self.assertLessEqual(works_under(folded, root), wanted, root)


if __name__ == "__main__":
    check.main()
