# SPDX-License-Identifier: MIT
"""Python stacks under `greenprof run python3 ...`: right names, lines and callers, and no crash where naive walks crash."""
import json
import re
import unittest

import support
import measured


class Names(measured.Case):
    def test_lines_get_their_own_time(self):
        run = support.Run("lines.py")
        long_ns, short_ns = map(int, run.output.split())
        rows = json.loads(support.command("export", run.capture, "--format", "json"))
        by_line = self.time_under(rows)
        long, short = by_line[14], by_line[16]
        truth, share = long_ns / (long_ns + short_ns), long / (long + short)
        self.near("share of the long line", share, truth, 0.01, samples=run.samples())

    def time_under(self, rows):
        """Time of leaf() by the line of burn() that calls it."""
        frames, times = rows["frames"], {}
        for row in rows["rows"]:
            stack = [frames[i] for i in row["stack"]]
            for caller, callee in zip(stack, stack[1:]):
                if caller["function"] == "burn" and callee["function"] == "leaf":
                    times[caller["line"]] = times.get(caller["line"], 0) + row["weight_ns"]
        return times

    def test_totals_and_source_places(self):
        run = support.Run("lines.py")
        folded = run.folded()
        self.at_least("burn", folded.cumulative()["burn"], 0.9 * folded.total)
        self.assertRegex(run.report("-n", "3"), r"lines\.py:5\(leaf\)")

    def test_threads_with_and_without_the_interpreter_lock(self):
        run = support.Run("threads.py")
        truth = dict((name, float(seconds)) for name, seconds in map(str.split, run.output.splitlines()))
        times = run.folded().cumulative()
        for name, seconds in truth.items():
            self.near(name, times[name], seconds, 0.08)


class Native(measured.Case):
    def test_native_frames_stand_between_python_ones(self):
        support.require("greenlet")
        run = support.Run("native.py", hz=2000, options=["--native"])
        stacks = [(stack, weight) for stack, weight in run.folded("--by", "coroutine").stacks]
        self.assertFalse([stack for stack, _ in stacks if "_PyEval_EvalFrameDefault" in stack and
                          "Py_InitializeFromConfig" not in stack])  # before there is an interpreter with frames to read
        for where in ("[thread", "[coroutine"):
            mine = [(stack, weight) for stack, weight in stacks if stack[0].startswith(where) and "equals" in stack]
            right = sum(weight for stack, weight in mine
                        if "PyObject_RichCompare" in stack[stack.index("compares"):stack.index("equals")])
            self.at_least(f"comparisons in {where}", right, 0.99 * sum(weight for _, weight in mine))
            self.at_least(f"comparisons in {where}", right, 0.1)
        packs = [stack for stack, _ in stacks if "packs" in stack and "deflate" in stack]
        self.assertTrue(packs)
        for stack in packs:
            self.assertLess(stack.index("packs"), stack.index("deflate"))
        # Nothing of the greenlet's resumer or creator; but for the ~20 ns in which greenlet changes stack and identity.
        foreign = sum(weight for stack, weight in stacks if stack[0].startswith("[coroutine") and
                      {"elsewhere", "Py_BytesMain", "<module>"} & set(stack))
        self.at_most("of the resumer", foreign, 0.005 * sum(weight for _, weight in stacks))


class Hazards(measured.Case):
    def check_ladder(self, folded):
        wrong, right = [], 0.0
        for stack, weight in folded.stacks:
            # A stack that is marked incomplete may lack generators, and says so.
            if stack[0] == "[incomplete]":
                continue
            for caller, callee in zip(stack, stack[1:]):
                level = re.fullmatch(r"q(\d+)", callee)
                if level is None or level[1] == "0":
                    continue
                below = int(level[1]) - 1
                if caller in (f"q{below}", f"g{below}"):
                    right += weight
                else:
                    wrong.append((caller, callee, weight))
        self.assertGreater(right, 0)
        self.assertEqual(wrong, [])

    def test_every_function_has_its_only_caller(self):
        run = support.Run("ladder.py", 4, hz=10000)
        folded = run.folded()
        self.check_ladder(folded)
        self.at_most("incomplete", folded.cumulative()["[incomplete]"], 0.02 * folded.total)

    def test_recursion_to_the_edge_of_a_chunk(self):
        run = support.Run("edge.py", 3, hz=10000)
        folded = run.folded()
        callers = {caller for (caller, callee) in folded.pairs() if callee == "gen"}
        self.assertEqual(callers, {"recurse"})
        self.at_least("recurse", folded.cumulative()["recurse"], 0.9 * folded.total)

    def test_addresses_of_dead_code_are_reused_without_confusion(self):
        run = support.Run("reuse.py", 3, hz=10000)
        pairs = run.folded().pairs()
        wrong = [(caller, callee) for caller, callee in pairs if callee.startswith("child_")
                 and caller != callee.replace("child", "parent")]
        self.assertEqual(wrong, [])
        self.at_least("functions in samples", sum(1 for _, callee in pairs if callee.startswith("child_")), 81)


if __name__ == "__main__":
    unittest.main(verbosity=2)
