# SPDX-License-Identifier: MIT
"""The Redis consumer: Debian's server, OSProfiler's own command as the reader, and servers that are gone, hung or lie."""
import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

from redis_server import Redis  # first: it skips where there is none
import osprofiler
from support import Case, HOST, Host, until


def uuid(trace):
    return "-".join((trace[:8], trace[8:12], trace[12:16], trace[16:20], trace[20:]))


def osprofiler_command(url, *words, **environment):
    done = subprocess.run(["osprofiler", *words, "--connection-string", url], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **environment})
    if done.returncode != 0:
        raise AssertionError(words, done.stdout, done.stderr)
    return done.stdout


BELOW_OSPROFILER = """
import sys
import greenprof
from osprofiler import profiler, web
trace, parent, url = sys.argv[1:]
greenprof.set_hmac_keys("key")
profiler.init("key", base_id=trace, parent_id=parent)
context = greenprof.context_read(web.get_trace_id_headers())
greenprof.consumer(url)
with context.span("rest_dispatch", "GET /x"):
    with greenprof.span("database", "SELECT 1"):
        pass
greenprof.consumer_close()
"""


class Stored(Case):
    """Has a Redis, which is empty when a test begins."""

    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.redis = cls.enterClassContext(Redis(folder, "--requirepass", "p@ss:/"))

    def setUp(self):
        super().setUp()
        self.redis.ask("FLUSHALL")


class Schema(Stored):
    def test_osprofiler_reads_it(self):
        with Host(GREENPROF_SERVICE="api", GREENPROF_SPOOL=self.folder) as host:
            url = self.redis.url + "/3"
            host.do(f"open {url}", "requests 2", "failed", "flush 20000")
            self.assertEqual(host.status()["sent"], 9)
            listed = osprofiler_command(url, "trace", "list")
            failed = osprofiler_command(url, "trace", "list", "--error-trace", "True")
            shown = json.loads(osprofiler_command(url, "trace", "show", "--json", uuid(host.trace(3))))
            # Debian's package lacks the template; this one shows that the data come through the same way.
            shutil.copytree(os.path.dirname(osprofiler.__file__), self.path("package/osprofiler"))
            with open(self.path("package/osprofiler/cmd/template.html"), "w", encoding="utf-8") as template:
                template.write("<script>$DATA</script>$LOCAL")
            page = osprofiler_command(url, "trace", "show", "--html", uuid(host.trace(3)), PYTHONPATH=self.path("package"))
        for number in (1, 2, 3):
            self.assertIn(uuid(host.trace(number)), listed)
        self.assertNotIn(uuid(host.trace(1)), failed)
        self.assertIn(uuid(host.trace(3)), failed)
        self.assertEqual(json.loads(page.strip()[len("<script>"):page.strip().index("</script>")]), shown)

        self.assertEqual({name: count["count"] for name, count in shown["stats"].items()}, {"wsgi": 1, "db": 1, "cache": 1})
        (root,) = shown["children"]
        (database,) = root["children"]
        (cache,) = database["children"]
        self.assertEqual(cache["children"], [])
        self.assertEqual([node["info"]["name"] for node in (root, database, cache)], ["wsgi", "db", "cache"])
        self.assertEqual([node["info"]["exception"] for node in (root, database, cache)], ["NotFound", "None", "None"])
        self.assertEqual({node["info"]["service"] for node in (root, database, cache)}, {"api"})
        self.assertEqual(root["parent_id"], uuid(host.trace(3)))
        self.assertEqual(root["info"]["meta.raw_payload.wsgi-start"]["info"]["request"],
                         {"method": "GET", "path": "/servers/all-of-them", "query": "limit=3", "scheme": "http"})
        self.assertEqual(database["info"]["meta.raw_payload.db-start"]["info"]["db"], {"statement": "SELECT 1", "params": {}})
        more = root["info"]["meta.raw_payload.wsgi-stop"]["info"]["greenprof"]
        self.assertEqual((more["kind"], more["pid"], more["fields"]["http.method"]), ("rest_dispatch", host.pid, "GET"))

    def test_parents_of_other_processes(self):
        key, theirs = "osprofiler_opt:" + uuid("ab".ljust(32, "0")), "0af76519-16cd-43dd-8448-eb211c80319c"
        with Host(GREENPROF_SPOOL=self.folder) as host:
            host.do(f"open {self.redis.url}", "foreign " + theirs, "foreign none", "flush 20000")
            parents = [json.loads(self.redis.ask("LINDEX", key, str(i)))["parent_id"] for i in range(4)]
        self.assertEqual(parents, ["00000000-0000-0000-0000-000000000077"] * 2 + [theirs] * 2)

    def test_request_below_a_span_of_osprofiler(self):
        trace, parent = "4bf92f35-77b3-4da6-a3ce-929d0e0e4736", "11111111-2222-4333-8444-555555555555"
        done = subprocess.run([sys.executable, "-c", BELOW_OSPROFILER, trace, parent, self.redis.url], capture_output=True, text=True,
                              timeout=120, env={**os.environ, "GREENPROF_SPOOL": self.folder})
        if "ModuleNotFoundError: No module named 'greenprof'" in done.stderr:
            self.skipTest("the package greenprof was not built")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        shown = json.loads(osprofiler_command(self.redis.url, "trace", "show", "--json", trace))
        (root,) = shown["children"]
        (database,) = root["children"]
        self.assertEqual((root["parent_id"], root["info"]["name"], database["info"]["name"]), (parent, "wsgi", "db"))

    def test_what_is_another_programs_is_refused(self):
        redis = self.redis
        with Host(GREENPROF_SPOOL=self.folder) as host:
            redis.ask("SET", f"osprofiler_opt:{uuid(host.trace(2))}", "mine")
            host.do(f"open {redis.url}?ttl=1000s", "requests 3")
            status = until(lambda: (lambda s: s if s["sent"] + s["refused"] == 9 and not s["spooled"] else None)(host.status()),
                           "all are dealt with")
            self.assertEqual((status["sent"], status["refused"]), (6, 3))
            for number, kind in ((1, "list"), (2, "string"), (3, "list")):
                self.assertEqual(redis.ask("TYPE", f"osprofiler_opt:{uuid(host.trace(number))}"), kind)
            self.assertGreater(int(redis.ask("TTL", f"osprofiler_opt:{uuid(host.trace(3))}")), 900)


class Trouble(Stored):
    def spools(self):
        return [self.path(name) for name in os.listdir(self.folder) if name.endswith(".spool")]

    def spans_in(self, redis, host, number):
        events = redis.ask("LRANGE", f"osprofiler_opt:{uuid(host.trace(number))}", "0", "-1").splitlines()
        return len({json.loads(event)["trace_id"] for event in events if event})

    def check_all_arrived(self, redis, host, count):
        self.assertEqual([self.spans_in(redis, host, number) for number in range(1, count + 1)], [3] * count)

    def test_server_is_killed_and_comes_back(self):
        with Host(GREENPROF_SPOOL=self.folder) as host:
            with Redis(self.folder) as redis:
                host.do(f"open {redis.url}", "requests 2", "flush 20000")
                self.check_all_arrived(redis, host, 2)
            host.do(*["requests 5"] * 4)
            until(lambda: host.status()["spooled"] == 60, "all are spooled")
            self.assertEqual(len(self.spools()), 1)
            self.assertEqual([os.stat(path).st_mode & 0o777 for path in self.spools()], [0o600])
            with Redis(self.folder, port=redis.port) as redis:
                status = host.balance(lambda status: status["sent"] == 66, "all are sent")
                self.assertEqual([self.spans_in(redis, host, number) for number in range(3, 23)], [3] * 20)
                self.assertEqual((status["spooled"], status["last_error"], host.end()), (0, 0, ""))
        self.assertEqual(self.spools(), [])

    def test_server_hangs(self):
        redis = self.redis
        with Host(GREENPROF_SPOOL=self.folder) as host:
            self.addCleanup(os.kill, redis.pid, signal.SIGCONT)
            host.do(f"open {redis.url}?timeout=100ms", "requests 2", "flush 20000")
            os.kill(redis.pid, signal.SIGSTOP)
            host.do("requests 3")
            until(lambda: host.status()["spooled"] >= 9 and host.status()["failures"] >= 2, "it was tried, and spooled")
            os.kill(redis.pid, signal.SIGCONT)
            until(lambda: host.status()["sent"] == 15, "all are sent")
            self.check_all_arrived(redis, host, 5)

    def test_ends_while_server_hangs(self):
        redis = self.redis
        self.addCleanup(os.kill, redis.pid, signal.SIGCONT)
        with Host(GREENPROF_SPOOL=self.folder) as host:
            host.do(f"open {redis.url}?timeout=100ms")
            os.kill(redis.pid, signal.SIGSTOP)
            host.do("requests 4")
            self.assertEqual(host.end(), "")
        self.assertEqual(len(self.spools()), 1)
        os.kill(redis.pid, signal.SIGCONT)
        # The next process sends the unsent spans, under the name of their own.
        with Host(GREENPROF_SPOOL=self.folder, GREENPROF_SERVICE="next") as other:
            other.do(f"open {redis.url}")
            until(lambda: other.status()["recovered"] >= 12, "it is sent")
            self.check_all_arrived(redis, host, 4)
            event = json.loads(redis.ask("LINDEX", f"osprofiler_opt:{uuid(host.trace(1))}", "0"))
            self.assertEqual(event["service"], "consumer_host")
            until(lambda: self.spools() == [], "and removed")

    def test_torn_spool(self):
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))  # not listening: refused
            url = f"redis://127.0.0.1:{nobody.getsockname()[1]}"
            with Host(GREENPROF_SPOOL=self.folder) as host:
                host.do(f"open {url}", "requests 4")
                host.end()
            (path,) = self.spools()
            with open(path, "rb") as file:
                whole = file.read()
            for name, torn in (("cut", whole[:-5]), ("bent", whole[:-16] + b"\xff" * 8 + whole[-8:]),
                               ("short", whole[:100]), ("other", b"x" * 4000)):
                with open(os.path.join(self.folder, os.path.basename(path).replace(str(host.pid), name)), "wb") as file:
                    file.write(torn)
            port = nobody.getsockname()[1]
        with Redis(self.folder, port=port) as redis, Host(GREENPROF_SPOOL=self.folder) as other:
            other.do(f"open {url}")
            until(lambda: len(self.spools()) == 2, "those that are none are left alone")
            self.check_all_arrived(redis, host, 4)
            self.assertEqual(other.status()["recovered"], 12 + 11 + 11)

    def test_spool_is_bounded(self):
        with Host(GREENPROF_SPOOL=self.folder) as host:
            host.do("open redis://127.0.0.1:1?spool_size=20K&queue=32K")
            spans = host.overfill()
            host.balance(lambda status: status["given"] + status["unheard"] == spans and status["spooled"] > 20, "all are given")
            host.end()
        self.assertLessEqual(os.stat(self.spools()[0]).st_size, 20 << 10)

    def test_places_for_the_spool_that_will_not_do(self):
        os.mkdir(self.path("open"))
        os.chmod(self.path("open"), 0o777)
        os.mkdir(self.path("elsewhere"))
        os.symlink(self.path("elsewhere"), self.path("link"))
        for name in ("open", "link", "no/such"):
            with Host() as host:
                host.do(f"open redis://127.0.0.1:1?spool={self.path(name)}", "requests 2")
                until(lambda: host.status()["failures"] >= 2, "it was tried")
                status = host.status()
                self.assertEqual((status["queued"], status["spooled"]), (6, 0))
                self.assertEqual(host.say("close"), "-110")
        self.assertEqual(os.listdir(self.path("open")) + os.listdir(self.path("elsewhere")), [])


class Liars(Case):
    ANSWERS = (b"HTTP/1.1 400 Bad Request\r\n\r\n", b":0\r\n" * 9, b":-7\r\n", b"$999999999999\r\n", b"*1000000000\r\n", b"-\r\n",
               b"*2\r\n*2\r\n*2\r\n", b"+OK\r\n" * 3, os.urandom(70000), b":" + b"1" * 70000, b"\r\n", b"", b":2\r\n" * 100000, b"\0" * 64,
               b"*2\r\n:1\r\n:2\r\n", b"*2\r\n$-1\r\n$1\r\nx\r\n", b"*-1\r\n", b"*0\r\n", b"_\r\n", b"%1\r\n+a\r\n+b\r\n", b"$5000\r\n" + b"x" * 5000)

    def serve(self, listener):
        for number in range(1 << 30):
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                try:
                    peer.recv(1 << 16)
                    peer.sendall(self.ANSWERS[number % len(self.ANSWERS)])
                except OSError:
                    pass
                self.answered.release()

    def test_any_answer(self):
        self.answered = threading.Semaphore(0)
        with socket.create_server(("127.0.0.1", 0)) as listener, Host(GREENPROF_SPOOL=self.folder) as host:
            threading.Thread(target=self.serve, args=(listener,), daemon=True).start()
            url = f"redis://127.0.0.1:{listener.getsockname()[1]}?timeout=200ms"
            for _ in self.ANSWERS:  # anew each time, as it would wait ever longer
                host.do(f"open {url}", "requests 1")
                self.assertTrue(self.answered.acquire(timeout=60))
                until(lambda: host.status()["failures"] or host.status()["recovered"] or host.status()["sent"], "an answer")
                status = host.status()
                self.assertLessEqual(status["refused"], 0)
                host.do("close")
            host.end()


class WithoutItsLibrary(Case):
    def test_is_said_once_and_clearly(self):
        """Redis is in a library of its own: an empty file stands in its place."""
        library = os.path.join(os.environ["GREENPROF_LIBRARIES"], "libgreenprof-redis.so.0")
        hidden = ["bwrap", "--dev-bind", "/", "/", "--bind", "/dev/null", os.path.realpath(library)]
        if shutil.which("bwrap") is None or subprocess.run([*hidden, "true"], capture_output=True).returncode != 0:
            self.skipTest("no bubblewrap, or no namespaces to be had")
        for url in ("redis://:secret@127.0.0.1:1", "redis+sentinel://:secret@127.0.0.1:1/m"):
            done = subprocess.run([*hidden, HOST], input=f"open {url}\nopen null:\n", capture_output=True, text=True, timeout=120,
                                  env={**os.environ, "GREENPROF_CONSUMER": url})
            scheme = url.partition(":")[0]
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (0, f"-{errno.ELIBACC}\n0\n", f"greenprof: GREENPROF_CONSUMER: {scheme}: libgreenprof-redis.so.0 is not there, "
                                                            "or lacks a library\n"))


if __name__ == "__main__":
    unittest.main()
