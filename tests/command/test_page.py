# SPDX-License-Identifier: MIT
"""The data of pages: what the file holds is what the other commands print.

usage: test_page.py GREENPROF MAKE_CAPTURE RECORDER.so WORK-DIRECTORY
"""
import collections, os, shutil, subprocess, sys, unittest

from support import MAKE_CAPTURE, Command, main, run
from test_requests import CHILD, HEAD, TRACE

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../page"))
from browser import Browser
from page_data import read_page, stacks_of

RUNNING, PREEMPTED, PARKED, READY = range(4)


class Page(Command):
    def page(self, capture, *arguments):
        self.assertEqual(self.succeed("flamegraph", capture, "-o", self.path("out.html"), *arguments), "")
        head, tables = read_page(self.path("out.html"))
        return head, tables, stacks_of(head, tables)

    def weights(self, page, table="row", keep=lambda row: True):
        """{stack: ns} of the rows that are kept."""
        _, tables, stacks = page
        sums = collections.Counter()
        names = list(tables[table])
        for values in zip(*tables[table].values()):
            row = dict(zip(names, values))
            if keep(row):
                sums[";".join(stacks[row["node"]])] += row["weight"]
        return +sums

    def folded(self, capture, *arguments):
        lines = self.succeed("export", capture, "-f", "folded", *arguments).splitlines()
        sums = collections.Counter()
        for line in lines:
            stack, _, us = line.rpartition(" ")
            sums[stack] += int(us) * 1000
        return sums

    def agree(self, page, folded):
        """Folded weights are whole microseconds."""
        self.assertEqual(set(page), set(folded))
        for stack in page:
            self.assertLessEqual(abs(page[stack] - folded[stack]), 1000, stack)

    def test_weights_are_those_of_exports(self):
        page = self.page(self.capture)
        self.agree(self.weights(page, keep=lambda row: row["state"] == RUNNING), self.folded(self.capture, "--clock", "cpu"))
        for capture in (self.capture, self.make("child", CHILD)):
            page = self.page(capture)
            self.agree(self.weights(page), self.folded(capture, "--clock", "wall"))
            self.assertEqual(page[0]["totals"]["total_ns"], sum(self.weights(page).values()))

    def test_options_choose(self):
        page = self.page(self.capture, "--trace", TRACE)
        self.agree(self.weights(page, keep=lambda row: row["state"] == RUNNING), self.folded(self.capture, "--trace", TRACE, "--clock", "cpu"))
        page = self.page(self.capture, "--focus", "x40|x30")
        self.agree(self.weights(page, keep=lambda row: row["state"] == RUNNING), self.folded(self.capture, "--focus", "x40|x30", "--clock", "cpu"))

    def test_labels(self):
        head, tables, _ = self.page(self.capture)
        label, coro, seen = tables["label"], tables["coro"], set()
        for number, weight in zip(tables["row"]["label"], tables["row"]["weight"]):
            owner, trace = label["coro"][number], label["trace"][number]
            seen.add((coro["id"][owner - 1], head["traces"][trace - 1] if trace else None, weight))
        self.assertEqual(seen, {(1, None, 1002500), (2, TRACE, 1002500), (3, TRACE, 1002500), (3, "0" * 31 + "1", 1002500)})
        self.assertEqual([head["coroutines"][name] for name in coro["name"]], ["[thread main]", "server+0x40", "worker"])
        self.assertEqual(coro["flags"], [1, 0, 0])
        self.assertEqual(coro["parent"], [0, 1, 1])
        self.assertEqual(head["threads"][label["thread"][tables["row"]["label"][0]] - 1], "main")

    def test_requests_and_their_paths(self):
        capture = self.make("child", CHILD)
        page = head, tables, _ = self.page(capture)
        request = tables["request"]
        self.assertEqual((request["start"], request["latency"]), ([0], [25000000]))
        self.assertEqual([head["traces"][trace - 1] for trace in request["trace"]], [TRACE])
        self.assertEqual(head["endpoints"][request["endpoint"][0]]["text"], "rest_dispatch GET /x")
        self.assertEqual(head["endpoints"][0]["max_ns"], 25000000)
        paths = self.weights(page, "path")
        self.assertEqual(sum(paths.values()), 25000000)
        whole = self.folded(capture, "--by", "critical-path", "--trace", TRACE)
        self.agree({stack: ns for stack, ns in paths.items()}, self.without_root(whole))
        segment, at = tables["segment"], 0
        for start, length in zip(segment["from"], segment["length"]):  # without a gap, from beginning to end
            self.assertEqual(start, at)
            at += length
        self.assertEqual(at, 25000000)
        states = collections.Counter()
        for state, length in zip(segment["state"], segment["length"]):
            states[state] += length
        self.assertEqual(states[READY], 8000000)  # twice behind the hog
        self.assertEqual(len(tables["span"]["start"]), 1)

    @staticmethod
    def without_root(folded):
        sums = collections.Counter()
        for stack, ns in folded.items():
            sums[stack.partition(";")[2]] += ns
        return sums

    def test_ticks(self):
        """A part of the time that is whole ticks has what --from and --to choose."""
        script = HEAD + "".join(f"sample {1000000 * i} 1000000 2 {1 + i % 2} {1 + i % 4} 1\n" for i in range(1, 3001)) + "end 3000000000 0\n"
        capture = self.make("long", script)
        page = head, tables, _ = self.page(capture)
        tick = head["tick_ns"]
        self.assertGreater(tick, 0)
        self.assertLessEqual(tick, 3000000000 // 100)
        first, last = 100, 250  # ticks
        inside = self.weights(page, keep=lambda row: first < row["tick"] <= last)
        self.agree(inside, self.folded(capture, "--from", f"{first * tick / 1e9:.9f}", "--to", f"{last * tick / 1e9:.9f}"))

    def test_delays(self):
        script = HEAD + """
sample 5000000 5000000 4 1 1 0
hog 7 4 1 0 0 20000000 1:15000000 2:5000000
delay 7 2 1 8000000
delay 7 3 2 4000000
ledger 4 0 20000000 1 20000000
ledger 2 1 0 1 20000000 0 0 8000000 0 0 0
ledger 3 2 0 1 20000000 0 0 4000000 0 0 0
end 30000000 0
"""
        capture = self.make("hogs", script)
        page = _, tables, _ = self.page(capture)
        self.agree(self.weights(page, "delay"), self.folded(capture, "--by", "victim-time"))
        self.assertEqual((tables["hog"]["delay"], tables["hog"]["victims"], tables["hog"]["length"]), ([12000000], [2], [20000000]))
        coro = tables["coro"]["id"]
        self.assertEqual([(coro[one], ns) for one, ns in zip(tables["victim"]["coro"], tables["victim"]["delay"])], [(2, 8000000), (3, 4000000)])

    def test_many_rows_are_folded(self):
        """What would not fit keeps its sums; the page says what is coarser."""
        lines = []
        for i in range(600):
            lines.append(f"stack {10 + i} 0 1:{16 * i + 16:x} 1:20\n")
        for i in range(300000):
            lines.append(("chunk\n" if i % 10000 == 0 else "") + f"sample {10000 * i + 10000} 10000 2 1 {10 + i * 7919 % 600} 1\n")
        capture = self.make("many", HEAD + "".join(lines) + "end 3000010000 0\n")
        page = head, tables, _ = self.page(capture)
        self.assertLessEqual(len(tables["row"]["node"]), 250000)
        self.assertEqual(sum(tables["row"]["samples"]), 300000)
        self.assertEqual(sum(tables["row"]["weight"]), 3000000000)
        self.agree(self.weights(page), self.folded(capture))
        self.assertLess(os.path.getsize(self.path("out.html")), 3000000)

    def test_what_is_first(self):
        self.assertEqual(self.page(self.capture)[0]["weight"], "cpu")
        self.assertEqual(self.page(self.capture, "--clock", "wall")[0]["weight"], "wall")
        self.assertEqual(self.page(self.capture, "--by", "critical-path")[0]["weight"], "path")
        self.assertEqual(self.page(self.capture, "--by", "victim-time")[0]["weight"], "delay")
        head = self.page(self.capture, "--by", "coroutine")[0]
        self.assertEqual((head["weight"], head["root"]), ("cpu", "coroutine"))
        self.assertEqual(head["command"], f"greenprof flamegraph {self.capture} -o {self.path('out.html')} --by coroutine")

    def test_counters_have_meanings(self):
        head, _, _ = self.page(self.make("counted", HEAD + "counters 1 1 0 " + 64 * "7 " + "\nend 9 0\n"))
        self.assertGreater(len(head["counters"]), 50)
        self.assertEqual([name for name, _, meaning, _ in head["counters"] if not meaning], [])

    def test_sources(self):
        """Lines are there when they are asked for and can be read; what a name leads to is looked at with care."""
        os.mkfifo(self.path("pipe.py"))
        with open(self.path("small.py"), "w") as file:
            file.write("".join(f"line {i} </script>\n" for i in range(1, 101)))
        script = HEAD + (f"function 1 3 work {self.path('small.py')}\nfunction 2 1 stuck {self.path('pipe.py')}\n"
                         "stack 9 0 function:1:40 function:2:1\nsample 5000000 5000000 2 1 9 1\nend 6000000 0\n")
        capture = self.make("lines", script)
        head, tables, _ = self.page(capture, "--source")
        source, = head["sources"]
        self.assertEqual((source["file"], source["first_line"], len(source["lines"])), (self.path("small.py"), 32, 17))
        self.assertEqual(source["lines"][8], "line 40 </script>")
        self.assertIn(40, tables["frame"]["at"])
        head, tables, _ = self.page(capture)
        self.assertEqual(head["sources"], [])
        self.assertEqual(set(tables["frame"]["at"]), {0})

    @unittest.skipIf(shutil.which("chromium") is None, "there is no chromium")
    def test_names_of_any_bytes(self):
        """Broken UTF-8 in a capture, and what looks like markup, is text on the page."""
        names = {b"cut\xe2\x82": "cut\ufffd\ufffd", b"bad\xff\xc3(": "bad\ufffd\ufffd(", b"</script><b>\xed\xa0\x80": None}
        script = HEAD.encode() + b"".join(b"function %d 1 %s /src/\xfe.py\n" % (i + 1, name) for i, name in enumerate(names))
        script += b"stack 9 0 function:1:1 function:2:1 function:3:1\nsample 5000000 5000000 2 1 9 1\nend 6000000 0\n"
        capture = self.path("bytes")
        subprocess.run([MAKE_CAPTURE, capture], input=script, check=True)
        head, _, _ = self.page(capture)
        browser = Browser()
        self.addCleanup(browser.close)
        browser.open(self.path("out.html"), 1200, 800)
        shown = browser.eval("greenprofApp.view.boxes.map((box) => box.name)")
        for wanted in (text for text in names.values() if text):
            self.assertIn(wanted, head["names"])
            self.assertIn(wanted, shown)
        self.assertTrue(any(name.startswith("</script><b>") for name in shown), shown)
        self.assertEqual(browser.eval("document.querySelectorAll('b').length"), 0)
        self.assertEqual(browser.errors, [])

    def test_bad_output(self):
        result = run("flamegraph", self.capture, "-o", "/nowhere/out.html")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "^greenprof: /nowhere/out.html: ")
        os.symlink("/dev/full", self.path("full.html"))
        result = run("flamegraph", self.capture, "-o", self.path("full.html"))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "No space left")


if __name__ == "__main__":
    main()
