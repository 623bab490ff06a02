# SPDX-License-Identifier: MIT
"""Calls of libraries become spans of the request that makes them, and of nothing else."""
import os
import subprocess
import sys
import tempfile
import unittest

for folder in ("..", "../integration"):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), folder))
import measured  # noqa: E402
from capture import Capture  # noqa: E402

GREENPROF, PROGRAM = os.environ["GREENPROF"], os.environ["LIBRARY_CALLS"]
REQUEST, REST_CALL, DATABASE, CACHE = 1, 2, 6, 7
FAILED = 16


PYTHON = """
import sqlite3, greenprof
connection = sqlite3.connect(":memory:")
with greenprof.span("request", "request"):
    connection.execute("SELECT value FROM json_each('[1, 2, 3]')").fetchall()
"""


class Calls(measured.Case):
    def record(self, *arguments, expected=b"0 0\n", **environment):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "capture")
            command = [GREENPROF, "run", "--quiet", "-o", path, "--", PROGRAM, *arguments]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, timeout=60,
                                  env={**os.environ, **environment})
            self.assertEqual(done.stdout, expected)
            return Capture(path).spans

    def test_all_libraries(self):
        spans = self.record()
        request = next(span for span in spans if span.kind == REQUEST)
        calls = sorted((span for span in spans if span is not request), key=lambda span: span.start_ns)
        self.assertEqual({span.parent for span in calls}, {request.id})
        self.assertEqual([(span.kind, span.name, bool(span.flags & FAILED)) for span in calls], [
            (DATABASE, "sqlite CREATE", False), (DATABASE, "sqlite INSERT", False), (DATABASE, "sqlite NONSENSE", True),
            (DATABASE, "sqlite SELECT", False),
            (DATABASE, "libpq SELECT", False), (DATABASE, "libpq UPDATE", True), (DATABASE, "libpq DELETE", False),
            (DATABASE, "libpq exec prepared", False), (DATABASE, "libpq INSERT", False),
            (REST_CALL, "libcurl transfer", False), (REST_CALL, "libcurl transfer", True),
            (CACHE, "hiredis GET", False), (CACHE, "hiredis SET", True), (CACHE, "hiredis MGET", True)])
        fields = [span.fields for span in calls]
        self.assertNotIn("secret", repr(fields))
        self.assertEqual(fields[3], {"db.statement": "SELECT name FROM t WHERE name <> ? AND id > ?"})
        self.assertEqual(fields[5], {"db.statement": "update bad set x = ?", "error.type": "PGRES_FATAL_ERROR"})
        self.assertEqual(fields[7], {"db.prepared": "mine"})
        self.assertEqual(fields[9], {"http.url": "https://host/path", "http.status_code": "204"})
        self.assertEqual(fields[10], {"http.url": "https://bad/", "error.type": "curl 7"})

    def test_library_of_a_plugin(self):
        """Python's SQLite is in the scope of its extension module alone."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "capture")
            subprocess.run([GREENPROF, "run", "--quiet", "-o", path, "--", "/usr/bin/python3", "-c", PYTHON], check=True,
                           stdin=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": os.environ["GREENPROF_PYTHON"]}, timeout=60)
            calls = [span for span in Capture(path).spans if span.kind == DATABASE]
        self.assertEqual({span.name for span in calls}, {"sqlite SELECT"})  # SQLite reads its own tables, too
        self.assertIn({"db.statement": "SELECT value FROM json_each(?)"}, [span.fields for span in calls])

    def test_slow_row(self):
        """Of the rows after the first, one that takes long is a span that began when its step did."""
        spans = self.record("slow-row", expected=b"0\n")
        request = next(span for span in spans if span.kind == REQUEST)
        first, slow = sorted((span for span in spans if span is not request), key=lambda span: span.start_ns)
        self.assertEqual([(span.kind, span.name, span.parent) for span in (first, slow)],
                         [(DATABASE, "sqlite SELECT", request.id)] * 2)
        self.assertEqual(slow.fields, {"db.statement": "SELECT echo(column1) FROM (VALUES (?), (?), (?), (?), (?))"})
        self.assertGreaterEqual(slow.start_ns, first.end_ns)
        self.assertLessEqual(slow.end_ns, request.end_ns)
        self.assertGreaterEqual(slow.end_ns - slow.start_ns, 20000000)
        # A span's edges are not settled: a preemption right before one may be in it, or missing.
        self.near("CPU of the slow row, s", slow.cpu_ns / 1e9, 0.02, 0.5)

    def test_chosen_by_name(self):
        names = {span.name.split()[0] for span in self.record(GREENPROF_SPANS="hiredis,libpq")}
        self.assertEqual(names, {"request", "hiredis", "libpq"})
        self.assertEqual({span.name for span in self.record(GREENPROF_SPANS="none")}, {"request"})


if __name__ == "__main__":
    unittest.main()
