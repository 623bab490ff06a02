# SPDX-License-Identifier: MIT
"""What a deploy changed, asked of a store: an injected change is found and ranked first, and chance alone is called so.

Samples come at random, as those of a real process do, and their weights differ as much as they can: an error that was made from a
row's sum alone would be too small by a factor of 1.4.
"""
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "page"))
import page_data  # noqa: E402
from captures import MAKE_CAPTURE, make_capture
from clickhouse_server import Database
from shipping import GREENPROF, ShipTest, environment, greenprof

VERSIONS, FUNCTIONS, CHANGED, SECONDS, NOW_S = range(41, 51), 150, 77, 400, 1790000000
MEAN_NS = 10_000_000
ROW = re.compile(r"^ *([\d.]+) +([\d.]+) +([-+][\d.]+) \+- *([\d.]+)([* ])  .*  (\S+) \(\S*\)$")


def poisson(chance, mean):
    """How many of many rare events."""
    count, at = 0, chance.expovariate(mean)
    while at < 1:
        count, at = count + 1, at + chance.expovariate(mean)
    return count


def rate(function, version):
    """Samples of a function."""
    usual = 4000 if function == CHANGED else 30 + 2 * function
    return usual * 1.2 if function == CHANGED and version == 42 else usual


class Regressions(ShipTest):
    @classmethod
    def setUpClass(cls):
        cls.store = Database()
        cls.addClassCleanup(cls.store.close)
        cls.store.make()
        cls.shared = tempfile.mkdtemp(prefix="greenprof-regressions-")
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        cls.counts = {version: cls.make(version) for version in VERSIONS}
        cls.send(cls.store.url())

    @classmethod
    def send(cls, *arguments):
        with tempfile.TemporaryDirectory() as state:
            subprocess.run([GREENPROF, "ship", cls.shared, "--once", "--state", state, "--to", *arguments], check=True, env=environment(),
                           stdout=subprocess.DEVNULL, timeout=240)

    @classmethod
    def make(cls, version):
        chance = random.Random(version)
        lines = [f"header frequency=100 pid={version} realtime={NOW_S}000000000", "meta exe /usr/bin/service",
                 "meta OTEL_SERVICE_NAME orders", f"meta OTEL_RESOURCE_ATTRIBUTES service.version={version}"]
        lines += [f"function {n} {n * 10} function_{n} service.py" for n in range(1, FUNCTIONS + 1)]
        lines += ["thread 1 77 1 0 main", "coro 1 0 - 0 0 1 1 main"]
        lines += [f"stack {n} 0 function:{n}:{n}" for n in range(1, FUNCTIONS + 1)]
        lines.append("chunk")
        samples = []
        for function in range(1, FUNCTIONS + 1):
            for _ in range(poisson(chance, rate(function, version))):
                samples.append((chance.randrange(SECONDS * 10**9), int(chance.expovariate(1 / MEAN_NS)) + 1, function))
        lines += [f"sample {at} {weight} 1 1 {function} 0 0" for at, weight, function in sorted(samples)]
        lines += [f"counters {SECONDS}000000000 0 100 {len(samples)} {len(samples)}", f"end {SECONDS}000000000 0"]
        make_capture(MAKE_CAPTURE, os.path.join(cls.shared, f"{version}.greenprof"), "\n".join(lines) + "\n")
        return len(samples)

    def urls(self, *versions, tenant="", database=None):
        return [self.store.url(f"?version={version}{tenant}", database=database) for version in versions]

    def diff(self, operands, *arguments):
        """[(function, base, file, difference, error, is it sure)], as they are ranked, by the functions' own time."""
        text, _ = greenprof("diff", *operands, "--clock", "cpu", "-n", "0", *arguments)
        rows = [ROW.match(line) for line in text.splitlines()]
        return [(row[6], float(row[1]), float(row[2]), float(row[3]), float(row[4]), row[5] == "*") for row in rows if row]

    def test_injected(self):
        """A fifth more in one function of 150 comes first, in either direction, and no other is called sure."""
        for old, new, sign in ((41, 42, 1), (42, 43, -1)):
            for arguments in ((), ("--per", "second")):
                rows = self.diff(self.urls(old, new), *arguments)
                self.assertEqual(len(rows), FUNCTIONS)
                name, base, file, difference, _, is_sure = rows[0]
                self.assertEqual((name, is_sure), (f"function_{CHANGED}", True))
                self.assertGreater(sign * difference, 0)
                self.assertEqual([row[0] for row in rows if row[-1]], [name])
                z = [abs(row[3] / max(row[4], 0.01)) for row in rows]
                if arguments:  # numbers large enough for the two decimals that are shown
                    self.assertLess(max(b - a for a, b in zip(z, z[1:])), 0.2, "ranked by how sure it is")

    def test_chance(self):
        """Of versions that differ by chance alone, as many functions are beyond 1.96 errors as should be: 5 %."""
        z, sure = [], 0
        for old, new in ((41, 43), (44, 45), (46, 47), (48, 49), (43, 50)):
            rows = self.diff(self.urls(old, new), "--per", "second")
            z += [abs(row[3] / row[4]) for row in rows]
            sure += any(row[-1] for row in rows)
        beyond = sum(value > 1.96 for value in z) / len(z)
        self.assertEqual(len(z), 5 * FUNCTIONS)
        self.assertGreater(beyond, 0.03)
        self.assertLess(beyond, 0.075)  # with errors by the rows' sums: 0.166
        self.assertLessEqual(sure, 1)

    def test_as_captures(self):
        """The store and the captures that were shipped say the same, numbers and errors."""
        files = [os.path.join(self.shared, f"{version}.greenprof") for version in (41, 42)]
        of_files, of_store = (sorted(self.diff(pair, "--per", "second", "-s", "name"), key=lambda row: row[0])
                              for pair in (files, self.urls(41, 42)))
        for in_file, in_store in zip(of_files, of_store):
            self.assertEqual(in_file[0], in_store[0])
            # The store's time is that of its grains, which are as long as the captures.
            for a, b in zip(in_file[1:5], in_store[1:5]):
                self.assertAlmostEqual(a, b, delta=0.011)
            self.assertEqual(in_file[5], in_store[5])

    def test_page(self):
        page = self.path("deploy.html")
        greenprof("diff", *self.urls(41, 42), "-o", page)
        head, _ = page_data.read_page(page)
        self.assertEqual([side["samples"] for side in head["sides"]], [self.counts[41], self.counts[42]])
        self.assertIn(f"function_{CHANGED}", json.dumps(head))

    def test_tenants(self):
        """Another tenant's versions are no base to compare with."""
        text, error = greenprof("diff", *self.urls(41, 42, tenant="&tenant=other"), status=1)
        self.assertIn("no samples that were chosen", error)
        self.assertNotIn("function_", text + error)

    def test_older_store(self):
        """A store whose rows came without squares says what their sums say; the next shipper brings the tables up to date."""
        older = self.store.make("_older")
        self.send(self.store.url(database=older))
        for column in ("squares_ns2", "hog"):
            self.store.query(f"ALTER TABLE {older}.greenprof_samples DROP COLUMN {column}")
        self.store.query(f"TRUNCATE TABLE {older}.greenprof_versions")
        self.store.query(f"INSERT INTO {older}.greenprof_versions (version, made) VALUES (1, now())")
        now, before = self.urls(41, 42), self.urls(41, 42, database=older)
        rows, truth = self.diff(before, "--per", "second"), self.diff(now, "--per", "second")
        self.assertEqual((rows[0][0], rows[0][:4]), (f"function_{CHANGED}", truth[0][:4]))
        self.assertLess(rows[0][4], truth[0][4] * 0.8)  # an error says no less than it can, and cannot say more
        self.assertIn("no delays", greenprof("report", before[0], "--by", "victim-time", status=1)[1])
        os.symlink(os.path.join(self.shared, "41.greenprof"), self.path("41.greenprof"))
        self.ship("--to", self.store.url("?tenant=again", database=older))
        self.assertEqual(self.store.query(f"SELECT max(version) FROM {older}.greenprof_versions"), [["2"]])
        samples = f"SELECT sum(samples) FROM {older}.greenprof_samples WHERE"
        self.assertEqual(self.store.number(f"{samples} tenant = 'again'"), self.counts[41])
        self.assertEqual(self.store.number(f"{samples} tenant = 'again' AND samples > 1 AND squares_ns2 = 0"), 0)
        self.assertEqual(self.store.number(f"{samples} tenant = '' AND squares_ns2 > 0"), 0)

    def test_stacks(self):
        """By whole stacks, the changed one comes first as well."""
        text, _ = greenprof("diff", *self.urls(41, 42), "--by", "stack", "-n", "1")
        row = text.strip().splitlines()[-1]
        self.assertRegex(row, rf"\*  function_{CHANGED}$")
        self.assertIn(f"all {FUNCTIONS} comparisons", text)


if __name__ == "__main__":
    unittest.main()
