# SPDX-License-Identifier: MIT
"""Progress of a part that takes minutes, on standard error: its figures are printed at its end."""
import time

from . import table


class Progress:
    def __init__(self, rounds):
        self.begun, self.rounds, self.done = time.monotonic(), rounds, 0

    def say(self, text):
        table.progress(f"{round(time.monotonic() - self.begun)} s: {text}")

    def warm(self, name):
        self.say(f"warm: {name}")

    def found(self, text, *more):
        """In a round, which is over; more: lines."""
        self.done += 1
        self.say(f"round {self.done} of {self.rounds}, {text}")
        for line in more:
            table.progress("    " + line)
