# SPDX-License-Identifier: MIT
"""A store's URL where a FILE may stand: what was shipped is found again, to the nanosecond, and nothing of others."""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "page"))
import page_data  # noqa: E402
from captures import Capture
from shipping import ShipTest, Store, greenprof

LEAVES = {1: "[preempted]", 2: "[parked]", 3: "[ready]", 4: "[waiting]", 5: "[blocked]"}


class Asking(Store, ShipTest):
    def setUp(self):
        super().setUp()
        metas = ((("OTEL_SERVICE_NAME", "orders"), ("OTEL_RESOURCE_ATTRIBUTES", "service.version=41")),
                 (("OTEL_SERVICE_NAME", "o'hara\\"), ("OTEL_RESOURCE_ATTRIBUTES", "service.version=42")))
        self.files = [Capture(self.path(f"{seed}.greenprof"), seed, metas=metas[seed - 1]).finish() for seed in (1, 2)]
        self.ship("--to", self.store.url(), GREENPROF_LABELS="zone=z1")

    def folded(self, *arguments, url=None):
        text, _ = greenprof("export", url or self.store.url(), "--format", "folded", "--clock", "wall", *arguments)
        return dict(line.rpartition(" ")[::2] for line in text.splitlines())

    def total_ns(self, *arguments, url=None):
        return json.loads(greenprof("export", url or self.store.url(), "--format", "json", "--clock", "wall", *arguments)[0])["total_ns"]

    def truth(self, *files):
        stacks = {}
        for capture in files:
            for (_, _, state, stack), ns in capture.samples.items():
                path = ";".join([frame.partition(":")[0] for frame in stack] + ([LEAVES[state]] if state else []))
                stacks[path] = stacks.get(path, 0) + ns
        return stacks

    def test_every_nanosecond(self):
        """All of both, then each service by itself; stacks to the microsecond that a folded file has."""
        self.assertEqual(self.total_ns(), sum(sum(capture.samples.values()) for capture in self.files))
        found, truth = self.folded(), self.truth(*self.files)
        for path, weight in found.items():
            self.assertLessEqual(abs(int(weight) - truth[path] / 1000), 1, path)
        self.assertEqual({path for path, ns in truth.items() if ns >= 2000} - set(found), set())
        for capture, service, version in zip(self.files, ("orders", "o'hara\\"), ("41", "42")):
            whole = sum(capture.samples.values())
            self.assertEqual(self.total_ns("--service", service), whole)
            self.assertEqual(self.total_ns(url=self.store.url("?version=" + version)), whole)
            self.assertEqual(self.total_ns("--host", f"host{capture.pid - 1000 & 1}"), whole)
        self.assertEqual(self.total_ns("--label", "zone=z1", "--from", "2026-09-21T13:33:20Z"), self.total_ns())
        trace = self.files[0].traces[1]
        self.assertEqual(self.total_ns("--trace", trace), sum(ns for (of, *_), ns in self.files[0].samples.items() if of == trace))

    def test_divided(self):
        """By what only a store knows, and by what a capture knows as well."""
        for by, roots in (("service", {"[orders]", "[o'hara\\]"}), ("version", {"[41]", "[42]"}), ("host", {"[host0]", "[host1]"}),
                          ("endpoint", {"[-]", "[rest_dispatch GET /servers]"})):
            self.assertEqual({path.partition(";")[0] for path in self.folded("--by", by)}, roots)
            text, _ = greenprof("report", self.store.url(), "--by", by, "--clock", "wall")
            for root in roots:
                self.assertIn(root[1:-1], text)
        self.assertEqual({path.partition(";")[0] for path in self.folded("--by", "trace")},
                         {f"[trace {trace}]" if int(trace, 16) else "[no trace]" for capture in self.files
                          for trace, *_ in capture.samples})
        self.assertIn("[thread main]", {path.partition(";")[0] for path in self.folded("--by", "coroutine")})

    def spans(self, trace, *sources):
        tree = json.loads(greenprof("trace", "show", trace, *sources, "--json")[0])
        kept = ("span", "parent", "kind", "name", "start_unix_ns", "end_unix_ns", "host", "pid", "cpu_ns", "ready_ns", "flags")
        return sorted([span[key] for key in kept] for span in tree["spans"])

    def test_spans(self):
        """Trees of calls as the captures have them; filters; a store beside a capture; no other tenant's."""
        paths = [capture.path for capture in self.files]
        traces = sorted({trace for capture in self.files for trace, _ in capture.requests.values()})
        for trace in traces[:3]:
            self.assertEqual(self.spans(trace, self.store.url()), self.spans(trace, *paths))
            self.assertEqual(self.spans(trace, self.store.url(), *paths), self.spans(trace, *paths))
        many = sum(trace[:12] == traces[0][:12] for trace in traces)
        self.assertIn(f"is the beginning of {many} traces", greenprof("trace", "show", traces[0][:12], self.store.url(), status=1)[1])
        of_all, of_store = (json.loads(greenprof("trace", "list", *sources, "--json")[0])
                            for sources in (paths, [self.store.url()]))
        self.assertEqual({row["root"].pop("service") for row in of_store}, {"orders", "o'hara\\"})  # as they were shipped
        self.assertEqual({row["root"].pop("service") for row in of_all}, {"service"})
        self.assertEqual(of_store, of_all)
        mine = {trace for trace, _ in self.files[0].requests.values()}
        for choice in ("?service=orders", "?version=41", "?service=orders&endpoint=rest_dispatch%20GET%20/servers",
                       "?label=zone:z1&service=orders&from=2026-09-21T13:33:20Z"):
            listed = json.loads(greenprof("trace", "list", self.store.url(choice), "--json")[0])
            self.assertEqual({row["trace"] for row in listed}, mine, choice)
        for choice in ("?tenant=other", "?from=-1s", "?service=nosuch"):
            self.assertIn("no spans", greenprof("trace", "list", self.store.url(choice), status=1)[1])

    def test_outputs(self):
        """A report, a graph, a page, and two versions beside one another."""
        self.assertIn("function_1", greenprof("report", self.store.url())[0])
        for name in ("graph.svg", "page.html"):
            greenprof("flamegraph", self.store.url(), "--clock", "wall", "-o", self.path(name))
            self.assertGreater(os.path.getsize(self.path(name)), 5000)
        text, _ = greenprof("diff", self.store.url("?version=41"), self.store.url("?version=42"), "--clock", "wall")
        self.assertIn("function_1", text)
        greenprof("diff", self.store.url("?version=41"), self.store.url("?version=42"), "-o", self.path("diff.html"))

    def test_no_password_in_pages(self):
        url = self.store.url().replace("clickhouse://", "clickhouse://shipper:secret@")
        greenprof("flamegraph", url, "-o", self.path("page.html"))
        command = page_data.read_page(self.path("page.html"))[0]["command"]
        self.assertIn("clickhouse://shipper", command)
        self.assertNotIn("secret", command)

    def test_tenants(self):
        """None sees another's, whatever it asks."""
        for tenant in ("other", "' OR 1=1 -- ", "\\' OR '1'='1"):
            error = greenprof("report", self.store.url("?tenant=" + tenant.replace(" ", "%20").replace("\\", "%5C")), status=1)[1]
            self.assertIn("no samples that were chosen", error)
        for value in ("' OR 1=1 -- ", "\\", "\\' OR 1=1 -- ", "'); DROP TABLE greenprof_samples; --"):
            for option in ("--service", "--host", "--version", "--endpoint"):
                self.assertIn("no samples that were chosen", greenprof("report", self.store.url(), option, value, status=1)[1])
            self.assertIn("no samples", greenprof("report", self.store.url(), "--label", f"zone={value}", status=1)[1])
        self.assertEqual(self.total_ns(), sum(sum(capture.samples.values()) for capture in self.files))

    def test_tenants_of_one_program(self):
        """Two that run the same program have the same stacks, and traces even: each sees its own, once."""
        alone, trace = self.folded(), self.files[0].traces[1]
        spans = self.spans(trace, self.store.url())
        self.ship("--to", self.store.url("?tenant=b"))
        for url in (self.store.url(), self.store.url("?tenant=b")):
            self.assertEqual(self.total_ns(url=url), sum(sum(capture.samples.values()) for capture in self.files))
            self.assertEqual(self.folded(url=url), alone)
            self.assertEqual(self.spans(trace, url), spans)
        self.assertEqual(self.total_ns(url=self.store.url("?label=zone:z1")), self.total_ns())
        self.assertIn("no samples", greenprof("report", self.store.url("?tenant=b&label=zone:z1"), status=1)[1])

    def test_refused(self):
        output = self.path("out.svg")
        for url, words in ((self.store.url("?tenant=x%00"), "two hex digits"), (self.store.url("?tenent=a"), "unknown option of the URL: tenent"),
                           (self.store.url("?from=yesterday"), "from: 'yesterday' has no meaning"),
                           (self.store.url("?label=zone"), "label: 'zone' has no meaning"),
                           (self.store.url(database="absent"), "absent"),
                           (self.store.url().replace("clickhouse://", "clickhouse://shipper:wrong@"), "shipper"),
                           ("clickhouse://127.0.0.1:1/default", "127.0.0.1")):
            error = greenprof("flamegraph", url, "-o", output, status=1)[1]
            self.assertIn(words, error)
            self.assertNotIn("wrong@", error)
            self.assertFalse(os.path.exists(output))
        for by in ("request", "critical-path"):
            self.assertIn("captures or one store", greenprof("report", self.store.url(), self.files[0].path, "--by", by, status=2)[1])
        self.assertIn("parameters of its URL", greenprof("report", self.store.url(), "--by", "request", "--from", "1s", status=2)[1])
        for arguments in (("--by", "service"), ("--service", "a")):
            self.assertIn("clickhouse://", greenprof("report", self.files[0].path, *arguments, status=2)[1])

    def test_stacks_twice(self):
        """A stack that was sent again, as before a merge of the table, counts once."""
        before = self.folded()
        self.store.query("INSERT INTO greenprof_stacks SELECT * FROM greenprof_stacks")
        self.assertEqual(self.folded(), before)


if __name__ == "__main__":
    unittest.main()
