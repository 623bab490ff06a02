# SPDX-License-Identifier: MIT
"""A program at rest costs next to nothing, and what it does next is seen as ever."""
import check

SHARE = 0.25        # half the time between two looks goes to what comes after a nap of 20 ms: 12 %
LOOKS = 0.02
WAKEUPS = 15        # a second: 2 rounds of the collector and 2 of what writes, and some before it is known to be a rest


class AtRest(check.Case):
    def test_wakeups_and_naps(self):
        run = self.profile(["at_rest"])
        count, seconds = run.truth.values["WAKEUPS"][0]
        self.at_most("wakeups a second", int(count) / float(seconds), WAKEUPS)
        stacks = run.folded("--clock", "wall").stacks
        for name, seconds in run.truth.values["SLEPT"]:
            asleep = sum(weight for stack, weight in stacks if name in stack and stack[-1] == "[blocked]")
            self.near(name, asleep, float(seconds), SHARE, LOOKS)


if __name__ == "__main__":
    check.main()
