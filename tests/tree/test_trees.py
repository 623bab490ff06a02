# SPDX-License-Identifier: MIT
"""Trees, clocks, the critical path and the outputs of `greenprof trace`, from JSON and from directories."""
import base64
import hmac
import json
import os
import random
import re
import shutil
import subprocess
import unittest
import uuid

from support import GREENPROF, START, TRACE, Trace, main, number, span


class Trees(Trace):
    def test_tree(self):
        file = self.lines(span(1, None, 0, 100), span(3, 1, 40, 90), span(2, 1, 10, 30), span(4, 3, 50, 60))
        spans, document = self.show(file)
        self.assertEqual([(number(one), one["depth"]) for one in spans], [(1, 0), (2, 1), (3, 1), (4, 2)])
        self.assertEqual([one["self_ns"] // 1000000 for one in spans], [30, 20, 40, 10])
        self.assertEqual((document["services"], document["duration_ns"], document["span_count"]), (1, 100000000, 4))
        lines = self.succeed("show", TRACE, file).splitlines()
        self.assertIn("2026-11-21 12:00:00.000 UTC, 100.000 ms, 4 spans of 1 service", lines[1])
        tree = [line[60:] for line in lines if "task work" in line]
        self.assertEqual([line.replace("api task ", "") for line in tree],
                         ["work 1", "├── work 2", "└── work 3", "    └── work 4"])

    def test_self_time_of_children_that_overlap(self):
        spans, _ = self.show(self.lines(span(1, None, 0, 100), span(2, 1, 10, 50), span(3, 1, 40, 70), span(4, 1, 45, 48), span(5, 1, 90, 130)))
        self.assertEqual(spans[0]["self_ns"], 30000000)  # 0-10, 70-90

    def test_critical_path(self):
        """The last one to end is waited for; what overlaps with it, or outlives its parent, is not."""
        spans, _ = self.show(self.lines(span(1, None, 0, 100), span(2, 1, 5, 40), span(3, 1, 10, 90), span(4, 3, 20, 80), span(5, 1, 3, 10),
                                        span(6, 1, 60, 200)))
        critical = {number(one): one["critical_ns"] // 1000000 for one in spans if "critical" in one["flags"]}
        self.assertEqual(critical, {1: 13, 3: 20, 4: 60, 5: 7})
        self.assertEqual(sum(critical.values()), 100)

    def test_critical_path_adds_up(self):
        random.seed(7)
        for _ in range(20):
            made = [span(1, None, 0, 1000)]
            for i in range(2, 60):
                above = random.choice(made)
                start = random.uniform(above["start_unix_ns"], above["end_unix_ns"]) - START
                end = random.uniform(start, above["end_unix_ns"] - START)
                made.append(span(i, number(above), start / 1e6, end / 1e6))
            random.shuffle(made)
            spans, _ = self.show(self.lines(*made))
            self.assertEqual(sum(one["critical_ns"] for one in spans), 1000000000)
            self.assertEqual(len(spans), 59)

    def test_paths_of_all_roots_add_up(self):
        """Own times by service are those of all spans that have a *: an iteration of Rally is several calls."""
        roots = [(1, 0, 60, "zaqar"), (2, 70, 78, "api"), (3, 80, 93, "zaqar"), (4, 82, 90, "api")]
        self.lines(*[span(n, None, start, end, service) for n, start, end, service in roots], span(5, 3, 81, 86, "redis"))
        self.lines(span(6, 99, 95, 96, "lost"), name="orphan.jsonl")
        for sources, expected in ((["spans.jsonl"], {"zaqar": 68.0, "api": 16.0, "redis": 5.0}),
                                  (["spans.jsonl", "orphan.jsonl"], {"zaqar": 68.0, "api": 16.0, "redis": 5.0, "lost": 1.0})):
            said = self.succeed("show", TRACE, *sources)
            spans, _ = self.show(*sources)
            line = said.splitlines()[-1]
            count = sum(one["depth"] == 0 for one in spans)
            self.assertIn(f"critical paths of {count} roots, own time by service:", line)
            found = {name: (float(ms), float(share)) for name, ms, share in re.findall(r"(\w+) ([\d.]+) ms \(([\d.]+) %\)", line)}
            self.assertEqual({name: ms for name, (ms, _) in found.items()}, expected)
            self.assertAlmostEqual(sum(ms for ms, _ in found.values()), sum(one["critical_ns"] for one in spans) / 1e6, 3)
            self.assertAlmostEqual(sum(share for _, share in found.values()), 100, 0)

    def test_orphans_circles_twins(self):
        file = self.lines(span(1, 99, 0, 10), span(2, 2, 1, 5), span(3, 4, 2, 6), span(4, 3, 3, 7), span(5, 1, 4, 8),
                          span(5, 1, 4, 8, name="another"), span(6, 5, 9, 7), span(7, None, 0, 1, flags=["open", "repaired"]))
        spans, _ = self.show(file)
        flags = {(number(one), one["name"]): set(one["flags"]) - {"critical"} for one in spans}
        self.assertEqual(len(spans), 8)
        self.assertEqual(flags[1, "work 1"], {"parent_missing"})
        self.assertEqual(flags[2, "work 2"], {"circle"})
        self.assertEqual(flags[3, "work 3"], {"circle"})
        self.assertEqual(flags[4, "work 4"], set())
        self.assertEqual(flags[5, "another"], {"id_used_twice"})
        self.assertEqual(flags[6, "work 6"], {"backwards"})
        self.assertEqual(flags[7, "work 7"], {"open", "repaired"})
        text = self.succeed("show", TRACE, file)
        for remark in ("parent missing", "its own ancestor", "id used twice", "ended before it began", "open", "repaired"):
            self.assertIn(f"({remark})", text)

    def test_same_span_from_two_sources(self):
        """One that had not ended, and the whole one; a span without times, and one that has them."""
        early = self.lines(span(1, None, 0, 5, flags=["open"]), span(2, 1, 1, 2), name="a.jsonl")
        late = self.lines(span(1, None, 0, 50), span(3, 1, 2, 3, service="db"), name="b.jsonl")
        for order in ((early, late), (late, early)):
            spans, document = self.show(*order)
            self.assertEqual([number(one) for one in spans], [1, 2, 3])
            self.assertEqual((spans[0]["duration_ns"], document["services"]), (50000000, 2))
            self.assertNotIn("open", spans[0]["flags"])

    def test_many_and_deep(self):
        line = json.dumps(span(1, 2, 0, 0)).replace("0" * 15 + "1", "%016x").replace("0" * 15 + "2", "%016x")
        line = line.replace(f'"start_unix_ns": {START}, "end_unix_ns": {START}', '"start_unix_ns": %d, "end_unix_ns": %d') + "\n"
        root = json.dumps(span(1, None, 0, 1000)) + "\n"
        file = self.put("deep", root + "".join(line % (i, i - 1, START + i * 1000, START + 1000000000 - i * 1000) for i in range(2, 100001)))
        json_text = self.succeed("show", TRACE, file, "--json")
        self.assertEqual(sum(map(int, re.findall(r'"critical_ns":(\d+)', json_text))), 1000000000)
        text = self.succeed("show", TRACE, file)
        self.assertLess(len(text), 40000000)
        self.assertIn("[99999] ", text)
        wide = self.put("wide", root + "".join(line % (i, 1, START + i * 1000, START + 1000000000 - i * 100) for i in range(2, 100001)))
        for source, way in ((file, "--html"), (file, "--dot"), (wide, "--chrome"), (wide, "--rally")):
            self.succeed("show", TRACE, source, way, "-o", self.path("out"))

    def test_json_is_a_source(self):
        file = self.lines(span(1, None, 0, 100), span(2, 1, 5010, 5040, service="db", flags=["failed"], fields={"error.type": "E"}))
        again = self.put("again.json", self.succeed("show", TRACE, file, "--json"))
        self.assertEqual(self.show(file), self.show(again))
        self.assertEqual(self.show(file), self.show(file, again))


class Clocks(Trace):
    def pairs(self, offsets, **more):
        """Calls of api's, 10 ms each, and what they caused: it begins 1 ms later and takes 8 ms, by a clock that is off."""
        made = [span(1, None, 0, 1000)]
        for i, (there, offset) in enumerate(offsets):
            made.append(span(100 + i, 1, 20 * i, 20 * i + 10))
            made.append(span(200 + i, 100 + i, 20 * i + 1 + offset, 20 * i + 9 + offset, service=there, **more))
        return self.show(self.lines(*made))

    def clock(self, document, service):
        return next(one for one in document["clocks"] if one["service"] == service)

    def test_agrees(self):
        _, document = self.pairs([("db", 0), ("db", .5)])
        self.assertEqual((self.clock(document, "db")["clock"], self.clock(document, "db")["offset_ns"]), ("agrees", 0))
        self.assertEqual(self.clock(document, "api")["offset_ns"], 0)

    def test_moved(self):
        for off in (-3600000, -50, 50, 3600000):
            spans, document = self.pairs([("db", off), ("db", off + .4), ("db", off - .4)])
            clock = self.clock(document, "db")
            self.assertEqual((clock["clock"], clock["pairs"]), ("moved", 3))
            self.assertLessEqual(abs(clock["offset_ns"] + off * 1000000), clock["within_ns"])
            self.assertLessEqual(clock["within_ns"], 1000000)
            where = {number(one): (one["from_ns"], one["from_ns"] + one["duration_ns"]) for one in spans}
            for i in range(3):
                self.assertLessEqual(where[100 + i][0], where[200 + i][0])
                self.assertGreaterEqual(where[100 + i][1], where[200 + i][1])
            words = self.succeed("show", TRACE, self.path("spans.jsonl"))
            self.assertRegex(words, r"clock of db on h-db, pid 7: moved by [-+][0-9.]+ ms, \+-[0-9.]+ ms, by 3 pairs")

    def test_off_by_a_little_is_moved_by_a_little(self):
        _, document = self.pairs([("db", -1.001)])
        self.assertLessEqual(abs(self.clock(document, "db")["offset_ns"]), 2000)

    def test_chain(self):
        """A clock that only another one's calls reach."""
        made = [span(1, None, 0, 1000), span(2, 1, 10, 110), span(3, 2, 5020, 5100, service="b"), span(4, 3, 5030, 5090, service="b"),
                span(5, 4, 9032, 9088, service="c")]
        spans, document = self.show(self.lines(*made))
        where = [(one["from_ns"], one["from_ns"] + one["duration_ns"]) for one in spans]
        self.assertEqual([number(one) for one in spans], [1, 2, 3, 4, 5])
        for (outer, inner) in zip(where, where[1:]):
            self.assertTrue(outer[0] <= inner[0] and inner[1] <= outer[1], where)
        self.assertEqual([self.clock(document, name)["clock"] for name in "bc"], ["moved", "moved"])

    def test_dispatch_that_nothing_waits_for(self):
        """It takes longer than its call: that says nothing against the clock."""
        spans, document = self.show(self.lines(span(1, None, 0, 20), span(2, 1, 5, 6), span(3, 2, 5.5, 80, service="db")))
        self.assertEqual(self.clock(document, "db")["clock"], "agrees")
        self.assertNotIn("critical", spans[2]["flags"])

    def test_contradiction(self):
        _, document = self.pairs([("db", 100), ("db", -100)])
        self.assertEqual(self.clock(document, "db")["clock"], "contradicts")
        self.assertIn("no offset puts each", self.succeed("show", TRACE, self.path("spans.jsonl")))


class Outputs(Trace):
    NASTY = ["</script><script>alert(1)</script>", "<!--", "\"'`", "a\u2028b", "nul\0", "\ud800", "é\x1b[31m", "\\", "]]>"]

    def test_names_are_text(self):
        made = [span(1, None, 0, 10, name="root")]
        made += [span(i + 2, 1, i, i + 1, name=name, service="s" + name, fields={name + "k": name}) for i, name in enumerate(self.NASTY)]
        file = self.lines(*made)
        spans, _ = self.show(file)
        expected = [name.replace("\0", "\ufffd").replace("\ud800", "\ufffd") for name in self.NASTY]
        self.assertEqual([one["name"] for one in spans[1:]], expected)
        self.assertEqual([one["fields"] for one in spans[1:]], [{name + "k": name} for name in expected])
        page = self.succeed("show", TRACE, file, "--html")
        self.assertEqual(page.count("</script>"), 2)
        data = json.loads(re.search(r'<script type="application/json" id="data">\n(.*?)\n</script>', page, re.S)[1])
        self.assertEqual([one["n"] for one in data["spans"][1:]], expected)
        self.assertNotRegex(page, r"https?://|src=|@import")
        text = self.succeed("show", TRACE, file)
        self.assertNotIn("\x1b", text)
        json.loads(self.succeed("show", TRACE, file, "--chrome"))

    def test_long_names(self):
        """A statement is a span's name as far as a line goes; all of it is kept, once."""
        columns = ", ".join(f"instances.column_{i:03} AS instances_column_{i:03}" for i in range(40))
        statement = f"SELECT {columns} \nFROM instances\n WHERE instances.deleted = %(deleted)s"
        file = self.lines(span(1, None, 0, 10, name=statement, fields={"db.statement": statement}), span(2, 1, 1, 2, name=statement),
                          span(3, 1, 2, 3, name="SELECT a,\n\t b\nFROM t\n"), span(4, 1, 3, 4, name="\u00e9" * 300), span(5, 1, 4, 5, name="x" * 100),
                          span(6, 1, 5, 6, name="GET /" + "y" * 200))
        spans, document = self.show(file)
        names = [one["name"] for one in spans]
        self.assertEqual(names[0], names[1])
        self.assertRegex(names[0], r"^SELECT instances.column_000 AS instances_column_000, .*\.\.\.$")
        self.assertTrue(statement.startswith(names[0][:-3].rstrip()), names[0])
        self.assertEqual(names[2:5], ["SELECT a, b FROM t", "\u00e9" * 48 + "...", "x" * 100])
        self.assertTrue(all(len(name.encode()) <= 100 for name in names), names)
        self.assertEqual([one["fields"] for one in spans], [{"db.statement": statement}, {"name": statement}, {"name": "SELECT a,\n\t b\nFROM t\n"},
                                                            {"name": "\u00e9" * 300}, {}, {"name": "GET /" + "y" * 200}])
        again = self.put("again.json", json.dumps(document))
        self.assertEqual(self.show(again, file)[0], spans)  # twice the same
        self.assertLess(max(map(len, self.succeed("show", TRACE, file).splitlines())), 180)

    def test_broken_utf8(self):
        line = json.dumps(span(1, None, 0, 1, name="@")).encode().replace(b"@", b"a\xffb\xed\xa0\x80c")
        spans, _ = self.show(self.put("a", line + b"\n"))
        self.assertEqual(spans[0]["name"], "a\ufffdb\ufffd\ufffd\ufffdc")

    def test_chrome_slices_nest(self):
        made = [span(1, None, 0, 100), span(2, 1, 10, 60), span(3, 1, 20, 80), span(4, 3, 30, 70), span(5, 1, 90, 95), span(6, 2, 15, 55, service="db")]
        events = json.loads(self.succeed("show", TRACE, self.lines(*made), "--chrome"))["traceEvents"]
        slices = [one for one in events if one["ph"] == "X"]
        self.assertEqual(len(slices), 6)
        for a in slices:
            for b in slices:
                if a is not b and (a["pid"], a["tid"]) == (b["pid"], b["tid"]) and a["ts"] <= b["ts"]:
                    self.assertTrue(b["ts"] >= a["ts"] + a["dur"] or b["ts"] + b["dur"] <= a["ts"] + a["dur"], (a, b))
        self.assertEqual([one["ph"] for one in events if one.get("cat") == "call"], ["s", "f"])
        self.assertEqual({one["args"]["name"] for one in events if one["ph"] == "M"}, {"api", "db"})

    def test_dot(self):
        made = [span(1, None, 0, 100)] + [span(i, 1, i, i + 1, name='same "name" \\n') for i in range(2, 12)]
        dot = self.succeed("show", TRACE, self.lines(*made), "--dot")
        self.assertIn('label="10x"', dot)
        if shutil.which("dot") is not None:
            plain = subprocess.run(["dot", "-Tplain"], input=dot, capture_output=True, text=True, check=True).stdout
            self.assertEqual((plain.count("\nnode "), plain.count("\nedge ")), (2, 1))

    def functions(self, *made):
        """Labels of the functions in the graph, in the order in which they stand in it."""
        return re.findall(r'shape=ellipse, label="((?:[^"\\]|\\.)*)"', self.succeed("show", TRACE, self.lines(*made), "--dot"))

    def test_dot_with_stacks(self):
        made = [span(1, None, 0, 100, stack="main\nserve\nanswer"), span(2, 1, 10, 90, stack="main\nserve\nanswer\nask"),
                span(3, 2, 20, 30, stack="main\nserve\nanswer\nask\nmore"), span(4, 1, 91, 92, stack="main\nservers")]
        names = self.functions(*made)
        self.assertEqual(sorted(name.split("\\n")[0] for name in names), ["answer", "ask", "main", "more", "serve", "servers"])
        # Another process runs the same program: its functions were not called by those of the first.
        far = [made[0], span(2, 1, 10, 90, stack="main\nserve\nanswer", remote_parent=True, pid=8)]
        self.assertEqual(sorted(self.functions(*far)), ["answer", "answer", "main", "main", "serve", "serve"])
        self.assertEqual(self.functions(span(1, None, 0, 1, stack='"\\\n\n\x01')), ['\\"\\\\', " "])

    def test_list(self):
        other = {"trace": "1" * 32}
        file = self.lines(span(1, None, 0, 10), span(2, 1, 1, 2, service="db"), span(3, None, -50, -45, flags=["failed"], **other))
        lines = [line.split() for line in self.succeed("list", file).splitlines()]
        self.assertEqual([line[0] for line in lines], ["trace", "1" * 32, TRACE])
        self.assertEqual(lines[2][4:], ["10.000", "2", "2", "-", "api", "task", "work", "1"])
        self.assertEqual(lines[1][4:8], ["5.000", "1", "1", "failed"])
        self.assertEqual([line.split()[0] for line in self.succeed("list", file, "--sort", "latency").splitlines()[1:]], [TRACE, "1" * 32])
        self.assertEqual(len(self.succeed("list", file, "-n", "1").splitlines()), 2)
        listed = json.loads(self.succeed("list", file, "--json"))
        self.assertEqual([(one["trace"], one["services"], one["failed"]) for one in listed], [("1" * 32, 1, True), (TRACE, 2, False)])
        self.assertEqual(listed[1]["root"], {"service": "api", "kind": "task", "name": "work 1"})

    def test_ids(self):
        file = self.lines(span(1, None, 0, 10), span(2, None, 0, 20, trace="0af8" + "0" * 28))
        for id in (TRACE, TRACE.upper(), "0af7", TRACE[:16], TRACE[16:], "0af76519-16cd-43dd-8448-eb211c80319c", f"00-{TRACE}-{1:016x}-01"):
            self.assertEqual(json.loads(self.succeed("show", id, file, "--json"))["trace"], TRACE)
        self.assertEqual(json.loads(self.succeed("show", "--slowest", file, "--json"))["duration_ns"], 20000000)
        self.expect(1, "0af: is the beginning of 2 traces", "show", "0af", file)
        self.expect(1, "no trace of that id", "show", "ffff", file)
        self.expect(1, "no trace of that id", "show", "what?", file)


class Sources(Trace):
    def test_folder(self):
        root = "d/" + TRACE
        self.lines(span(1, None, 0, 10), span(2, 1, 1, 8), name=root + "/spans-api-h-7.jsonl")
        self.lines(span(3, 2, 2, 7, service="db", remote_parent=True), name=root + "/spans-db-h-8.jsonl")
        self.put(root + "/profile-db-8-0000000000000003.folded", "main;work 3000\nmain;[parked] 2000\n")
        self.put(root + "/notes.txt", "no span")
        self.lines(span(9, None, 0, 1, trace="2" * 32), name=f"d/{'2' * 32}/spans-api-h-7.jsonl")
        spans, document = self.show(self.path("d"))
        self.assertEqual(([number(one) for one in spans], document["services"]), ([1, 2, 3], 2))
        self.assertEqual(len(self.succeed("list", self.path("d")).splitlines()), 3)
        self.assertEqual(self.show(self.path(root)), self.show(self.path("d")))
        self.assertIn(r'"g":"main;work 3000\nmain;[parked] 2000\n"', self.succeed("show", TRACE, self.path("d"), "--html"))

    def test_half_written_line(self):
        """The writer was killed: what is whole is read."""
        text = json.dumps(span(1, None, 0, 10)) + "\n" + json.dumps(span(2, 1, 0, 10))[:80]
        result = self.run_trace("show", TRACE, self.put("a.jsonl", text), "--json")
        self.assertEqual(len(json.loads(result.stdout)["spans"]), 1)
        self.assertRegex(result.stderr, rb"^greenprof: .*a.jsonl: 1 records are no spans")

    def test_bad_input(self):
        good = self.lines(span(1, None, 0, 10))
        self.expect(1, "No such file", "list", self.path("nowhere"))
        self.expect(1, "is empty", "list", self.put("empty", ""))
        self.expect(1, "no JSON that holds spans: line 1", "list", self.put("text", "hello\n"))
        self.expect(1, "holds neither spans nor", "list", self.put("object", "{}"))
        self.expect(1, "has no spans", "list", self.put("array", "[]"))
        self.expect(1, "no JSON", "list", self.put("deep", "[" * 100000))
        self.expect(1, "no folders of traces", "list", self.directory)
        self.expect(1, "is no source", "list", "http://localhost/")
        self.expect(1, "redis://localhost:1/0: .*refused", "list", "redis://:secret@localhost:1/0")
        self.expect(1, "is no redis://", "list", "redis://host:port/")
        self.expect(1, "No such file", "show", TRACE, good, "-o", self.path("nowhere/out"))
        self.expect(1, "is an input", "show", TRACE, good, "-o", good)

    def test_no_message_has_a_password(self):
        """Whatever is said of a URL: what is wrong with it, with its store, or that it is no command."""
        out = self.lines(span(1, None, 0, 10))
        for url in ("redis://:hunter2@localhost:1", "redis://hunter2@localhost:1", "redis://:hunter2@:x", "redis+sentinel://:hunter2@localhost:1/m",
                    "redis+sentinel://:hunter2@localhost", "redissentinel://u:hunter2@localhost:1", "rediss://:hunter2@localhost",
                    "mongodb://u:hunter2@localhost/db", "clickhouse://u:hunter2@localhost:1", "clickhouse://u:hunter2@localhost:x",
                    "clickhouse://u:hunter2@localhost:1?password=hunter2", "otlp+http://localhost?token=hunter2", "pyroscope+http://k:hun/hunter2@localhost"):
            tries = [("trace", "list", url), ("trace", "show", "--slowest", out, url, "--json")]
            if url.startswith("clickhouse://u:hunter2@localhost:1") or url == "redis://:hunter2@localhost:1":
                tries += [("trace", url), ("trace", "list", out, "--sort", url), ("report", url), ("report", out, "--by", url), ("info", url),
                          ("ship", "--to", url, "--dry-run", "nowhere"), ("flamegraph", url), ("export", out, "-o", url), ("diff", url, url), (url,),
                          ("run", "--slow", url, "--", "true"), ("symbolize", url), ("attach", url), ("dump", url)]
            for words in tries:
                result = subprocess.run([GREENPROF, *words], capture_output=True, stdin=subprocess.DEVNULL, cwd=self.directory, timeout=60)
                self.assertNotIn(b"hunter2", result.stdout + result.stderr, words)

    def test_bad_use(self):
        good = self.lines(span(1, None, 0, 10))
        self.expect(2, "missing list, show or headers")
        self.expect(2, "'what': must be list, show or headers", "what", good)
        self.expect(2, "missing SOURCE", "list")
        self.expect(2, "missing ID", "show")
        self.expect(2, "missing SOURCE", "show", TRACE)
        self.expect(2, "missing SOURCE", "show", "--slowest")
        self.expect(2, "--json and --dot: which", "show", TRACE, good, "--dot", "--json")
        self.expect(2, "--html is for one trace", "list", good, "--html")
        self.expect(2, "--slowest is for show", "list", good, "--slowest")
        self.expect(2, "must be start or latency", "list", good, "--sort", "name")


class Headers(Trace):
    def test_headers_for_curl(self):
        """Signed as OSProfiler's client and as greenprof's own format have them, by a key of a file, also of a long one."""
        for key in "SECRET", "k" * 200:
            self.put("keys", key + ",other\n")
            os.chmod(os.path.join(self.directory, "keys"), 0o600)
            result = self.run_trace("headers", TRACE, "--key", "keys")
            self.assertEqual((result.returncode, result.stderr.decode()), (0, f"trace {uuid.UUID(TRACE)}\n"))
            headers = dict(line.split(": ", 1) for line in result.stdout.decode().splitlines())
            self.assertEqual(sorted(headers), ["X-Greenprof-Context", "X-Trace-HMAC", "X-Trace-Info"])
            info = headers["X-Trace-Info"].encode()
            self.assertEqual(headers["X-Trace-HMAC"], hmac.new(key.encode(), info, "sha1").hexdigest())
            self.assertEqual(json.loads(base64.urlsafe_b64decode(info)), dict.fromkeys(("base_id", "parent_id"), str(uuid.UUID(TRACE))))
            text, _, mac = headers["X-Greenprof-Context"].rpartition(";mac=")
            self.assertEqual(mac, hmac.new(key.encode(), text.encode(), "sha256").hexdigest())
            self.assertRegex(text, rf"^v1;trace={TRACE};parent=0{{16}};time=\d+;nonce=[0-9a-f]{{32}}$")
        first, second = (self.run_trace("headers", "--key", "keys").stderr for _ in range(2))
        self.assertNotEqual(first, second)
        self.expect(1, "there is no key: --key FILE", "headers")
        self.expect(2, "'xyz' is no trace id", "headers", "xyz", "--key", "keys")


if __name__ == "__main__":
    main()
