# SPDX-License-Identifier: MIT
"""Two shards, of which one is killed in the middle, and comes back: the sums are exact."""
import random
import unittest

from captures import Capture, check
from clickhouse_server import Cluster, wait_for
from shipping import ShipTest

TURNS = 12


class Shards(ShipTest):
    def test_shard_is_killed(self):
        chance = random.Random(7)
        with Cluster(shards=2) as cluster:
            files = [Capture(self.path(f"{seed}.greenprof"), seed, chunks=60) for seed in range(1, 5)]
            self.start("--to", cluster.url())
            for turn in range(TURNS):
                for capture in files:
                    capture.write(chance.randrange(2 * len(capture.bytes) // TURNS))
                if turn == 4:
                    cluster.servers[1].kill()
                if turn == 8:
                    cluster.servers[1].start()
                self.wait_for_rows(cluster.servers[0], turn)
            for capture in files:
                capture.finish()
            wait_for(lambda: self.rows(cluster.servers[0]) == sum(capture.count for capture in files),
                     "all samples")
            wait_for(lambda: self.paths(cluster.servers[0]) == len(files), "critical paths")
            check(self, cluster.servers[0], files)
            check(self, cluster.servers[1], files)
            parts = [server.number("SELECT count() FROM greenprof_samples_local") for server in cluster.servers]
            self.assertTrue(all(parts), f"rows of the shards: {parts}")

    @staticmethod
    def rows(server):
        try:
            return server.number("SELECT sum(samples) FROM greenprof_samples WHERE measure = 0")
        except Exception:  # a shard is away
            return -1

    @staticmethod
    def paths(server):
        return server.number("SELECT countDistinct(process) FROM greenprof_samples WHERE measure = 1")

    def wait_for_rows(self, server, turn):
        """Some have arrived in every state of the cluster."""
        if turn in (3, 11):
            wait_for(lambda: self.rows(server) > 0, "samples")
        if turn == 7:  # one shard alone goes on
            before = server.number("SELECT count() FROM greenprof_samples_local")
            wait_for(lambda: server.number("SELECT count() FROM greenprof_samples_local") >= before, "samples")


if __name__ == "__main__":
    unittest.main()
