# SPDX-License-Identifier: MIT
"""Trace ids: per coroutine, inherited, changed in mid-flight; filters and groups go by them."""
import collections
import os

import check

COLORS = {"4bf92f3577b34da6a3ce929d0e0e4736": "work_red", "00000000000000000000000000000abc": "work_green",
          "deadbeefdeadbeefdeadbeefdeadbeef": "work_blue"}
LETTERS = 10  # of a number's name, by crossing.c


def works(folded):
    return {name for name in folded.inclusive() if name.startswith("work_")}


class Traces(check.Case):
    def test_traces(self):
        run = self.profile(["traces"])
        samples = len(run.capture().samples)
        self.check_functions(run.folded(), run.truth, samples)
        self.check_total(run.folded(), run.truth)
        rows = {row[6].strip(): row for row in run.ledger(by="trace")}
        for trace, seconds in run.truth.values["TRACE"]:
            folded = run.folded("--trace", trace)
            self.assertEqual(works(folded), {COLORS[trace]})
            self.near(f"ledger of {trace[:8]}", rows[trace][0], float(seconds), check.LEDGER_TOLERANCE, 0.002)
            self.near(f"total of {trace[:8]} as the ledger has it", folded.total, rows[trace][0], 0.001, 0.001)
        (none,), = run.truth.values["NOTRACE"]
        self.near("ledger of no trace", rows["no trace"][0], float(none), 0.01, 0.01)
        self.assertEqual(set(rows), {*COLORS, "no trace"})

    def test_by_trace(self):
        run = self.profile(["traces"])
        folded = run.folded("--by", "trace")
        roots = folded.roots()
        self.assertEqual(set(roots), {*(f"[trace {trace}]" for trace in COLORS), "[no trace]"})
        for trace, color in COLORS.items():
            self.assertEqual(works(folded.under(f"[trace {trace}]")), {color})
        self.assertEqual(works(folded.under("[no trace]")), {"work_plain"})
        self.check_total(folded, run.truth)

    def test_ids_in_every_notation(self):
        run = self.profile(["traces"])
        plain = run.folded("--trace", "4bf92f3577b34da6a3ce929d0e0e4736")
        for text in ("4bf92f35-77b3-4da6-a3ce-929d0e0e4736", "4BF92F3577B34DA6A3CE929D0E0E4736",
                     "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"):
            self.assertEqual(run.folded("--trace", text).stacks, plain.stacks, text)
        for text in ("nonsense", "4bf92f3577b34da6a3ce929d0e0e473"):
            done = check.greenprof("export", run.output, "--format", "folded", "--trace", text)
            self.assertIn(done.returncode, (1, 2))
            self.assertTrue(done.stderr.startswith(b"greenprof"), done.stderr)
            self.assertEqual(done.stdout, b"")


class Crossing(check.Case):
    """1,000 coroutines with ids of their own take turns on 4 threads; CROSSING_SWITCHES is how many, by hand a million."""

    def test_every_stack_is_in_its_own_trace(self):
        run = self.profile(["crossing", os.environ.get("CROSSING_SWITCHES", 200000)])
        seconds, numbers = collections.Counter(), set()
        for (root, *frames), weight in run.folded("--by", "trace").stacks:
            letters = "".join(frame[7] for frame in map(check.bare, frames) if frame in ("letter_0", "letter_1"))
            if "[switching]" in frames:
                seconds["switching"] += weight
            elif len(letters) == LETTERS:
                number = int(letters, 2)
                self.assertEqual(root, f"[trace {number:04x}{0:012x}01{0:010x}{number:04x}]", frames)
                numbers.add(number)
                seconds["spelled"] += weight
            elif "serve" in frames:  # between two coroutines
                self.assertEqual((root, letters), ("[no trace]", ""), frames)
                seconds["between"] += weight
            else:
                seconds["other"] += weight
        print(f"{len(numbers)} numbers; seconds: {dict(seconds)}")
        (work,), = run.truth.values["WORK"]
        self.at_least("in coroutines", seconds["spelled"], 0.2 * float(work))
        self.assertGreater(len(numbers), 20)


if __name__ == "__main__":
    check.main()
