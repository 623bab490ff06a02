# SPDX-License-Identifier: MIT
"""OSProfiler's own traces, made by its own library in a real Redis, through `greenprof trace`; and Rally's report of them.

What is not installed is a SKIP with its reason.
"""
import contextlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path += [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder) for folder in ("..", "../consumer")]
import helpers  # noqa: E402

try:
    from osprofiler import profiler, notifier
    from osprofiler.drivers import base as drivers
    import redis
except ImportError as missing:
    helpers.skip(missing)

from redis_server import Redis
from support import GREENPROF, Trace, main, span


@profiler.trace("compute", hide_args=False)
def build_instance(name):
    with profiler.Trace("db", info={"db": {"statement": "SELECT </script><b> FROM t", "params": {"id": 12345678901234567890123}}}):
        time.sleep(.002)
    return name


@profiler.trace("rpc")
def fail():
    raise ValueError("no </script> host")


class OSProfiler(Trace):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.folder = folder
        cls.server = cls.enterClassContext(Redis(folder, "--requirepass", "pass/word"))
        cls.client = redis.StrictRedis(host="127.0.0.1", port=cls.server.port, password=cls.server.password)
        cls.url = cls.server.url + "/0"

    def setUp(self):
        super().setUp()
        self.client.flushall()
        self.driver = drivers.get_driver(self.url, project="nova", service="api", conf={})
        notifier.set(self.driver.notify)
        self.addCleanup(profiler.clean)

    def trace(self):
        """A request with a call, a query and a failure. Its id."""
        profiler.clean()
        profiler.init("SECRET_KEY")
        profiler.start("wsgi", info={"request": {"method": "POST", "path": "/servers", "query": "", "scheme": "http"}})
        build_instance("vm")
        with contextlib.suppress(ValueError):
            fail()
        profiler.stop()
        return profiler.get().get_base_id()

    def check(self, spans):
        self.assertEqual([(one["kind"], one["name"], one["depth"]) for one in spans],
                         [("rest_dispatch", "POST /servers", 0), ("compute", "__main__.build_instance", 1),
                          ("database", "SELECT </script><b> FROM t", 2), ("rpc_dispatch", "__main__.fail", 1)])
        self.assertEqual({(one["service"], one["host"]) for one in spans}, {("api", socket.gethostname())})
        self.assertIn("failed", spans[3]["flags"])
        self.assertEqual(spans[3]["fields"]["error.type"], "ValueError")
        self.assertEqual(spans[0]["fields"]["request.path"], "/servers")
        self.assertGreaterEqual(spans[2]["duration_ns"], 2000000)
        self.assertEqual(sum(one["critical_ns"] for one in spans), spans[0]["duration_ns"])
        self.assertIn("no_times", spans[0]["flags"])

    def test_redis(self):
        first, second = self.trace(), self.trace()
        listed = json.loads(self.succeed("list", self.url, "--json"))
        self.assertEqual({one["trace"] for one in listed}, {first.replace("-", ""), second.replace("-", "")})
        self.assertEqual([(one["span_count"], one["failed"]) for one in listed], [(4, True)] * 2)
        for id in (first, first.replace("-", ""), first[:9]):
            spans, _ = self.show(self.url, id=id)
            self.check(spans)

    def start_sentinel(self, name):
        """A Sentinel that knows the server as `name`. Its port."""
        for _ in range(20):
            port, = helpers.free_ports(1)
            path = self.put(f"sentinel-{port}.conf", f"port {port}\nbind 127.0.0.1\nsentinel monitor {name} 127.0.0.1 {self.server.port} 1\n"
                                                     f"sentinel auth-pass {name} {self.server.password}\n")
            process = subprocess.Popen(["redis-server", path, "--sentinel", "--dir", self.folder, "--logfile", "sentinel.log"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            self.addCleanup(lambda: (process.kill(), process.wait()))
            while process.poll() is None:
                with contextlib.suppress(redis.RedisError):
                    redis.StrictRedis(host="127.0.0.1", port=port).ping()
                    return port
                time.sleep(.05)
        raise RuntimeError("no Sentinel starts")

    def test_sentinel(self):
        """Both spellings: the consumers' and OSProfiler's; a Sentinel that is not there is passed over."""
        id, other = self.trace(), helpers.free_ports(1)[0]
        traces, mymaster = self.start_sentinel("traces"), self.start_sentinel("mymaster")
        password = self.server.password.replace("/", "%2F")
        for url in (f"redis+sentinel://:{password}@127.0.0.1:{other},127.0.0.1:{traces}/traces",
                    f"redis+sentinel://:{password}@127.0.0.1:{traces}/traces/0?timeout=1s",
                    f"redissentinel://:{password}@127.0.0.1:{mymaster}",
                    f"redissentinel://:{password}@127.0.0.1:{traces}/0?sentinel_service_name=traces"):
            self.check(self.show(url, id=id)[0])
            self.assertIn("4 ", self.succeed("list", url))
        for url, why in ((f"redis+sentinel://:{password}@127.0.0.1:{traces}/others", "the Sentinel knows no master 'others'"),
                         (f"redis+sentinel://:{password}@127.0.0.1:{other}/traces", "[Rr]efused"),
                         (f"redissentinel://:{password}@127.0.0.1:{self.server.port}", "knows no master|unknown command|says"),
                         (f"redis+sentinel://:{password}@127.0.0.1:{traces}", "is no redis")):
            self.expect(1, why, "show", id, url)

    def test_same_times_as_osprofiler_reports(self):
        """In whole milliseconds, as it has them."""
        id = self.trace()
        report = self.driver.get_report(id)
        spans = {one["span"]: one for one in self.show(self.url, id=id)[0]}
        todo, seen = list(report["children"]), 0
        while todo:
            node = todo.pop()
            todo += node["children"]
            seen += 1
            duration = spans[node["trace_id"]]["duration_ns"] / 1e6
            self.assertLessEqual(abs(node["info"]["finished"] - node["info"]["started"] - duration), 1.001)
            parent = spans[node["trace_id"]]["parent"]
            self.assertEqual(parent, None if node["parent_id"] == id else node["parent_id"])
        self.assertEqual(seen, len(spans))

    def test_report(self):
        """The JSON that its own command saves; without the events in it there are milliseconds at least."""
        id = self.trace()
        out = io.StringIO()
        report = self.driver.get_report(id)
        json.dump(report, out, default=str)
        file = self.put("report.json", out.getvalue())
        spans, document = self.show(file, id=id)
        self.check(spans)
        self.assertEqual(document, self.show(self.url, id=id)[1])
        todo = list(report["children"])
        while todo:
            node = todo.pop()
            todo += node["children"]
            node["info"] = {key: value for key, value in node["info"].items() if not key.startswith("meta.")}
        spans, _ = self.show(self.put("bare.json", json.dumps(report)), id=id)
        self.assertEqual([(one["kind"], one["depth"]) for one in spans], [("rest_dispatch", 0), ("compute", 1), ("db", 2), ("rpc_dispatch", 1)])
        self.assertIn("failed", spans[3]["flags"])

    def test_events_in_a_file(self):
        id = self.trace()
        events = [json.loads(one) for one in self.client.lrange("osprofiler_opt:" + id, 0, -1)]
        self.assertEqual(len(events), 8)
        self.check(self.show(self.put("list.json", json.dumps(events)), id=id)[0])
        self.check(self.show(self.put("lines.json", "".join(json.dumps(one) + "\n" for one in events)), id=id)[0])

    def test_many_events_and_open_spans(self):
        """More than one part of the list; a point that has not stopped is open."""
        profiler.init("SECRET_KEY")
        profiler.start("outer")
        for _ in range(1200):
            profiler.start("inner")
            profiler.stop()
        id = profiler.get().get_base_id()
        spans, document = self.show(self.url, id=id)
        self.assertEqual(document["span_count"], 1201)
        self.assertIn("open", spans[0]["flags"])
        self.assertEqual(sum("open" in one["flags"] for one in spans), 1)
        last = max(one["end_unix_ns"] for one in spans)
        self.assertEqual(spans[0]["end_unix_ns"], last)

    def test_old_schema_and_strangers(self):
        """A key an event, and keys of others."""
        client, id = self.client, self.trace()
        events = client.lrange("osprofiler_opt:" + id, 0, -1)
        client.flushall()
        for i, event in enumerate(events):
            client.set(f"osprofiler:{id}{i}", event)
        client.set("osprofiler_error:" + id, "{}")
        client.lpush("osprofiler_opt:11111111-1111-1111-1111-111111111111", "no JSON", json.dumps({"name": "x"}), b"\xff\0")
        self.check(self.show(self.url, id=id)[0])
        result = self.run_trace("list", self.url, "--json")
        self.assertEqual(len(json.loads(result.stdout)), 1)
        self.assertRegex(result.stderr.decode(), rf"^greenprof: redis://127.0.0.1:{self.server.port}/0: 3 records are no spans")

    def test_spans_of_the_consumer(self):
        """Its events say more, and are the same span as in its files."""
        base, one = "0af76519-16cd-43dd-8448-eb211c80319c", "00000000-0000-0000-0000-00000000002a"
        head = {"base_id": base, "trace_id": one, "parent_id": base, "project": None, "service": "api"}
        times = {key: 5 for key in ("cpu_ns", "ready_ns", "parked_ns", "blocked_ns", "preempted_ns", "waiting_ns", "switches")}
        start = dict(head, name="db-start", timestamp="2026-11-21T12:00:00.000000", info={"db": {"statement": "SELECT 1", "params": {}}, "host": "h-api"})
        stop = dict(head, name="db-stop", timestamp="2026-11-21T12:00:00.010000", info={
            "etype": "E", "message": "m", "host": "h-api",
            "greenprof": {"kind": "database", "name": "servers", "pid": 7, "coroutine": 3, **times, "fields": {"error.type": "E", "k": "v"}}})
        for events in ((start, stop), (stop, start)):
            self.client.flushall()
            for event in events:
                self.client.lpush("osprofiler_opt:" + base, json.dumps(event))
            spans, _ = self.show(self.url, id=base)
            self.assertEqual([(one["span"], one["parent"], one["kind"], one["name"], one["pid"], one["cpu_ns"]) for one in spans],
                             [(f"{42:016x}", None, "database", "servers", 7, 5)])
            self.assertEqual(spans[0]["fields"], {"error.type": "E", "k": "v"})
            self.assertEqual(set(spans[0]["flags"]), {"failed", "critical"})
            file = self.lines(span(42, None, 0, 10, kind="database", name="servers", flags=["failed"]))
            self.assertEqual(len(self.show(self.url, file, id=base)[0]), 1)

    def test_wrong_password(self):
        self.expect(1, rf"redis://127.0.0.1:{self.server.port}: the server says: .*", "list", f"redis://:wrong@127.0.0.1:{self.server.port}")
        self.expect(1, "has no spans", "list", self.url)

    def test_rally_charts(self):
        """Rally's own check of what hooks and scenarios hand to it."""
        try:
            from rally.task.processing import charts
        except ImportError as missing:
            self.skipTest(str(missing))
        id = self.trace()
        shown = json.loads(self.succeed("show", id, self.url, "--rally"))
        self.assertIsNone(charts.validate_output("complete", shown))
        self.assertIn(id, shown["title"])
        self.assertEqual(shown["description"], f"greenprof trace show {id.replace('-', '')} redis://:PASSWORD@127.0.0.1:{self.server.port}/0")
        listed = json.loads(self.succeed("list", self.url, "--rally"))
        self.assertEqual(set(listed), {"additive", "complete"})
        for kind, outputs in listed.items():
            for output in outputs:
                self.assertIsNone(charts.validate_output(kind, output))

    def rally(self, *arguments):
        environment = {**os.environ, "HOME": self.directory, "PYTHONWARNINGS": "ignore", "LC_ALL": "C.UTF-8"}
        return subprocess.run(["rally", "--config-file", self.path("rally.conf"), *arguments], capture_output=True, text=True, env=environment,
                              stdin=subprocess.DEVNULL, cwd=self.directory, timeout=120)

    def test_rally(self):
        """A task with a hook: its charts are in Rally's own JSON and HTML reports."""
        if shutil.which("rally") is None:
            self.skipTest("there is no rally")
        id = self.trace()
        self.put("rally.conf", f"[database]\nconnection = sqlite:///{self.path('rally.db')}\n")
        hook = f"{GREENPROF} trace list --rally {self.url}"
        self.put("task.json", json.dumps({"version": 2, "title": "t", "subtasks": [{"title": "s", "workloads": [{
            "scenario": {"Dummy.dummy": {"sleep": 0}}, "runner": {"constant": {"times": 2, "concurrency": 1}},
            "hooks": [{"description": "traces", "action": {"sys_call": hook}, "trigger": {"event": {"unit": "iteration", "at": [2]}}}]}]}]}))
        for command in (["db", "create"], ["env", "create", "--name", "e"], ["task", "start", self.path("task.json")]):
            result = self.rally(*command)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        report = self.rally("task", "report", "--json", "--out", self.path("report.json"))
        self.assertEqual(report.returncode, 0, report.stdout + report.stderr)
        with open(self.path("report.json")) as file:
            workload = json.load(file)["tasks"][0]["subtasks"][0]["workloads"][0]
        output = workload["hooks"][0]["results"][0]["output"]
        self.assertEqual([row[0] for row in output["complete"][0]["data"]["rows"]], [id])
        self.assertEqual(output["additive"][0]["data"][0][0], "api: rest_dispatch POST /servers")
        report = self.rally("task", "report", "--html-static", "--out", self.path("report.html"))
        self.assertEqual(report.returncode, 0, report.stdout + report.stderr)
        with open(self.path("report.html")) as file:
            page = file.read()
        self.assertIn(id, page)
        self.assertIn("greenprof trace show " + id.replace("-", ""), page)


if __name__ == "__main__":
    main()
