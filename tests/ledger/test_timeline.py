# SPDX-License-Identifier: MIT
"""The timeline of a service that books its own waits, as it is in a Chrome trace."""
import collections
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import check
from test_ledger import Books

STATES = ("running", "ready", "parked", "waiting")


class Timeline(check.Case):
    def load(self, run, *options):
        out = run.output + ".json"
        done = check.greenprof("export", run.output, "--format", "chrome", "-o", out, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out, encoding="utf8") as file:
            return json.load(file)["traceEvents"]

    def sums(self, events, to_the_end=True):
        """{name of a coroutine: {state: seconds}}, or without the wait that goes on when the process ends."""
        names = {(event["pid"], event["tid"]): event["args"]["name"].rstrip("]").split()[-1] for event in events
                 if event["name"] == "thread_name"}
        sums = collections.defaultdict(collections.Counter)
        last = {}
        for event in events:
            if event["ph"] == "X" and event["cat"] == "coroutine":
                name = names[event["pid"], event["tid"]]
                sums[name][event["name"]] += event["dur"] / 1e6
                last[name] = max(last.get(name, event), event, key=lambda item: item["ts"])
        for name, event in last.items():
            if not to_the_end and event["name"] == "waiting":
                sums[name]["waiting"] -= event["dur"] / 1e6
        return sums

    def test_parts(self):
        run = self.profile(["service", "waits", 3])
        events = self.load(run)
        sums = self.sums(events, to_the_end=False)
        for booked in Books(run).booked:
            # Clocks are read a moment apart, and waits of less than 0.1 ms are left out.
            got, slack = sums[booked["name"]], 0.002 + booked["switches"] * 5e-6
            expected = {"running": booked["cpu"] + booked["off"], **{state: booked[state] for state in STATES[1:]}}
            for state in STATES:
                self.near(f"{booked['name']} {state}", got[state] + (got["interleaved"] if state == "running" else 0),
                          expected[state], 0.02, slack)
            self.near(f"{booked['name']} wall", sum(got.values()), booked["wall"], 0.01, slack)
        told = sum(row["switches"] for row in Books(run).booked if row["parked"] > 0)
        wakes = sum(event["ph"] == "f" and event["name"] == "wake" for event in events)
        self.at_least("wakes", wakes, 0.8 * told) # the loop's: waits of less than 0.1 ms have none
        self.assertLessEqual(wakes, told)
        self.assertEqual(sum(event["ph"] == "f" and event["name"] == "spawn" for event in events), 12)

    def test_open_wait(self):
        """A coroutine that is parked when the process ends."""
        run = self.profile(["service", "whole", 1])
        sums = self.sums(self.load(run))
        self.near("wait_lock", sums["sleeper"]["parked"] + sums["sleeper"]["waiting"], Books(run).sites["wait_lock"], 0.25)

    def test_coarser(self):
        """More switches than a timeline can hold: spans are merged, what they say of running is still exact."""
        run = self.profile(["service", "yields", 20000])
        running, inside = collections.Counter(), 0
        events = self.load(run, "--name", "yielder")
        for event in events:
            if event["ph"] == "X" and event["cat"] == "coroutine":
                running[event["tid"]] += (event["args"]["running_us"] if event["name"] == "interleaved" else
                                          event["dur"] if event["name"] == "running" else 0) / 1e6
                inside += event["name"] == "interleaved"
        self.assertGreater(inside, 0)
        self.assertLess(len(events), 30000)
        booked = sum(row["cpu"] + row["off"] for row in Books(run).booked)
        self.near("running", sum(running.values()), booked, 0.02, 60000 * 1e-6)


if __name__ == "__main__":
    unittest.main()
