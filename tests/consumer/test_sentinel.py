# SPDX-License-Identifier: MIT
"""The Redis consumer asks a Sentinel for the master, and follows when another server becomes it."""
import unittest

from redis_server import Redis, free_ports
from support import Case, Host, until


class Sentinel(Case):
    def start_sentinel(self, master):
        path = self.path("sentinel.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"sentinel monitor traces 127.0.0.1 {master.port} 1\n"
                       "sentinel down-after-milliseconds traces 60000\nsentinel failover-timeout traces 3000\n")
        return Redis(self.folder, path, "--sentinel")

    def test_failover(self):
        at_once = ("--repl-diskless-sync-delay", "0")
        with Redis(self.folder, *at_once) as first, \
                Redis(self.folder, *at_once, "--replicaof", "127.0.0.1", str(first.port)) as second, \
                self.start_sentinel(first) as sentinel, Host(GREENPROF_SPOOL=self.folder) as host:
            until(lambda: "slave0" in first.ask("INFO", "replication"), "the replica is there")
            host.do(f"open redis+sentinel://127.0.0.1:{free_ports(1)[0]},127.0.0.1:{sentinel.port}/traces/0?timeout=500ms", "requests 2")
            until(lambda: host.status()["sent"] == 6, "sent, by the second Sentinel: the first one is not there")
            until(lambda: second.ask("DBSIZE") == "2", "the replica has them")
            until(lambda: sentinel.ask("SENTINEL", "replicas", "traces").count("slave-repl-offset"), "it knows the replica")
            until(lambda: sentinel.ask("SENTINEL", "failover", "traces") == "OK", "another master")
            until(lambda: "role:slave" in first.ask("INFO", "replication"), "the first one takes no writes")
            host.do("requests 3")
            until(lambda: host.status()["sent"] == 15, "sent")
            until(lambda: second.ask("DBSIZE") == "5", "to the other one")

    def test_nobody_knows_the_master(self):
        with Redis(self.folder) as server, self.start_sentinel(server) as sentinel, Host(GREENPROF_SPOOL=self.folder) as host:
            host.do(f"open redis+sentinel://127.0.0.1:{sentinel.port}/others", "requests 1")
            until(lambda: host.status()["failures"] >= 2 and host.status()["spooled"] == 3, "spooled")
            self.assertEqual(host.status()["last_error"], -113)
            host.do("close", f"open redis+sentinel://127.0.0.1:{server.port}/traces", "requests 1")  # no Sentinel
            until(lambda: host.status()["failures"] >= 2 and host.status()["spooled"] == 3, "spooled")


if __name__ == "__main__":
    unittest.main()
