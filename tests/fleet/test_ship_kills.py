# SPDX-License-Identifier: MIT
"""Exactly once, whatever ends in the middle: the shipper, the store, the network, the file that is still written."""
import functools
import random
import shutil
import signal
import time

from captures import Capture, check
from clickhouse_server import ClickHouse
from proxy import Proxy
from helpers import main
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

    def ship_until_killed(self, count, *options, is_store_killed=False):
        """One that is killed after so many bytes; it may have had less to say."""
        process = self.start(*options, "--to", self.url)
        self.proxy.arm(count, functools.partial(process.send_signal, signal.SIGKILL))
        if is_store_killed:
            self.store.kill()
            self.store.start()
        end = time.monotonic() + 2
        while not self.proxy.fired.wait(0.01) and process.poll() is None and time.monotonic() < end:
            pass
        self.kill(process)

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
            is_store_killed = kill in (KILLS // 3, 2 * KILLS // 3)
            follows = [] if is_store_killed or kill % 5 == 0 else ["--once"]  # which ends once it has nothing more to say
            self.ship_until_killed(self.chance.randrange(BYTES), *follows, is_store_killed=is_store_killed)
        self.finish()

    def test_journal_is_lost(self):
        """And each time the journal is deleted: what of a group has arrived is known to the store alone."""
        for _ in range(LOSSES):
            self.grow(LOSSES)
            self.ship_until_killed(BYTES // 3 + self.chance.randrange(BYTES), "--once")
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
    main(at_once=3)
