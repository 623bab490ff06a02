# SPDX-License-Identifier: MIT
"""Calls of Python libraries as spans of their request, and requests of WSGI applications."""
import json
import unittest
import uuid

import support
from test_spans import FAILED, REMOTE_PARENT, REPAIRED, spans_of

support.require_package()
support.require("sqlalchemy", "redis", "urllib3", "oslo_messaging")

REQUEST, REST_CALL, REST_DISPATCH, RPC_CALL, RPC_DISPATCH, DATABASE, CACHE, TASK = 1, 2, 3, 4, 5, 6, 7, 9
TRACE = "0af7651916cd43dd8448eb211c80319c"


class Libraries(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        run = support.Run("library_uses.py")
        cls.told = json.loads(run.output)
        cls.spans = sorted(spans_of(run), key=lambda span: span["start_ns"])
        cls.by_name = {span["name"]: span for span in cls.spans}

    def test_calls(self):
        request = self.by_name["request"]
        calls = [span for span in self.spans if span["parent_id"] == request["id"] and span["kind"] != RPC_DISPATCH]
        self.assertEqual([(span["kind"], span["name"], bool(span["flags"] & FAILED)) for span in calls
                          if not span["name"].startswith("sqlite step")], [
            (DATABASE, "sqlite SELECT", False), (DATABASE, "sqlite NONSENSE", True),
            (CACHE, "redis SET", False), (CACHE, "redis BAD", True), (CACHE, "redis pipeline", False),
            (REST_CALL, "GET 127.0.0.1", False), (RPC_CALL, "add", False)])
        self.assertNotIn("secret'", json.dumps([span["fields"] for span in calls]))
        fields = dict(next(span for span in calls if span["kind"] == REST_CALL)["fields"])
        self.assertRegex(fields["http.url"], r"^http://127\.0\.0\.1:\d+/path$")
        self.assertEqual(fields["http.status_code"], "204")

    def test_the_other_side_is_told(self):
        call = self.by_name["GET 127.0.0.1"]
        self.assertEqual(self.told["traceparents"], [None, f"00-{TRACE}-{call['id']:016x}-01", None])
        rpc = next(span for span in self.spans if span["kind"] == RPC_CALL)
        dispatch = next(span for span in self.spans if span["kind"] == RPC_DISPATCH)
        self.assertEqual((dispatch["parent_id"], dispatch["trace"], dispatch["name"]), (rpc["id"], TRACE, "add"))
        self.assertEqual([span["parent_id"] for span in self.spans if span["name"] == "adding"][1], dispatch["id"])
        self.assertEqual(self.told["context"], ["user"])

    def test_errors_are_those_of_the_library(self):
        self.assertEqual((self.told["statement"], self.told["command"], self.told["sum"], self.told["names"]),
                         ("OperationalError", "ResponseError", 3, "ValueError"))

    def test_nothing_once_restored(self):
        restored = self.by_name["restored"]
        kinds = {span["kind"] for span in self.spans if span["parent_id"] == restored["id"]}
        self.assertLessEqual(kinds, {DATABASE})  # SQLite's own calls

    def test_wsgi(self):
        page, within = self.by_name["GET /page"], self.by_name["within"]
        self.assertEqual((page["kind"], page["trace"], page["parent_id"], page["flags"]),
                         (REST_DISPATCH, TRACE, 0x00f067aa0ba902b7, REMOTE_PARENT))
        self.assertEqual(dict(page["fields"])["http.status_code"], "200")
        self.assertEqual(within["parent_id"], page["id"])
        self.assertEqual((self.told["body"], self.told["after"]), (["a", "b"], None))


class Statements(unittest.TestCase):
    def check(self, first):
        """One span a statement, whoever listens first, of the id that OSProfiler's store has; none of them is repaired."""
        run = support.Run("statements.py", first)
        events, spans = json.loads(run.output), sorted(spans_of(run), key=lambda span: span["start_ns"])
        roots = [span for span in spans if span["kind"] != DATABASE]
        self.assertEqual([(span["name"], span["flags"] & REPAIRED) for span in roots], [("of greenprof", 0), ("GET /", 0)])
        said = [[bool(span["flags"] & FAILED) for span in spans if span["kind"] == DATABASE and span["parent_id"] == root["id"]] for root in roots]
        self.assertEqual(said, [[False, False, True, False]] * 2)
        self.assertFalse([span for span in spans if span["flags"] & REPAIRED])
        ids = {span["id"] for span in spans if span["kind"] == DATABASE and span["parent_id"] in {root["id"] for root in roots}}
        told = [uuid.UUID(event["trace_id"]).int for event in events if event["name"] == "db-start"]
        self.assertEqual((len(told), set(told)), (8, ids))
        self.assertEqual([event["name"] for event in events].count("db-stop"), 8)

    def test_statements(self):
        support.require("osprofiler")
        for first in "greenprof", "osprofiler":
            with self.subTest(first=first):
                self.check(first)


class Points(unittest.TestCase):
    def test_points_of_osprofiler(self):
        """A span each, of the same trace, ids and parents as OSProfiler's driver is told."""
        try:
            import osprofiler  # noqa
        except ImportError as missing:
            self.skipTest(str(missing))
        run = support.Run("points.py")
        events, spans = json.loads(run.output), sorted(spans_of(run), key=lambda span: span["start_ns"])
        self.assertEqual([(span["kind"], span["name"], bool(span["flags"] & FAILED)) for span in spans], [
            (RPC_DISPATCH, "select_destinations", False), (DATABASE, "db SELECT", False), (TASK, "__main__.fail", True),
            (REQUEST, "around", False),
            (RPC_DISPATCH, "select_destinations", False), (DATABASE, "db SELECT", False), (TASK, "__main__.fail", True)])
        self.assertNotIn("secret", json.dumps([span["fields"] for span in spans]))
        names = ["rpc-start", "db-start", "compute-start", "compute-stop", "db-stop", "rpc-stop"]
        self.assertEqual([event["name"] for event in events], names * 3)
        first, starts = spans[:3], events[:3]
        self.assertEqual([uuid.UUID(event["trace_id"]).int for event in starts], [span["id"] for span in first])
        self.assertEqual([uuid.UUID(event["parent_id"]).int for event in starts], [span["parent_id"] for span in first])
        self.assertEqual({span["trace"] for span in first}, {TRACE})
        self.assertEqual(first[0]["parent_id"], 0x00f067aa0ba902b7)
        self.assertEqual(spans[4]["parent_id"], spans[3]["id"])  # below what is open, in its trace
        self.assertEqual([uuid.UUID(event["trace_id"]).int >> 64 != 0 for event in events[12:]], [True] * 6)


if __name__ == "__main__":
    unittest.main()
