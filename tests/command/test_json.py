# SPDX-License-Identifier: MIT
"""`report --json`, `info --json` and `report --by thread`: the keys are those of doc/json.md, the values those of the tables.

usage: test_json.py GREENPROF MAKE_CAPTURE RECORDER.so WORK-DIRECTORY
"""
import json
import os
import re

import pstats_case
from support import Command, SCRIPT, main, run

DOC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "doc", "json.md")


class Json(Command):
    def setUp(self):
        super().setUp()
        self.capture = self.make("one.greenprof", SCRIPT)
        with open(DOC, encoding="utf-8") as file:
            self.document = set(re.findall(r"`([a-z0-9_]+)`", file.read()))

    def report(self, *arguments, capture=None):
        said = json.loads(self.succeed("report", capture or self.capture, "--json", *arguments))
        self.assertEqual(said["version"], 1)
        for row in (said, *said["rows"], *said.get("endpoints", ())):
            self.assertLessEqual(set(row), self.document)
        return said

    def test_functions(self):
        capture = self.make("case.greenprof", pstats_case.script())
        said = self.report("-n", "0", capture=capture)
        table = re.findall(r"(?m)^ +\d+(?:/\d+)? +(\d+\.\d{3}) .* (\S+:\d+)\((.*)\)$", self.succeed("report", capture, "-n", "0"))
        self.assertEqual([(f"{row['own_ns'] / 1e9:.3f}", f"{row['file']}:{row['line']}", row["function"])
                          for row in said["rows"] if row["file"] != "~"], table)
        self.assertEqual((said["by"], said["measure"]), ("function", "cpu"))
        self.assertEqual(len(self.report("-n", "2", capture=capture)["rows"]), 2)

    def test_coroutines_and_traces(self):
        for by, key in (("coroutine", "id"), ("trace", "coroutines")):
            said = self.report("--by", by)
            table = self.succeed("report", self.capture, "--by", by)
            self.assertTrue(said["rows"])
            for row in said["rows"]:
                self.assertIn(key, row)
                self.assertIn(f"{row['cpu_ns'] / 1e9:.3f}", table)

    def test_runtimes(self):
        for arguments in ((), ("/bin/true",), (str(os.getpid()),)):
            said, table = json.loads(self.succeed("runtimes", "--json", *arguments)), self.succeed("runtimes", *arguments).splitlines()
            self.assertEqual((said["version"], said["of"]), (1, arguments[0] if arguments else None))
            self.assertTrue(said["rows"] or table[0].startswith("none that greenprof knows"))
            for row, line in zip(said["rows"], table, strict=bool(said["rows"])):
                self.assertLessEqual(set(row) | {row["state"]}, self.document)
                self.assertEqual(f"{row['name']:<28}{row['object'] + ': ' if row['object'] else ''}{row['how']}", line)

    def test_threads(self):
        said, table = self.report("--by", "thread"), self.succeed("report", self.capture, "--by", "thread")
        self.assertTrue(said["rows"])
        for row in said["rows"]:
            self.assertRegex(table, rf"(?m)^ +{row['cpu_ns'] / 1e9:.3f} +{row['sampled_ns'] / 1e9:.3f} .* {row['tid']} {re.escape(row['name'])}$")
        whole = sum(row["sampled_ns"] for row in said["rows"])
        self.assertEqual(whole, json.loads(self.succeed("info", self.capture, "--json"))["sampled_ns"])
        part = self.report("--by", "thread", "--from", "0", "--to", "0.0035")
        self.assertTrue(all(row["blocked_ns"] is None for row in part["rows"]))
        for by in ("thread", "lock"):
            self.assertIn(f"chooses no {by}s", run("report", self.capture, "--by", by, "--focus", "main").stderr)

    def test_pools_and_locks(self):
        for by in ("pool", "lock"):
            self.assertEqual(self.report("--by", by)["rows"], []) # with rows: tests/python
            self.assertIn("a store has no", run("report", "clickhouse://h", "--by", by, "--json").stderr)

    def test_info(self):
        lines = self.succeed("info", "--json", self.capture, self.capture).splitlines()
        self.assertEqual(len(lines), 2)
        said = json.loads(lines[0])
        self.assertLessEqual(set(said) | set(said["cost"]), self.document)
        self.assertEqual((said["version"], said["file"]), (1, self.capture))
        self.assertIsNone(said["cost"]["signal_ns"])  # it was not measured

    def test_every_command_with_figures(self):
        """Others write captures or other files, or say in words what they have done."""
        none = set("run export flamegraph merge recover attach detach start stop dump symbolize ship view mcp help".split())
        commands = set(re.findall(r"(?m)^  (\w+) ", self.succeed("--help")))
        self.assertEqual({command for command in commands if "--json" not in self.succeed("help", command)}, none)

    def test_what_has_none(self):
        self.expect(2, "have no --json", "report", self.capture, "--json", "--callers", "x")


if __name__ == "__main__":
    main()
