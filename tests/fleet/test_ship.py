# SPDX-License-Identifier: MIT
"""greenprof ship: what arrives, what does not leave the host, and what it says when something is wrong."""
import json
import os
import resource
import shutil
import signal
import subprocess
import unittest

from captures import MAKE_CAPTURE, NOW_S, Capture, check, make_capture
from clickhouse_server import ClickHouse, QueryError, free_ports
from proxy import Proxy
from helpers import main
from shipping import GREENPROF, ShipTest, Store, environment, until


class Arrives(Store, ShipTest):
    def test_everything_once(self):
        files = [Capture(self.path(f"{seed}.greenprof"), seed).finish() for seed in (1, 2)]
        for _ in range(3):
            self.ship("--to", self.store.url())
            check(self, self.store, files)
        self.assertEqual(self.store.number("SELECT countDistinct(time) FROM greenprof_samples"), 1)
        self.assertEqual(self.store.query("SELECT DISTINCT service, version, tenant FROM greenprof_samples"),
                         [["service", "", ""]])
        self.assertEqual(sorted(self.store.query("SELECT DISTINCT host, pid FROM greenprof_processes")),
                         [["host0", "1002"], ["host1", "1001"]])

    def test_same_capture_under_two_names(self):
        capture = Capture(self.path("a.greenprof"), 1).finish()
        with open(self.path("b.greenprof"), "wb") as copy:
            copy.write(capture.bytes)
        self.ship("--to", self.store.url())
        check(self, self.store, [capture])

    def test_two_days(self):
        """Around midnight: parts of one group go to two partitions."""
        files = [Capture(self.path(f"{seed}.greenprof"), seed, realtime_ns=(20720 * 86400 - 3) * 10**9) for seed in (1, 2)]
        for capture in files:
            capture.finish()
        self.ship("--to", self.store.url())
        check(self, self.store, files)
        self.assertEqual(self.store.number("SELECT countDistinct(day) FROM greenprof_samples"), 2)

    def test_grain(self):
        capture = Capture(self.path("a.greenprof"), 1, step_ns=100_000_000).finish()  # 12 s
        self.ship("--to", self.store.url(), "--grain", "1s")
        check(self, self.store, [capture])
        times = [int(row[0]) for row in self.store.query("SELECT DISTINCT toUnixTimestamp(time) AS t FROM greenprof_samples ORDER BY t")]
        self.assertEqual(times, list(range(NOW_S, NOW_S + 12)))

    def test_no_traces(self):
        capture = Capture(self.path("a.greenprof"), 1).finish()
        self.ship("--to", self.store.url(), "--no-traces")
        self.assertEqual(self.store.query("SELECT DISTINCT lower(hex(trace)) FROM greenprof_samples"), [["0" * 32]])
        self.assertEqual(self.store.number("SELECT sum(weight_ns) FROM greenprof_samples WHERE measure = 0"), sum(capture.samples.values()))
        self.assertEqual(self.store.number("SELECT count() FROM greenprof_spans"), 0)
        self.assertEqual(self.store.number("SELECT count() FROM greenprof_requests"), len(capture.requests))

    def test_endpoints(self):
        Capture(self.path("a.greenprof"), 1).finish()
        self.ship("--to", self.store.url())
        self.assertEqual(self.store.query("SELECT DISTINCT endpoint FROM greenprof_samples ORDER BY endpoint"),
                         [[""], ["rest_dispatch GET /servers"]])
        self.assertEqual(self.store.query("SELECT DISTINCT endpoint FROM greenprof_requests"), [["rest_dispatch GET /servers"]])

    def test_arguments_stay(self):
        Capture(self.path("a.greenprof"), 1).finish()
        self.ship("--to", self.store.url())
        self.assertEqual(self.store.query("SELECT DISTINCT command FROM greenprof_processes"), [["/usr/bin/service"]])
        self.state += "2"
        self.ship("--to", self.store.url("?tenant=b"), "--with-info")
        self.assertEqual(self.store.query("SELECT DISTINCT command FROM greenprof_processes WHERE tenant = 'b'"),
                         [["service --password=hunter2"]])

    def test_dry_run(self):
        Capture(self.path("a.greenprof"), 1).finish()
        said = self.ship("--dry-run", "--to", self.store.url())
        for text in ("greenprof_samples: ", "greenprof_stacks: ", "coroutine measure state stack weight_ns", "bytes before",
                     'service "service"', "1 pieces"):
            self.assertIn(text, said)
        self.assertNotIn("hunter2", said)
        self.assertEqual(self.store.query("SHOW TABLES"), [])
        self.assertFalse(os.path.exists(self.state))

    def test_labels(self):
        metas = [("OTEL_SERVICE_NAME", "orders"), ("OTEL_RESOURCE_ATTRIBUTES", "service.version=41,team=a%20b"),
                 ("GREENPROF_LABELS", "tenant=acme, colour = red"),
                 ("cgroup", "0::/kubepods.slice/kubepods-pod0a_1b.slice/cri-" + "9f" * 32 + ".scope")]
        Capture(self.path("a.greenprof"), 1, metas=metas).finish()
        podinfo = os.path.join(self.folder, "podinfo")
        os.mkdir(podinfo)
        with open(os.path.join(podinfo, "labels"), "w", encoding="utf-8") as labels:
            labels.write('app="shop"\ncolour="green"\n')
        self.ship("--to", self.store.url(), GREENPROF_PODINFO=podinfo, POD_NAME="shop-7", GREENPROF_LABELS="zone=z1,team=c")
        self.assertEqual(self.store.query("SELECT DISTINCT tenant, service, version FROM greenprof_samples"),
                         [["acme", "orders", "41"]])
        found = dict(self.store.query("SELECT k, v FROM greenprof_processes ARRAY JOIN labels.key AS k, labels.value AS v"))
        for key, value in {"team": "a b", "colour": "red", "app": "shop", "zone": "z1", "k8s.pod.name": "shop-7",
                           "k8s.pod.uid": "0a_1b", "container.id": "9f" * 32}.items():
            self.assertEqual(found.get(key), value, key)

    def test_unit_and_build(self):
        """A systemd unit, the program's build-id, and a revision, which is its version where nothing else says one."""
        self.append([f"header frequency=1000 pid=9 realtime={NOW_S}000000000", "meta exe /opt/app/server",
                     "meta cgroup 0::/system.slice/orders.service", "meta GREENPROF_LABELS git.revision=3f2a",
                     "module 1 /opt/app/server 0102beef 0x1000 0x9000 0x0", "module 2 /lib/x.so 0303 0xa000 0xb000 0x0",
                     "thread 1 77 1 0 main", "coro 1 0 - 0 0 1 1 main", "stack 1 0 1:10", "sample 10 10 1 1 1 0 0", "end 20 0"])
        self.ship("--to", self.store.url())
        self.assertEqual(self.store.query("SELECT DISTINCT service, version FROM greenprof_samples"), [["server", "3f2a"]])
        found = dict(self.store.query("SELECT k, v FROM greenprof_processes ARRAY JOIN labels.key AS k, labels.value AS v"))
        self.assertLessEqual({"systemd.unit": "orders.service", "cgroup": "/system.slice/orders.service",
                              "build.id": "0102beef"}.items(), found.items())

    def test_program(self):
        """One that is recorded as it runs: its labels, its exact time, its samples."""
        path = self.path("program.greenprof")
        work = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: sum(range(100))"
        subprocess.run([GREENPROF, "run", "-q", "-o", path, "/usr/bin/python3", "-c", work], check=True, timeout=120,
                       env=environment(GREENPROF_LABELS="tenant=acme", OTEL_SERVICE_NAME="orders",
                                       OTEL_RESOURCE_ATTRIBUTES="service.version=7"))
        told = json.loads(subprocess.run([GREENPROF, "export", path, "--format", "json", "--clock", "cpu"], check=True,
                                         capture_output=True, timeout=120).stdout)
        self.ship("--to", self.store.url())
        self.assertEqual(self.store.query("SELECT DISTINCT tenant, service, version FROM greenprof_samples"),
                         [["acme", "orders", "7"]])
        self.assertEqual(self.store.number("SELECT sum(samples) FROM greenprof_samples WHERE state = 0"),
                         told["counters"]["samples"])
        self.assertGreater(self.store.number("SELECT any(cpu_ns) FROM greenprof_processes"), 250_000_000)

    def test_losses(self):
        capture = Capture(self.path("a.greenprof"), 1).finish()
        self.ship("--to", self.store.url())
        self.assertEqual(self.store.query("SELECT DISTINCT cpu_ns, counters[1] FROM greenprof_processes"),
                         [["123456789", str(capture.count)]])

    def test_journal_is_lost(self):
        """Deleted, or damaged: the store knows what it has."""
        files = [Capture(self.path(f"{seed}.greenprof"), seed) for seed in (1, 2)]
        for turn in range(4):
            for capture in files:
                capture.write(len(capture.bytes) // 4)
            self.ship("--to", self.store.url())
            if turn == 2:  # a byte of its first lines
                with open(os.path.join(self.state, "ship.journal"), "r+b") as journal:
                    journal.seek(60)
                    journal.write(b"~")
            else:
                shutil.rmtree(self.state)
        for capture in files:
            capture.finish()
        self.ship("--to", self.store.url())
        check(self, self.store, files)
        shutil.rmtree(self.state)
        self.ship("--to", self.store.url())
        check(self, self.store, files)

    def test_requests_are_whole(self):
        """What all coroutines of a request did, while the capture still runs; also where the shipper is another one each time."""
        parts = [  # of a capture, and what is known then: span -> whole, cpu, parked
            (["coro 2 1 - 0 0 2 0 a", "coro 3 2 - 0 0 2 0 b", f"trace 1 {1:032x}", f"trace 2 {2:032x}",
              "ledger 3 1 3000 1 9000 3500 100 0 0 0 0"], {}),
            (["span 7 0 2 2 100 20000 1 3 0 GET /x", "ledger 2 1 5000 1 21000 5000 0 0 2000 0 0",
              "ledger 3 1 1000 1 21000 1000 0 0 4000 0 0"], {7: (1, 9000, 6000)}),
            (["ledger 2 1 600 1 29000 600 0 0 0 0 0", "span 8 0 2 2 25000 30000 1 3 0 GET /x",  # another span of that trace
              "ledger 2 1 200 1 31000 200 0 0 50 0 0"], {8: (1, 800, 50)}),
            (["span 9 0 3 3 40000 50000 2 3 0 GET /y"], {9: (0, 0, 0)}),  # of its coroutines nothing is known yet
            (["ledger 3 2 700 1 60000 700 0 0 0 0 0"], {}),
        ]
        for how in ("follows", "again", "without journal"):
            with self.subTest(how=how):
                self.setUp()
                expected, lines = {}, [f"header frequency=1000 pid=9 realtime={NOW_S}000000000", "thread 1 77 1 0 main",
                                       "coro 1 0 - 0 0 1 1 main"]
                following = self.start("--to", self.store.url()) if how == "follows" else None
                for more, known in parts:
                    lines += ["chunk", *more]
                    self.append(lines)
                    # A shipper that has not seen the first of two requests of one trace cannot tell which did the work.
                    expected.update(known if how == "follows" or 8 not in known else {8: (0, 0, 0)})
                    if following is not None:
                        until(lambda: self.requests() == expected, f"{expected}")
                        continue
                    if how == "without journal":
                        shutil.rmtree(self.state, ignore_errors=True)
                    self.ship("--to", self.store.url())
                    self.assertEqual(self.requests(), expected)
                if following is not None:
                    self.kill(following)

    def append(self, lines):
        whole, path = self.path("whole"), self.path("a.greenprof")
        make_capture(MAKE_CAPTURE, whole, "\n".join(lines) + "\n")
        with open(whole, "rb") as new, open(path, "ab") as grown:
            new.seek(grown.tell())
            grown.write(new.read())

    def requests(self):
        try:
            return {int(span): tuple(map(int, row)) for span, *row in
                    self.store.query("SELECT span, whole, cpu_ns, parked_ns FROM greenprof_requests")}
        except QueryError:  # there is no table yet
            return {}

    def keep(self, table, condition):
        """As if the rest had never come."""
        self.store.query(f"CREATE TABLE kept AS {table}")
        self.store.query(f"INSERT INTO kept SELECT * FROM {table} WHERE {condition}")
        self.store.query(f"DROP TABLE {table}")
        self.store.query(f"RENAME TABLE kept TO {table}")

    def test_journal_is_lost_amid_a_group(self):
        """Some tables have it, and the list of batches does not."""
        for lost in (("samples",), ("samples", "requests", "spans")):
            with self.subTest(lost=lost):
                self.setUp()
                self.store.query("DROP TABLE IF EXISTS kept")
                capture = Capture(self.path("a.greenprof"), 1)
                for _ in range(2):
                    capture.write(len(capture.bytes) // 3)
                    self.ship("--to", self.store.url())
                batch = self.store.number("SELECT batch FROM greenprof_batches WHERE from_byte > 0")
                for table in (*lost, "batches"):
                    self.keep(f"greenprof_{table}", f"batch != {batch}")
                shutil.rmtree(self.state)
                capture.finish()
                self.ship("--to", self.store.url())
                check(self, self.store, [capture])

    def test_what_cannot_be_known(self):
        """The journal is lost, and so are the store's first words about a capture: it is left out, and the other one goes."""
        files = [Capture(self.path(f"{seed}.greenprof"), seed) for seed in (1, 2)]
        for _ in range(2):
            files[0].write(len(files[0].bytes) // 3)
            self.ship("--to", self.store.url())
        self.keep("greenprof_batches", "from_byte > 0")
        before = self.store.rows()
        shutil.rmtree(self.state)
        files[0].finish()
        files[1].finish()
        said = self.ship("--to", self.store.url(), status=1)
        self.assertIn("1.greenprof: the journal does not know it, and the store has parts of it, but not from the beginning", said)
        self.assertEqual(self.store.rows(), before + files[1].count)

    def test_two_destinations(self):
        capture = Capture(self.path("a.greenprof"), 1).finish()
        other = self.store.make("_other")
        self.ship("--to", self.store.url(), "--to", self.store.url(database=other))
        check(self, self.store, [capture])
        self.assertEqual(self.store.number(f"SELECT sum(weight_ns) FROM {other}.greenprof_samples WHERE measure = 0"),
                         sum(capture.samples.values()))

    def test_follows_new_files(self):
        process = self.start("--to", self.store.url())
        files = []
        for seed in range(1, 4):
            files.append(Capture(self.path(f"{seed}.greenprof"), seed, chunks=20).finish())
            until(lambda: self.store.rows() == sum(capture.count for capture in files), "all samples")
        until(lambda: self.store.paths() == 3, "critical paths")
        self.assertEqual(self.kill(process, signal.SIGTERM), 0)
        check(self, self.store, files)


class Fails(Store, ShipTest):
    def test_refused_then_there(self):
        capture = Capture(self.path("a.greenprof"), 1).finish()
        port, = free_ports(1)
        url = self.store.url(port=port)
        self.assertIn(url + ": ", self.ship("--to", url, status=1))
        process = self.start("--to", url)
        self.wait_for_log("trying again")
        with Proxy(self.store.http, port):
            self.wait_for_log("arrives again")
            self.kill(process)
            self.ship("--to", url)
            check(self, self.store, [capture])

    def test_wrong_key(self):
        Capture(self.path("a.greenprof"), 1).finish()
        said = self.ship("--to", self.store.url(user="shipper:wrong@"), status=1)
        self.assertIn("assword", said)
        self.assertNotIn(":wrong", said)
        self.assertEqual(self.store.query("SHOW TABLES"), [])
        self.ship("--to", self.store.url(user="shipper:secret@"))
        self.assertGreater(self.store.number("SELECT count() FROM greenprof_samples"), 0)

    def test_disk_of_the_journal_is_full(self):
        """Nothing is sent that could not be written down; later, all of it."""
        capture = Capture(self.path("a.greenprof"), 1)

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))

        process = self.start("--to", self.store.url(), preexec_fn=limit)
        while capture.write(len(capture.bytes) // 10) and "trying again" not in self.log():
            until(lambda: "trying again" in self.log() or self.store.rows() > 0, "rows or a failure")
        capture.finish()
        self.wait_for_log("trying again")
        self.kill(process)
        self.ship("--to", self.store.url())
        check(self, self.store, [capture])

    def test_store_stands_still(self):
        """An answer does not come in time, and what was asked for is done later."""
        files = [Capture(self.path("a.greenprof"), 1), Capture(self.path("b.greenprof"), 2)]
        files[0].finish()
        with ClickHouse() as store:
            self.ship("--to", store.url())
            store.pause()
            files[1].finish()
            process = self.start("--to", store.url("?timeout=1"))
            self.wait_for_log("trying again")
            store.resume()
            self.wait_for_log("arrives again")
            self.kill(process)
            self.ship("--to", store.url())
            check(self, store, files)

    def test_one_shipper_at_a_time(self):
        self.start("--to", "clickhouse://127.0.0.1:1/")
        until(lambda: os.path.exists(os.path.join(self.state, "ship.journal")), "the journal")
        self.assertIn("another 'greenprof ship' uses it", self.ship("--to", "clickhouse://127.0.0.1:1/", status=1))

    def test_what_is_no_capture(self):
        with open(self.path("a.greenprof"), "w", encoding="utf-8") as file:
            file.write("x" * 500)
        said = self.ship("--to", "clickhouse://127.0.0.1:1/", status=1)
        self.assertIn(self.path("a.greenprof") + ": is not a greenprof capture", said)

    def test_usage(self):
        for url, words in (("nonsense", "is no URL"), ("ftp://host/", "there are: "), ("clickhouse:///x", "has no host"),
                           ("clickhouse://h/?colour=red", "unknown option 'colour'"), ("clickhouse://h/a-b", "letters, digits")):
            self.assertIn(words, self.ship("--to", url, status=2))
        self.assertIn("missing --to", self.ship(status=2))
        self.assertIn("--grain", self.ship("--to", "clickhouse://h/", "--grain", "0.5s", status=2))


if __name__ == "__main__":
    main(at_once=2)
