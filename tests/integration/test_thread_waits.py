# SPDX-License-Identifier: MIT
"""Where ordinary threads sleep and wait, on the wall clock: each wait has its stack and its length."""
import subprocess
import sys

import check

SHARE = 0.15    # half of the time between two looks goes to the stack before, half to the present one
LOOKS = 0.06    # seconds: a few looks at a loaded machine


class ThreadWaits(check.Case):
    def test_each_has_its_length(self):
        run = self.profile(["thread_waits"], options=["--clock", "wall"])
        folded = run.folded("--clock", "wall")
        asleep = check.Folded("")
        asleep.stacks = [(stack, weight) for stack, weight in folded.stacks if stack[-1] in ("[blocked]", "[lock]")]
        sums = asleep.inclusive()
        for name, seconds in run.truth.values["WAIT"]:
            self.near(name, sums[name], float(seconds), SHARE, LOOKS)
        whole = sum(float(seconds) for _, seconds in run.truth.values["WAIT"])
        self.near("main's own", sums["main"], 1.5 + float(run.truth.values["JOIN"][0][0]), SHARE, LOOKS)
        self.near("all", folded.total, whole + 1.5, SHARE, LOOKS)

    def test_none_without_the_wall_clock(self):
        """A capture of the CPU clock asks for no looks at threads: it says what is missing, and how to have it."""
        run = self.profile(["thread_waits"])
        self.assertEqual([stack for stack, _ in run.folded("--clock", "wall").stacks if stack[-1] == "[blocked]"], [])
        text = check.greenprof("report", run.output, "--clock", "wall").stdout.decode()
        self.assertIn("is recorded with run --clock wall", text)

    def test_loops_are_left_out(self):
        """The thread of an event loop sleeps in the loop: that is no wait of any coroutine's."""
        script = "import asyncio\nasync def main():\n  for _ in range(60): await asyncio.sleep(0.01)\nasyncio.run(main())\n"
        run = self.profile([sys.executable, "-c", script], options=["--clock", "wall"])
        waits = sum(weight for stack, weight in run.folded("--clock", "wall").stacks
                    if stack[-1] == "[blocked]" and stack[0] == "_start")
        self.at_most("the loop's own sleep", waits, 0.1)


class Lives(check.Case):
    """All of a thread's life is on the wall clock: CPU time, sleep, and what it could not run for."""

    def check_life(self, what, *options):
        run = self.profile(["thread_lives", what], options=options)
        wall, cpu, asleep, waited = map(float, run.truth.values["LIFE"][0])
        text = check.greenprof("report", run.output, "--by", "coroutine", "--clock", "wall").stdout.decode()
        row, = (line.split() for line in text.splitlines() if line.rstrip().endswith("[thread thread_lives]"))
        lived, ran, slept, preempted = map(float, row[:4])
        slack = 0.03 * wall + 0.02  # the ends of the life, outside of the loop; its child's end is waited for
        self.near("wall", lived, wall, 0, slack)
        self.near("cpu", ran, cpu, 0, slack)
        self.near("asleep", slept, asleep, 0, slack)
        self.near("preempted", preempted, waited, 0, slack)
        return run, wall, cpu, waited

    def test_contended(self):
        run, wall, cpu, waited = self.check_life("contended", "--clock", "wall")
        leaves = {leaf: sum(weight for stack, weight in run.folded("--clock", "wall").stacks if stack[-1] == leaf)
                  for leaf in ("[blocked]", "[preempted]")}
        self.near("[preempted] in the graph", leaves["[preempted]"], waited, 0, 0.03 * wall + 0.02)
        self.near("[blocked] in the graph", leaves["[blocked]"], wall - cpu - waited, 0, 0.03 * wall + 0.02)

    def test_stopped(self):
        run, wall, _, waited = self.check_life("stopped", "--clock", "wall")
        preempted = sum(weight for stack, weight in run.folded("--clock", "wall").stacks
                        if stack[-1] == "[preempted]" and "computes" in stack)
        self.near("[preempted] in computes()", preempted, waited, 0, 0.03 * wall + 0.02)

    def test_by_the_cpu_clock(self):
        """Without stacks of its sleep the ledger has it all the same."""
        self.check_life("contended")


class Profiles(check.Case):
    def test_profile_of_a_thread(self):
        """prof_start() on an ordinary thread: its wall clock has where it slept, and adds up to the ledger's."""
        done = subprocess.run([check.program("thread_profile"), f"{self.directory}/wall.folded"], capture_output=True, timeout=check.LIMIT_SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        truth = check.Truth(done.stdout.decode())
        with open(f"{self.directory}/wall.folded", encoding="utf-8") as file:
            folded = check.Folded(file.read())
        asleep = sum(weight for stack, weight in folded.stacks if "nap" in stack and stack[-1] == "[blocked]")
        self.near("asleep", asleep, float(truth.values["NAP"][0][0]), SHARE, LOOKS)


if __name__ == "__main__":
    check.main()
