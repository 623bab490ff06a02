# SPDX-License-Identifier: MIT
"""Two shards, of which one is killed in the middle, and comes back: the sums are exact, and questions are answered.

Debian's ClickHouse 18.16 sometimes ends by itself, by SIGSEGV, while it makes the tables of a cluster. It is started again, as
by its service manager; where a test fails all the same, it is skipped, and says so.
"""
import functools
import json
import random
import re
import shutil
import unittest

from captures import Capture, check
from clickhouse_server import Cluster
from shipping import ShipTest, until
from test_fleet_questions import run

TURNS = 12


def with_cluster(test):
    """The test with a cluster; skipped where it fails and a server has ended by itself."""
    @functools.wraps(test)
    def run_test(self):
        with Cluster(shards=2) as self.cluster:
            try:
                test(self)
            except Exception:
                self.start_crashed()
                if self.crashes == 0:
                    raise
                self.skipTest(f"clickhouse-server ended by itself {self.crashes} times")
    return run_test


class Shards(ShipTest):
    crashes = 0

    @with_cluster
    def test_shard_is_killed(self):
        chance = random.Random(7)
        first, second = self.cluster.servers
        files = [Capture(self.path(f"{seed}.greenprof"), seed, chunks=60) for seed in range(1, 5)]
        files[0].write(len(files[0].bytes) // 4)
        self.make_tables()
        following = self.start("--to", self.cluster.url())
        for turn in range(TURNS):
            for capture in files:
                capture.write(chance.randrange(2 * len(capture.bytes) // TURNS))
            if turn == 4:
                second.kill()
                second.process = None
            if turn == 8:
                second.start(wait=False)
            if turn in (3, 11):  # some have arrived
                self.wait(lambda: first.rows() > 0, "samples")
        for capture in files:
            capture.finish()
        self.wait(lambda: first.rows() == sum(capture.count for capture in files), "all samples")
        self.wait(lambda: first.paths() == len(files), "critical paths")
        check(self, first, files)
        check(self, second, files)
        parts = [server.number("SELECT count() FROM greenprof_samples_local") for server in self.cluster.servers]
        self.assertTrue(all(parts), f"rows of the shards: {parts}")
        self.kill(following)
        shutil.rmtree(self.state)  # the shards know what has arrived
        self.ship("--to", self.cluster.url())
        check(self, first, files)

    def make_tables(self):
        making = self.start("--once", "--to", self.cluster.url())
        self.wait(lambda: making.poll() is not None, "the tables")

    @with_cluster
    def test_questions(self):
        """A cluster answers as one store does. Tables of an older version are brought up to date on each server."""
        files = [Capture(self.path(f"{seed}.greenprof"), seed, chunks=20) for seed in range(1, 5)]
        files[0].write(len(files[0].bytes) // 2)
        self.make_tables()
        for capture in files:
            capture.finish()
        self.ship("--to", self.cluster.url())
        self.ask(files, self.cluster.url())
        for server in self.cluster.servers:
            for table in ("samples", "samples_local"):
                for column in ("squares_ns2", "hog"):
                    server.query(f"ALTER TABLE greenprof_{table} DROP COLUMN {column}")
            server.query("TRUNCATE TABLE greenprof_versions_local")
        self.cluster.servers[0].query("INSERT INTO greenprof_versions_local (version, made) VALUES (1, now())")
        self.ask(files, self.cluster.url())
        self.ship("--to", self.cluster.url("&tenant=again"))
        self.ask(files, self.cluster.url("&tenant=again"))
        for server in self.cluster.servers:
            self.assertEqual(server.number("SELECT count() FROM greenprof_samples_local WHERE tenant = 'again' AND measure = 0 AND samples > 1 "
                                           "AND squares_ns2 = 0"), 0)
            self.assertEqual(server.number("SELECT max(version) FROM greenprof_versions"), 2)

    def ask(self, files, url):
        """Weights of samples, and latencies by critical path, of all shards together; each request once."""
        weights = sum(ns for capture in files for ns in capture.samples.values())
        latencies = sum(ns for capture in files for _, ns in capture.requests.values())
        for arguments, truth in (((), weights), (("--by", "critical-path"), latencies)):
            self.assertEqual(json.loads(run("export", url, "--format", "json", "--clock", "wall", *arguments))["total_ns"], truth)
        traces = re.findall(r"(?:ok|failed) +([0-9a-f]{32}) ", run("report", url, "--by", "request", "-n", "0"))
        self.assertEqual(sorted(traces), sorted(trace for capture in files for trace, _ in capture.requests.values()))

    def wait(self, condition, what):
        until(lambda: self.start_crashed() or condition(), what)

    def start_crashed(self):
        for server in self.cluster.servers:
            if server.process is not None and server.process.poll() is not None:
                self.crashes += 1
                server.start(wait=False)


if __name__ == "__main__":
    unittest.main()
