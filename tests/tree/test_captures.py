# SPDX-License-Identifier: MIT
"""Captures of two processes of which one calls the other: one tree, each span with what was sampled for it.

usage: test_captures.py GREENPROF WORK SERVICE
"""
import glob
import json
import os
import re
import subprocess
import sys

from support import GREENPROF, Trace, main

SERVICE = os.path.abspath(sys.argv[3])


class Captures(Trace):
    def record(self):
        result = subprocess.run([GREENPROF, "run", "-q", "-F", "1000", "--follow", "all", "-o", self.path("out.greenprof"), "--", SERVICE],
                                capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True)
        files = sorted(glob.glob(self.path("out.greenprof*")))
        self.assertEqual(len(files), 2, files)
        return result.stdout.strip(), files

    def test_no_password_in_a_capture(self):
        """The program's arguments go with its capture."""
        url = "postgresql://nova:hunter2@db/nova"
        subprocess.run([GREENPROF, "run", "-q", "-o", self.path("out.greenprof"), "--", "sh", "-c", "exit 0", "--db=" + url, url, "last"],
                       capture_output=True, stdin=subprocess.DEVNULL, check=True)
        said = subprocess.run([GREENPROF, "info", self.path("out.greenprof")], capture_output=True, text=True, check=True).stdout
        self.assertIn("--db=postgresql://nova@db/nova postgresql://nova@db/nova last", said)
        self.assertNotIn("hunter2", said)

    def test_tree_and_stacks(self):
        id, files = self.record()
        spans, document = self.show(*files, id=id)
        self.assertEqual([(one["kind"], one["name"], one["depth"]) for one in spans],
                         [("rest_dispatch", "GET /caller", 0), ("rest_call", "GET /callee", 1), ("rest_dispatch", "GET /callee", 2)])
        self.assertEqual(len({one["pid"] for one in spans}), 2)
        self.assertTrue(spans[2]["remote_parent"])
        self.assertEqual(spans[1]["fields"], {"http.status": "418"})
        self.assertEqual(spans[2]["fields"], {"error.type": "Teapot", "error.message": "short and stout"})
        self.assertTrue(all("critical" in one["flags"] for one in spans))
        self.assertEqual(sum(one["critical_ns"] for one in spans), document["duration_ns"])
        # The request worked until its thread's clock had 150 ms; a span has another clock, less time known as lost to others.
        self.assertGreaterEqual(spans[0]["cpu_ns"], 75000000)
        self.assertGreaterEqual(spans[2]["cpu_ns"], 75000000)
        self.assertEqual(["request" in one for one in spans], [True, False, True])
        for one in (spans[0], spans[2]):
            self.assertEqual(one["request"]["coroutines"], 1)
            self.assertGreaterEqual(one["request"]["cpu_ns"], 75000000)
        self.assertRegex(self.succeed("show", id, *files),
                         r"sums over all coroutines of a request, ms\n\n.*\n +1( +[0-9.]+){6} \S+ rest_dispatch GET /caller\n"
                         r" +1( +[0-9.]+){6} \S+ rest_dispatch GET /callee\n")
        # Each half alone: the parent of the other one is missing.
        for file in files:
            flags = [one["flags"] for one in self.show(file, id=id)[0]]
            self.assertEqual("parent_missing" in flags[0], len(flags) == 1)
        # A document once read can be read again, and is the same.
        again = self.put("again.json", json.dumps(document))
        self.assertEqual(self.show(*files, again, id=id), (spans, document))
        self.assertEqual(self.show(again, id=id), (spans, document))
        page = self.succeed("show", "--slowest", *files, "--html")
        data = json.loads(re.search(r'id="data">\n(.*?)\n</script>', page, re.S)[1])
        self.assertEqual([one["r"][0] for one in data["spans"] if "r" in one],
                         [one["request"]["cpu_ns"] for one in spans if "request" in one])
        stacks = [one.get("g", "") for one in data["spans"]]
        self.assertIn(";caller_work", stacks[0])
        self.assertIn(";callee_work", stacks[2])
        self.assertNotIn("callee_work", stacks[0] + stacks[1])
        self.assertNotIn("caller_work", stacks[1] + stacks[2])

    def test_merged(self):
        """Processes that were merged into one capture are as they were: in one step, or in two."""
        def processes(capture):
            spans, document = self.show(*capture, id=id)
            return ([[one[key] for key in ("span", "parent", "name", "depth", "service", "host", "pid")] for one in spans],
                    [[one[key] for key in ("service", "host", "pid")] for one in document["clocks"]])

        id, files = self.record()
        for inputs in (files, files[::-1]):
            merged = self.path("merged")
            subprocess.run([GREENPROF, "merge", "-o", merged, *inputs], check=True, capture_output=True)
            again = self.path("again")
            subprocess.run([GREENPROF, "merge", "-o", again, self.other(), merged], check=True, capture_output=True)
            expected, found, found_again = processes(files), processes([merged]), processes([again])
            self.assertEqual(len(expected[1]), 2)
            self.assertEqual((found[0], sorted(found[1])), (expected[0], sorted(expected[1])))
            self.assertEqual(found_again, found)

    def other(self):
        """A capture of a program with coroutines' numbers of its own."""
        path = self.path("other.greenprof")
        subprocess.run([GREENPROF, "run", "-q", "-o", path, "--", "/bin/true"], check=True, capture_output=True,
                       stdin=subprocess.DEVNULL)
        return path

    def test_graph_of_stacks(self):
        """The functions on the way to a span stand between it and the one around it; those of a document are the same."""
        id, files = self.record()
        dot = self.succeed("show", id, *files, "--dot")
        labels = dict(re.findall(r'(?m)^  n(\d+) \[(?:shape=ellipse, )?label="(.*?)"', dot))
        callers = {int(to): int(caller) for caller, to in re.findall(r"n(\d+) -> n(\d+)", dot)}

        def way_to(node):
            way = []
            while node in callers:
                node = callers[node]
                way.append(labels[str(node)].split("\\n")[1] if "\\n" in labels[str(node)] else labels[str(node)])
            return way

        call = next(int(number) for number, label in labels.items() if "rest_call GET /callee" in label)
        self.assertEqual(way_to(call)[:3], ["ask_other", "rest_dispatch GET /caller", "call"])  # main may end with that call
        dispatch = next(int(number) for number, label in labels.items() if "rest_dispatch GET /callee" in label)
        self.assertEqual(way_to(dispatch)[:2], ["rest_call GET /callee", "ask_other"])
        document = self.put("document.json", self.succeed("show", id, *files, "--json"))
        self.assertEqual(self.succeed("show", id, document, "--dot"), dot)

    def test_nothing_recorded(self):
        empty = self.path("empty.greenprof")
        subprocess.run([GREENPROF, "run", "-q", "-o", empty, "--", "/bin/echo"], check=True, capture_output=True, stdin=subprocess.DEVNULL)
        self.expect(1, "empty.greenprof: has no spans$", "list", empty)
        id, files = self.record()
        result = self.run_trace("show", id[:12], *files, empty)
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr, rb"^greenprof: .*empty.greenprof: has no spans\n$")
        with open(files[0], "rb") as file:
            damaged = self.put("damaged.greenprof", file.read()[:300])
        self.assertIn(self.run_trace("list", damaged).returncode, (0, 1))


if __name__ == "__main__":
    main()
