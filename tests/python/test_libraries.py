# SPDX-License-Identifier: MIT
"""Calls of Python libraries as spans of their request, and requests of WSGI applications."""
import json
import os
import re
import subprocess
import tempfile
import unittest
import uuid

import support
from test_spans import FAILED, REMOTE_PARENT, REPAIRED, spans_of

support.require_package()
support.require("sqlalchemy", "redis", "urllib3", "oslo_messaging")

REQUEST, REST_CALL, REST_DISPATCH, RPC_CALL, RPC_DISPATCH, DATABASE, CACHE, TASK, EXTERNAL_COMMAND = 1, 2, 3, 4, 5, 6, 7, 9, 10
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
        spans = [span for span in spans if span["kind"] != DATABASE or "db.system" in dict(span["fields"])]  # a row of SQLite may be slow
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


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../include/greenprof/trace.h")) as header:
    HEADER = header.read()
ENUM = {kind: int(number) for kind, number in re.findall(r"PROF_SPAN_([A-Z_]+) = (\d+)", HEADER[HEADER.index("enum prof_span_kind"):HEADER.index("prof_span_kind_t;")])}
FIELDS = {}
for kind, key in re.findall(r'X\(([A-Z_]+), "([a-z_.]+)", [A-Z]+\)', HEADER):
    FIELDS.setdefault(kind, set()).add(key)
KINDS = {**dict.fromkeys(("asyncpg", "psycopg", "pymongo", "pymysql"), DATABASE), **dict.fromkeys(("memcache", "pymemcache", "redis"), CACHE),
         **dict.fromkeys(("aiohttp", "httpx", "urllib3"), REST_CALL), **dict.fromkeys(("grpc", "kombu", "pika"), RPC_CALL),
         **dict.fromkeys(("oslo_concurrency", "subprocess"), EXTERNAL_COMMAND)}


class Clients(unittest.TestCase):
    """Without a word in the program: each library of the table, each by its own switch."""

    def calls(self, **environment):
        run = support.Run("client_calls.py", **environment)
        spans = spans_of(run)
        names = {span["id"]: span["name"] for span in spans if span["kind"] == REQUEST}
        found = {}
        for span in spans:
            if span["parent_id"] in names:
                found.setdefault(names[span["parent_id"]], []).append(span)
        return json.loads(run.output), found

    def test_each(self):
        there, found = self.calls()
        self.assertGreaterEqual(set(there), {"aiohttp", "pymysql", "redis", "subprocess", "urllib3"})
        for library, count in there.items():
            with self.subTest(library):
                self.assertEqual([span["kind"] for span in found.get(library, [])], [KINDS[library]] * count)
                self.assertNotIn("secret", json.dumps([(span["name"], span["fields"]) for span in found[library]]))
                kind = next(kind for kind, number in ENUM.items() if number == KINDS[library])
                self.assertLessEqual({key for span in found[library] for key, _ in span["fields"]}, FIELDS["ANY"] | FIELDS.get(kind, set()))
        self.assertEqual([(span["name"], dict(span["fields"])) for span in found["whole"]], [("true", {"process.exit_code": "0"})])

    def test_switches(self):
        there, _ = self.calls()
        for switched in (sorted(there)[::2], sorted(there)[1::2]):
            _, found = self.calls(options=["--spans", ",".join(f"-{name}" for name in switched)])
            self.assertEqual(set(found) - {"whole"}, set(there) - set(switched))

    def test_at_run_time(self):
        """Of a process that records, by a command; and by a file that changes, which is looked at once a second."""
        with tempfile.TemporaryDirectory() as folder:
            rules, capture = os.path.join(folder, "rules"), os.path.join(folder, "x.greenprof")
            with open(rules, "w") as file:
                file.write("-redis\n")
            with subprocess.Popen([support.GREENPROF, "run", "-q", "--control", "--spans", "@" + rules, "-o", capture, "--", support.PYTHON, "-B",
                                   os.path.join(support.PROGRAMS, "client_calls.py"), "rounds"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
                def ask(name):
                    process.stdin.write(name + "\n")
                    process.stdin.flush()
                    return process.stdout.readline()

                def on():
                    return json.loads(support.command("status", str(process.pid), "--json"))["spans"]
                process.stdout.readline()
                ask("file")
                support.command("start", str(process.pid), "--spans", "redis,-sqlite")
                ask("command")
                with open(rules, "w") as file:
                    file.write("sqlite\nredis\n")
                support.helpers.until(lambda: on() == ["sqlite", "redis"], "the file to be read", process, pause=0.05)
                ask("changed")
                wrong = subprocess.run([support.GREENPROF, "start", str(process.pid), "--spans", "nonsense"], capture_output=True, text=True)
                self.assertEqual(wrong.returncode, 2)
                self.assertIn("--spans nonsense: must be sqlite, ", wrong.stderr)
                process.stdin.close()
            found = {}
            spans = [json.loads(line) for line in support.helpers.run([os.environ["LIST_SPANS"], capture]).stdout.splitlines()]
            names = {span["id"]: span["name"] for span in spans if span["kind"] == REQUEST}
            for span in spans:
                if span["parent_id"] in names:
                    found.setdefault(names[span["parent_id"]], set()).add(span["name"].split()[0])
            self.assertEqual(found, {"file": {"sqlite"}, "command": {"redis"}, "changed": {"sqlite", "redis"}})


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
