# SPDX-License-Identifier: MIT
"""A program that sends its own spans, requests and samples: the URL of a destination as a consumer, without `greenprof ship`."""
import errno
import glob
import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "consumer"))
import support  # noqa: E402
from helpers import free_ports  # noqa: E402
from proxy import Proxy  # noqa: E402
from shipping import Store  # noqa: E402

EACH = 3  # spans of a request of host.c


class Here(Store, support.Case):
    def setUp(self):
        super().setUp()
        self.spool = self.path("spool")

    def url(self, options="", **more):
        return self.store.url(f"?interval=50ms&grain=1s{options}", **more)

    def host(self, url=None, **environment):
        return support.Host(GREENPROF_SPOOL=self.spool, **({"GREENPROF_CONSUMER": url} if url else {}), **environment)

    def spans(self, where=""):
        return self.store.known(f"SELECT count() FROM greenprof_spans {where}")

    def folders(self):
        return glob.glob(os.path.join(self.spool, "ship-*"))

    def settle(self, url=None):
        """As it ends a program waits for 3 s; what was left then, on a busy machine, is the next one's."""
        def is_settled():
            if self.folders():
                with self.host(url or self.url()) as host:
                    host.do("flush 30000")
                    host.end()
            return not self.folders()
        support.until(is_settled, "nothing left on the disk")

    def test_all_of_it(self):
        """What the program and its children did is in the store, once; and nothing is left of it on the disk."""
        with self.host(self.url(), GREENPROF_SERVICE="shop", GREENPROF_LABELS="rack=r7") as host:
            host.do("requests 50", "busy 100", "fork 20", "_fork 10")
            host.end()
        self.settle()
        self.assertEqual(self.spans(), (51 + 30) * EACH)
        self.assertEqual(self.store.known("SELECT countDistinct(span) FROM greenprof_spans"), (51 + 30) * EACH)
        self.assertEqual(self.store.query("SELECT DISTINCT service FROM greenprof_requests"), [["shop"]])
        self.assertEqual(self.store.known("SELECT count() FROM greenprof_requests"), 81)
        self.assertEqual(self.store.known("SELECT countDistinct(pid) FROM greenprof_processes"), 3)
        self.assertEqual(self.store.query("SELECT DISTINCT labels.value[indexOf(labels.key, 'rack')] FROM greenprof_processes"),
                         [["r7"]])
        # The request computed for 100 ms, and says where: the time of a request, as sampled.
        found = self.store.query(
            "SELECT sum(weight_ns), countIf(has(names, 'compute_request')) FROM greenprof_samples ANY LEFT JOIN (SELECT stack, names "
            "FROM greenprof_stacks) USING stack WHERE measure = 0 AND state = 0 AND endpoint != ''")
        self.assertGreater(int(found[0][1]), 0)

    def test_balance(self):
        url = self.url()
        with self.host() as host:
            host.do(f"open {url}", "requests 100", "flush 30000")
            self.assertEqual(self.spans(), 100 * EACH)
            status = host.status(url)
            self.assertEqual((status["sent"], status["failures"], status["last_error"]), (100 * EACH, 0, 0))
            self.assertTrue(support.balanced(status), status)
            self.assertEqual(host.say(f"open {url}"), str(-errno.EALREADY))
            host.do(f"close {url}", "requests 5")
            host.do(f"open {url}", "requests 7", "flush 30000")  # and again: another capture
            host.end()
        self.settle()
        self.assertEqual(self.spans(), 107 * EACH)

    def test_wrong_urls(self):
        with self.host() as host:
            for url, error in (("clickhouse://h/a-b", -22), ("clickhouse://h/?colour=red", -22), ("ftp+x://h/", -95),
                               (self.url("&spool_size=3"), -22), ("clickhouse://h/?interval=soon", -22)):
                self.assertEqual(host.say(f"open {url}"), str(error), url)

    def test_store_is_away(self):
        """The program does not wait, what it did stays, and the next one of that store sends it: once."""
        port, = free_ports(1)
        url = self.url(port=port)
        with self.host(url) as host:
            host.do("requests 20")
            support.until(lambda: host.status(url)["failures"] > 0, "a failure")
            host.do("requests 20")
            host.end()
        self.assertEqual(len(self.folders()), 1)
        with Proxy(self.store.http, port):
            with self.host(url) as host:
                host.do("requests 5", "flush 30000")
                self.assertEqual(host.status(url)["recovered"], 40 * EACH)
                host.end()
            self.settle(url)
            self.assertEqual(self.spans(), 45 * EACH)
            self.assertEqual(self.store.known("SELECT countDistinct(span) FROM greenprof_spans"), 45 * EACH)

    def test_killed(self):
        with self.host(self.url()) as host:
            host.do("requests 30", "flush 30000", "requests 30")
            support.until(lambda: self.spans() == 60 * EACH, "all spans")
            os.kill(host.pid, signal.SIGKILL)
            host.process.wait()
        with self.host(self.url()) as host:
            host.do("requests 1")
            host.end()
        self.settle()
        self.assertEqual(self.spans(), 61 * EACH)

    def test_end_at_once(self):
        """_exit() of a program that has just begun."""
        for count in (1, 2):
            with self.host(self.url()) as host:
                host.do("requests 10")
                host.process.stdin.write("_exit\n")
                host.process.stdin.flush()
                host.process.wait(timeout=support.LIMIT_SECONDS)
            self.settle()
            self.assertEqual(self.spans(), count * 10 * EACH)

    def test_parent_leaves(self):
        """A daemon: the parent ends, the child goes on, and sends itself."""
        with self.host(self.url()) as host:
            host.do("requests 3")
            child = int(host.say("daemon 20 400"))
            host.end()
            self.addCleanup(self.kill, child)
            support.until(lambda: self.spans(where=f"WHERE process IN (SELECT process FROM greenprof_processes WHERE pid = {child})")
                          == 20 * EACH, "the child's spans")
        self.kill(child)
        support.until(lambda: not os.path.exists(f"/proc/{child}"), "its end")
        self.settle()
        self.assertEqual(self.spans(), 23 * EACH)

    @staticmethod
    def kill(pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def test_own_capture_goes_on(self):
        """A program that is recorded anyway: that capture is followed, and stays."""
        path = self.path("own.greenprof")
        with self.host(self.url(), GREENPROF_OUTPUT=path) as host:
            host.do("requests 30")
            host.do("flush 30000")
            self.assertEqual(self.spans(), 30 * EACH)
            host.end()
        self.assertTrue(os.path.exists(path))

    def test_two_stores(self):
        other = self.store.make("_other")
        urls = self.url() + " " + self.url(database=other)
        with self.host(urls) as host:
            host.do("requests 30")
            host.end()
        self.settle(urls)
        self.assertEqual(self.spans(), 30 * EACH)
        self.assertEqual(self.store.known(f"SELECT count() FROM {other}.greenprof_spans"), 30 * EACH)

    def test_descriptors(self):
        """Children by fork have none of the connections, and the program's own table has none of them."""
        with self.host(self.url()) as host:
            host.do("requests 3", "flush 30000")
            own = {os.readlink(path) for path in glob.glob(f"/proc/{host.pid}/fd/*")}
            self.assertFalse([name for name in own if name.startswith("socket:") or "ship.journal" in name], own)
            host.end()

    def test_disk_is_bounded(self):
        """A store that is away for long: the latest parts are kept, and what is lost of the others is counted."""
        url = f"clickhouse://127.0.0.1:{free_ports(1)[0]}/default?interval=50ms&spool_size=1M"
        with self.host(url) as host:
            support.until(lambda: (host.do("requests 200"), host.status(url)["lost_queue"])[1], "losses that are counted")
            used = sum(os.path.getsize(path) for path in glob.glob(self.spool + "/**/*", recursive=True) if os.path.isfile(path))
            self.assertLess(used, 3 << 20)


if __name__ == "__main__":
    unittest.main()
