# SPDX-License-Identifier: MIT
"""Exactly once, whatever ends in the middle: the shipper, the store, the network, the file that is still written."""
import functools
import random
import shutil
import signal
import unittest

from captures import Capture, check
from clickhouse_server import ClickHouse
from proxy import Proxy
from shipping import ShipTest, Store

KILLS, CUTS, LOSSES = 50, 40, 8
BYTES = 9000  # that pass until all of a group has arrived, or some more


class Kills(Store, ShipTest):
    def setUp(self):
        super().setUp()
        self.chance = random.Random(16)
        self.use(self.store)
        self.files = [Capture(self.path(f"{seed}.greenprof"), seed) for seed in range(1, 4)]

    def use(self, store):
        self.store, self.proxy = store, Proxy(store.http)
        self.addCleanup(self.proxy.close)
        self.url = store.url(port=self.proxy.port)

    def grow(self, turns):
        for capture in self.files:
            capture.write(self.chance.randrange(2 * len(capture.bytes) // turns))

    def finish(self):
        self.proxy.disarm()
        for capture in self.files:
            capture.finish()
        self.ship("--to", self.url)
        check(self, self.store, self.files)

    def test_shipper_is_killed(self):
        """At random places of what it says to the store, which is killed twice as well."""
        self.use(ClickHouse().__enter__())
        self.addCleanup(self.store.close)
        for kill in range(KILLS):
            self.grow(KILLS)
            process = self.start("--to", self.url)
            self.proxy.arm(self.chance.randrange(BYTES), functools.partial(process.send_signal, signal.SIGKILL))
            if kill in (KILLS // 3, 2 * KILLS // 3):
                self.store.kill()
                self.store.start()
            self.proxy.fired.wait(1.5)  # it may have had less to say
            self.kill(process)
        self.finish()

    def test_journal_is_lost(self):
        """And each time the journal is deleted: what of a group has arrived is known to the store alone."""
        for _ in range(LOSSES):
            self.grow(LOSSES)
            process = self.start("--to", self.url)
            self.proxy.arm(BYTES // 3 + self.chance.randrange(BYTES), functools.partial(process.send_signal, signal.SIGKILL))
            self.proxy.fired.wait(2.5)
            self.kill(process)
            shutil.rmtree(self.state, ignore_errors=True)
        self.finish()

    def test_network_is_cut(self):
        """One shipper for all of it: connections end at random places, and are made again."""
        process = self.start("--to", self.url)
        for _ in range(CUTS):
            self.grow(CUTS)
            self.proxy.arm(self.chance.randrange(BYTES), lambda: None)
            self.proxy.fired.wait(0.3)
            self.proxy.cut()
        self.assertIsNone(process.poll(), self.log())
        self.proxy.disarm()
        self.kill(process, signal.SIGTERM)
        self.finish()


if __name__ == "__main__":
    unittest.main()
