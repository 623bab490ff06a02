# SPDX-License-Identifier: MIT
"""Where time goes: the ledger, waiting in graphs, long slices and their victims, against a service that books it itself."""
import json
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import check

PARTS = ("wall", "cpu", "off", "ready", "parked", "waiting")


class Books:
    """What the service printed."""

    def __init__(self, run):
        self.booked, self.ledger, self.sites, self.hog, self.profile = [], [], {}, None, None
        for line in run.stdout.splitlines():
            kind, *words = line.split()
            if kind in ("CORO", "LEDGER"):
                rows = self.booked if kind == "CORO" else self.ledger
                rows.append(dict(zip(PARTS, map(float, words[1:7])), name=words[0], switches=int(words[7])))
            elif kind == "SITE":
                self.sites[words[0]] = float(words[1])
            elif kind == "HOG":
                self.hog = float(words[0]) * int(words[1])
            elif kind == "PROFILE":
                self.profile = dict(zip(PARTS, map(float, words[:6])))


def width(folded, *frames):
    """Seconds under stacks that have all of `frames`."""
    return sum(weight for stack, weight in folded.stacks if all(frame in stack for frame in frames))


class Ledger(check.Case):
    def report(self, run, *options):
        done = check.greenprof("report", run.output, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode()

    # The service reads its clocks a few hundred ns before and after the hook does: that much is allowed a switch.
    def close(self, what, got, expected, share, switches):
        self.near(what, got, expected, share, 0.0005 + switches * 3e-6)

    def check_ledger(self, books, booked=None):
        for row, booked in zip(books.ledger, booked or books.booked):
            name, switches = row["name"], row["switches"]
            self.assertEqual(switches, booked["switches"], name)
            self.near(f"parts of {name}", sum(row[part] for part in PARTS[1:]), row["wall"], 0.001)
            # The first resume comes a moment after the coroutine was made: the machine may be busy.
            self.close(name + " wall", row["wall"], booked["wall"], 0.005, switches)
            for part in PARTS[1:]:
                self.close(f"{name} {part}", row[part], booked[part], 0.01, switches * (3 if part in ("cpu", "off") else 1))

    def test_parts(self):
        run = self.profile(["service", "waits", 3], options=("--clock", "wall"))
        books, folded = Books(run), run.folded("--clock", "wall")
        self.assertEqual(len(books.ledger), 12)
        self.check_ledger(books)
        blocked = next(row for row in books.booked if row["name"] == "request1")
        self.at_least("off", blocked["off"], 0.1)
        # Widths of the graph: where the coroutines waited, ready and parked together.
        for site, seconds in books.sites.items():
            got = width(folded, site) - width(folded, site, "compute")
            self.near(site, got, seconds, 0.04)
        self.near("total", sum(weight for _, weight in folded.stacks), sum(row["wall"] for row in books.booked), 0.02)
        for part, leaf in (("parked", "[parked]"), ("ready", "[ready]"), ("waiting", "[waiting]")):
            self.near(part, width(folded, leaf), sum(row[part] for row in books.booked), 0.02, slack=0.01)
        self.near("off", width(folded, "[blocked]") + width(folded, "[preempted]"),
                  sum(row["off"] for row in books.booked), 0.03, slack=0.02)
        self.at_least("blocked in block()", width(folded, "block", "[blocked]"), 0.9 * width(folded, "[blocked]"))

    def test_tables(self):
        run = self.profile(["service", "waits", 1.5], options=("--clock", "wall"))
        books = Books(run)
        text = self.report(run, "--by", "coroutine")
        head, _, table = text.partition("longest  switches     id trace")
        self.assertIn("wall time", head)
        rows = {line.split()[-1]: [float(word.replace("-", "0")) for word in line.split()[:8]] for line in table.splitlines()[1:]
                if "request" in line}
        self.assertEqual(len(rows), 12)
        for row in books.booked:
            wall, cpu, blocked, preempted, ready, parked, waiting, _ = rows[row["name"]]
            self.near("parts of " + row["name"], cpu + blocked + preempted + ready + parked + waiting, wall, 0, slack=0.004)
            # The program ends a moment after its books do.
            self.near(row["name"], wall, row["wall"], 0.02, slack=0.004)
            self.near(row["name"], parked, row["parked"], 0.02, slack=0.004)
        self.assertRegex(self.report(run, "--clock", "cpu"), r"exact, .* sampled \([+-].*chance gives \+-")

    def test_parked_the_whole_time(self):
        run = self.profile(["service", "whole", 1.5], options=("--clock", "wall"))
        self.near("wait_lock", width(run.folded("--clock", "wall"), "wait_lock"), Books(run).sites["wait_lock"], 0.02)

    def test_yields_are_ready_time(self):
        run = self.profile(["service", "yields", 4000])
        books = Books(run)
        # Slices of 20 us: what it costs to read four clocks at each of their ends is as much as what they are told apart by.
        for row, booked in zip(books.ledger, books.booked):
            self.assertEqual(row["switches"], booked["switches"])
            self.close("wall", row["wall"], booked["wall"], 0.005, row["switches"])
            self.at_least("ready", row["ready"], 20 * (row["parked"] + row["waiting"]))
            self.close("ready", row["ready"], booked["ready"], 0.05, row["switches"])

    def test_profile_of_the_wall_clock(self):
        path = os.path.join(self.directory, "wall.folded")
        command = [check.program("service"), "profile", "1.5", "folded", path]
        done = subprocess.run(command, capture_output=True, timeout=60, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        books = Books(done)
        with open(path) as file:
            folded = check.Folded(file.read())
        for part in ("ready", "parked", "waiting"):
            booked = sum(row[part] for row in books.booked)
            self.near(part, books.profile[part], booked, 0.01, slack=0.01)
            self.near(part, width(folded, f"[{part}]"), booked, 0.02, slack=0.02)
        for site, seconds in books.sites.items():
            self.near(site, width(folded, site), seconds, 0.05)

    def check_hog(self, kind, frame, share):
        run = self.profile(["service", "hog", 20, 10, 20, kind])
        expected, folded = Books(run).hog, run.folded("--by", "victim-time")
        self.near("delay", sum(weight for _, weight in folded.stacks), expected, 0.05)
        self.at_least(frame, width(folded, frame), share * expected)
        text = self.report(run, "--by", "victim-time", "-n", "3")
        self.assertIn("others were ready and waited", text)

    def test_victims(self):
        self.check_hog("crunch", "crunch", 0.95)

    def test_victims_of_a_sleeper(self):
        """The thread sleeps in a system call: its stack is seen from outside, unless the machine is too busy to look."""
        self.check_hog("doze", "doze", 0.7)

    def test_delays_of_which_nothing_tells(self):
        """Coroutines of a bare switch: those that have not run yet are ready, and of no others it is known."""
        run = self.profile(["untold"])
        (count, seconds), = run.truth.values["SLICES"]
        text = self.report(run, "--by", "victim-time")
        self.assertIn("delays     not known", text)
        row = re.search(r"\n +([0-9.]+) +(\d+)  layout_table < render_pdf < entry; up to 19 others were \[waiting\] meanwhile\n", text)
        self.assertTrue(row, text)
        self.assertEqual(row.group(2), count)
        self.near("long slices", float(row.group(1)), float(seconds), 0.03)
        data = json.loads(check.greenprof("export", run.output, "--format", "json", "--by", "victim-time").stdout)
        self.assertIsNone(data["total_ns"])


if __name__ == "__main__":
    unittest.main()
