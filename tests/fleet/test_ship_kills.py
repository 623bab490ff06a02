# SPDX-License-Identifier: MIT
"""Exactly once, whatever ends in the middle: the shipper, the store, the file that is still written."""
import random
import time
import unittest

from captures import Capture, check
from clickhouse_server import ClickHouse
from shipping import ShipTest

KILLS = 50


class Kills(ShipTest):
    def test_shipper_is_killed(self):
        """50 times at random places, while captures grow by parts of chunks and the store is killed twice."""
        chance = random.Random(16)
        with ClickHouse() as store:
            captures = [Capture(self.path(f"{seed}.greenprof"), seed) for seed in range(1, 4)]
            step = max(len(capture.bytes) for capture in captures) // KILLS + 1
            for kill in range(KILLS):
                process = self.start("--to", store.url())
                for capture in captures:
                    capture.write(chance.randrange(2 * step))
                time.sleep(chance.random() * 0.15)  # any place will do
                if kill in (KILLS // 3, 2 * KILLS // 3):
                    store.kill()
                    store.start()
                self.kill(process)
            for capture in captures:
                capture.finish()
            self.ship("--to", store.url())
            check(self, store, captures)


if __name__ == "__main__":
    unittest.main()
