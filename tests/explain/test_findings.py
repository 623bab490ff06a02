# SPDX-License-Identifier: MIT
"""Findings of captures that a script makes: each has a twin of which nothing is said."""
import json
import os
import re
import xml.etree.ElementTree

from verdict import GREENPROF, explain, findings, helpers

HEAD = """
meta exe /opt/app/server
module 1 /opt/app/server 0102 0x1000 0x9000 0x0
function 1 10 handle /opt/app/api.py
function 2 20 render /opt/app/pages.py
function 3 30 sleep /usr/lib/python3/dist-packages/eventlet/greenthread.py
thread 1 10 1 0 main
coro 1 0 - 0x1000 0x1000 1 1 -
coro 2 1 - 0x3000 0x1000 2 0 hog
coro 3 1 - 0x5000 0x1000 2 0 victim
trace 1 4bf92f3577b34da6a3ce929d0e0e4736
stack 1 0 function:2:21 function:1:12
stack 2 0 function:3:31 function:1:13
"""
TAIL = "counters {end} {cpu} 10000 90 90 {lost} 0 0 0 0 0 0 0 0 0 0\nend {end} 0\n"
MS = 1000000


def ledger(coro, cpu=0, parked=0, ready=0, trace=0, switches=10):
    return f"ledger {coro} {trace} {cpu} {switches} {1000 * MS} {cpu} 0 {ready} {parked} 0 {cpu}\n"


class Findings(helpers.InFolder):
    def make(self, lines, end=1000 * MS, cpu=100 * MS, lost=9):
        script = HEAD + lines + TAIL.format(end=end, cpu=cpu, lost=lost)
        return helpers.make_capture(os.environ["MAKE_CAPTURE"], self.path("x.greenprof"), script)

    def slices(self, count, milliseconds, stack=1, victim=True):
        lines = ledger(2, cpu=count * milliseconds * MS) + ledger(3, parked=MS)
        for i in range(1, count + 1):
            start = i * 100 * MS
            lines += f"hog {i} 2 0 1 {start} {milliseconds * MS} {stack}:{milliseconds * MS}\n"
            lines += f"delay {i} 3 0 {milliseconds * MS}\n" if victim else ""
        return lines

    def test_code_that_keeps_the_loop(self):
        path = self.make(self.slices(5, 40))
        finding, = findings(path)
        self.assertEqual((finding["kind"], finding["function"], finding["file"], finding["line"]), ("held-loop", "render", "/opt/app/pages.py", 21))
        self.assertEqual((finding["cost_ns"], finding["times"]), (200 * MS, 5))
        self.assertIn("render (pages.py:21) computes for up to 40.0 ms at a time and kept the loop: others were ready and waited 200.0 ms",
                      finding["sentence"])
        text = explain(path).stdout
        self.assertIn("\n 1. render (pages.py:21) computes", text)
        self.assertIn(f"    code:  /opt/app/pages.py:21\n    shown: greenprof report {path} --by victim-time\n", text)
        header = helpers.run([GREENPROF, "report", path]).stdout
        self.assertIn("  verdict    render (pages.py:21) computes", header)
        self.assertNotIn("verdict", helpers.run([GREENPROF, "report", path, "--coroutine", "2"]).stdout)

    def test_the_program_s_own_code_is_named(self):
        """The library's function is called by what is wrong."""
        finding, = findings(self.make(self.slices(5, 40, stack=2)))
        self.assertEqual((finding["function"], finding["line"]), ("handle", 13))
        self.assertIn("handle (api.py:13) computes in sleep for", finding["sentence"])

    def test_slices_that_keep_nobody_waiting(self):
        for lines in (self.slices(5, 40, victim=False), self.slices(1, 12), ledger(2, cpu=90 * MS)):
            path = self.make(lines)
            self.assertEqual(findings(path), [])
            self.assertIn("\nNothing stands out in the program.\n", explain(path).stdout)
            self.assertNotIn("verdict", helpers.run([GREENPROF, "report", path]).stdout)

    def locks(self, more, waits):
        """Threads a to h, of which the main one is told by its number; stacks: 10 + n waits for a lock that the n-th has."""
        lines = f"ledger 21 0 {MS} 1 {1000 * MS} {MS} 0 0 0 0 {MS} {800 * MS} {MS}\n" + "words 9 [lock a_file_with_a_name_that_is_long.py:1]\n"
        for n in range(8):
            name = f"{'abcdefgh'[n]}{'-' * 30}"
            lines += f"words {10 + n} [held by {name}]\nthread {10 + n} {100 + n} {20 + n} 0 worker\ncoro {20 + n} 0 - {0x100000 * (n + 1)} 0x1000 1 {10 + n} {name}\n"
            lines += f"stack {10 + n} 0 function:{10 + n}:0 function:9:0 function:1:12\n"
        return self.make(more + lines + "".join(waits))

    def circle(self, count, last_ns=500 * MS, more=""):
        """The last one of the circle has waited for a time of its own, and was looked at 1 ms after the others."""
        waits = [f"census {900 * MS + (n == count - 1) * MS} {20 + n} 2 {500 * MS if n < count - 1 else last_ns} {10 + (n + 1) % count}\n" for n in range(count)]
        return [finding for finding in findings(self.locks(more, waits)) if finding["kind"] == "deadlock"]

    def test_deadlocks_are_of_one_moment(self):
        finding, = self.circle(2, last_ns=200 * MS)
        self.assertEqual((finding["times"], finding["cost_ns"]), (2, 700 * MS))
        path = self.locks("", [f"census {100 * MS} 20 2 {100 * MS} 11\n", f"census {900 * MS} 21 2 {200 * MS} 10\n"])
        self.assertEqual(findings(path), [])  # when the first was looked at, the second had not begun

    def test_long_circles_are_counted_to_their_end(self):
        finding, = self.circle(8)
        self.assertEqual((finding["times"], finding["cost_ns"]), (8, 4000 * MS))
        self.assertIn("8 threads", finding["hurt"])

    def test_deadlocks_are_told_whatever_else_is(self):
        pools = "".join(f"pool {100 + p} 1 db{p}\n" for p in range(40))
        for p in range(40):
            for i in range(3):
                coro = 1000 + 10 * p + i
                pools += f"coro {coro} 2 function:2:20 0 0 2 0 call {100 * MS}\norigin {coro} 0 0 function:{100 + p}:0\n"
                pools += f"ledger {coro} 1 {MS} 1 {1000 * MS} {100 * MS} {99 * MS} {i * 100 * MS} 0 0 {100 * MS}\n"
        self.assertEqual(len(self.circle(2, more=pools)), 1)

    def test_a_sleeper_has_given_the_interpreter_s_lock_back(self):
        """And samples that overlap hold no more than there is to hold."""
        more, samples = "stack 4 0 function:2:21 function:1:12\nstack 5 0 function:1:12\n", ""
        for i in range(100):
            samples += f"sample {(i + 1) * 9 * MS} {8 * MS} 21 11 11 0 6\n"
            samples += "".join(f"sample {(i + 1) * 9 * MS} {8 * MS} 20 10 {stack} 0 {kind}\n" for kind, stack in ((0, 4), (1, 4), (5, 5)))
        path = self.locks(more, [samples.replace(" 21 11 11 ", " 21 11 10 ")])
        said, = (finding for finding in findings(path) if finding["kind"] == "gil-held")
        self.assertEqual((said["function"], said["cost_ns"]), ("render", 800 * MS))
        self.assertIn("100 % of all such waits", said["sentence"])

    def test_start_up(self):
        """The first slice of a thread's own stack has no loop yet; a later one has, and so has a coroutine's."""
        def one(coro, start):
            lines = ledger(coro, cpu=90 * MS) + ledger(3, parked=MS)
            return self.make(lines + f"hog 1 {coro} 0 1 {start} {90 * MS} 1:{90 * MS}\ndelay 1 3 0 {90 * MS}\n")
        self.assertEqual(findings(one(1, MS)), [])
        for coro, start in ((1, 100 * MS), (2, MS)):
            self.assertEqual([finding["kind"] for finding in findings(one(coro, start))], ["held-loop"])

    def pool(self, size, calls=6, requests=True):
        """Calls of 100 ms that are all handed over at 100 ms: a worker takes the next one when it is free."""
        lines = f"pool 4 {size} db\n"
        for i in range(calls):
            queued, coro, trace = i // size * 100 * MS, 10 + i, 1 if requests and i > 0 else 0
            lines += f"coro {coro} 2 function:{'1:10' if i == 0 else '2:20'} 0 0 2 0 call {100 * MS}\norigin {coro} 0 0 function:4:0\n"
            lines += f"ledger {coro} {trace} {MS} 1 {1000 * MS} {100 * MS} {99 * MS} {queued} 0 0 {100 * MS}\n"
        return self.make(lines)

    def test_full_pool(self):
        path = self.pool(2)
        finding, = findings(path)
        self.assertEqual((finding["kind"], finding["function"], finding["line"], finding["cost_ns"], finding["times"]),
                         ("full-pool", "render", 20, 600 * MS, 6))
        self.assertIn("the pool db is full: render (pages.py:20) held its 2 workers for 500.0 ms, 83 % of their work, and 6 calls waited "
                      "600.0 ms in its queue, up to 200.0 ms each and 4 at a time", finding["sentence"])
        self.assertEqual((finding["hurt"], finding["command"].split()[-2:]), ("1 request, for 600.0 ms together", ["--by", "pool"]))
        self.assertIn("exact", finding["sure"])
        text = helpers.run([GREENPROF, "report", path, "--by", "pool"]).stdout
        row = next(line.split() for line in text.splitlines() if line.endswith(" db"))
        self.assertEqual(row, ["2", "100.0", "2.00", "2", "6", "2.00", "4", "100.000", "200.000", "200.000", "600.000", "1", "db"])
        self.assertRegex(text, r"\n +500\.000 +83\.3 +5 +100\.000  db: render \(/opt/app/pages\.py:20\)\n +100\.000 +16\.7 +1 +100\.000  db: handle ")

    def test_pools_that_are_no_fault(self):
        self.assertEqual(findings(self.pool(6)), [])
        self.assertEqual(findings(self.pool(2, requests=False)), [])  # a note
        self.assertIn("No call to a pool of threads was seen", helpers.run([GREENPROF, "report", self.make(self.spans(5, 20)), "--by", "pool"]).stdout)

    def spans(self, count, milliseconds, flags=0, at_once=False):
        lines = ledger(2, cpu=10 * MS, trace=1) + f"span 1 0 2 2 0 {900 * MS} 1 3 0 GET /servers\n"
        for i in range(count):
            start = MS if at_once else MS + i * milliseconds * MS
            lines += f"sample {start + MS // 2} {MS} 2 1 2 1\n" if milliseconds > 1 else ""
            lines += f"span {10 + i} 1 2 2 {start} {start + milliseconds * MS} 1 6 {flags} sqlite SELECT\n"
        return lines

    def test_same_call_again_and_again(self):
        finding, = findings(self.make(self.spans(30, 20)))
        self.assertEqual((finding["kind"], finding["times"]), ("repeated-call", 30))
        self.assertEqual((finding["function"], finding["line"]), ("handle", 13))
        self.assertIn('sqlite SELECT of handle (api.py:13) runs 30 times, one after the other, in each "GET /servers": 600.0 ms, 67 % of the requests\' time', finding["sentence"])

    def test_calls_that_fail_and_are_made_again(self):
        finding, = findings(self.make(self.spans(4, 100, flags=16)))
        self.assertEqual(finding["kind"], "retries")
        self.assertIn("4 times, one after the other, in each \"GET /servers\", and most of them fail", finding["sentence"])

    def test_one_request_is_measured_by_itself(self):
        """Other requests that take long hide nothing of the one that is asked about; its page begins with it."""
        others = "".join(f"trace {n} {n:032x}\nspan {1000 + n} 0 3 3 0 {900 * MS} {n} 3 0 GET /slow\n" for n in range(2, 32))
        path = self.make(self.spans(30, 20) + others)
        self.assertEqual(findings(path), [])  # 2 % of all requests' time
        finding, = findings(path, "4bf92f3577b34da6a3ce929d0e0e4736")
        self.assertEqual(finding["kind"], "repeated-call")
        helpers.run([GREENPROF, "trace", "show", "4bf92f3577b34da6a3ce929d0e0e4736", path, "--html", "-o", self.path("one.html")])
        with open(self.path("one.html"), encoding="utf-8") as file:
            verdict, = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', file.read(), re.S)[1])["verdicts"]
        self.assertEqual(verdict, finding["sentence"] + ".")

    def test_calls_of_which_there_are_few_or_all_at_once(self):
        for lines in (self.spans(5, 20), self.spans(30, 20, at_once=True), self.spans(30, 1), self.spans(2, 100, flags=16)):
            self.assertEqual(findings(self.make(lines)), [])

    def test_losses_are_told_first(self):
        lines = self.slices(5, 40) + "".join(f"sample {i * MS} {MS} 2 1 1 0\n" for i in range(1, 91))
        path = self.make(lines, lost=10)
        self.assertEqual([finding["kind"] for finding in findings(path)], ["lost-data", "held-loop"])
        self.assertIn("\n !  10 of 100 samples were lost (10.0 %)", explain(path).stdout)

    def test_names_that_are_missing(self):
        lines = "stack 3 0 1:1234\n" + "".join(f"sample {i * MS} {MS} 2 1 {3 if i % 2 else 1} 0\n" for i in range(1, 201))
        finding, = (finding for finding in findings(self.make(lines)) if finding["kind"] == "no-names")
        self.assertIn("50 % of the CPU time is in functions without names, of /opt/app/server", finding["sentence"])

    def test_start_up_is_told_apart(self):
        def lines(until):
            return (ledger(2, cpu=500 * MS, trace=1) + f"span 1 0 2 2 {600 * MS} {900 * MS} 1 3 0 GET /\n"
                    + "".join(f"sample {i * MS} {MS} 2 1 1 0\n" for i in range(until - 500, until)))
        for until, kinds in ((550, ["start-up"]), (1200, [])):
            notes = findings(self.make(lines(until), cpu=500 * MS), ranks=("note",))
            self.assertEqual([note["kind"] for note in notes if note["kind"] != "hot-code"], kinds)

    def test_one_request(self):
        lines = self.slices(5, 40) + f"span 1 0 3 3 0 {900 * MS} 1 3 0 GET /\n" + ledger(3, cpu=MS, trace=1)
        path = self.make(lines.replace("delay 1 3 0", "delay 1 3 1").replace("delay 2 3 0", "delay 2 3 1"))
        finding, = findings(path, "4bf92f3577b34da6a3ce929d0e0e4736")
        self.assertEqual((finding["kind"], finding["cost_ns"]), ("held-loop", 80 * MS))
        self.assertIn("has no trace", explain(path, "0" * 31 + "1", status=1).stderr)
        self.assertIn("must be 32 hex digits", explain(path, "nonsense", status=2).stderr)

    def test_conditions(self):
        path = self.make(self.slices(5, 40))
        for condition, status in (("victim>100ms", 3), ("victim>1s", 0), ("findings>0", 3), ("findings>1", 0), ("held-loop>0.1s", 3),
                                  ("held-loop>0", 3), ("growing>0", 0), ("victim>1s,held-loop>0", 3), ("p99>1ms", 1)):
            result = explain(path, "--fail-on", condition, status=status)
            self.assertEqual(bool(result.stderr), status != 0, result.stderr)
            self.assertIn("1. render", result.stdout)
        for condition in ("", "victim", "victim>", "victim>x", "victim>1", "victim>1s,", "nonsense>1", "p99<1s", "findings>1s", "v>1s", "or>1", ">1", ">1s"):
            self.assertIn("must be NAME>VALUE", explain(path, "--fail-on", condition, status=2).stderr)

    def test_junit(self):
        """Each condition is a test; what is not known is an error."""
        path, out = self.make(self.slices(5, 40)), self.path("out.xml")
        explain(path, "--fail-on", "victim>100ms,growing>0,p99>1ms", "--junit", out, status=1)
        suite = xml.etree.ElementTree.parse(out).getroot().find("testsuite")
        self.assertEqual({key: suite.get(key) for key in ("tests", "failures", "errors")}, {"tests": "3", "failures": "1", "errors": "1"})
        cases = {case.get("name"): case for case in suite.iter("testcase")}
        self.assertRegex(cases["victim>100ms"].find("failure").get("message"), r"^it is \d\.\d{3} s$")
        self.assertEqual(list(cases["growing>0"]), [])
        self.assertIn("there are no requests", cases["p99>1ms"].find("error").get("message"))
        self.assertIn("1. render", suite.find("system-out").text)
        explain(path, "--junit", out)
        self.assertEqual(xml.etree.ElementTree.parse(out).getroot().find("testsuite/testcase").get("name"), "findings>0")
        self.assertIn("nowhere", explain(path, "--junit", "/nowhere/x.xml", status=1).stderr)

    def test_lines_fit_a_terminal(self):
        """But for what is one word: a path, a command."""
        for line in explain(self.make(self.slices(5, 40))).stdout.splitlines()[1:]:
            self.assertTrue(len(line) <= 80 or line.startswith(("    code:", "    shown:")), line)

    def test_schema(self):
        said = json.loads(explain(self.make(ledger(2, cpu=MS)), "--json").stdout)
        self.assertEqual({key: said[key] for key in ("version", "requests", "p99_ns", "victim_ns", "findings")},
                         {"version": 1, "requests": 0, "p99_ns": None, "victim_ns": None, "findings": []})
        finding, = findings(self.make(self.slices(5, 40)))
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "doc", "explain.md")) as file:
            document = file.read()
        for key in (*said, *finding):
            self.assertRegex(document, rf"`{key}`")
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "greenprof", "report", "explain_conditions.c")) as file:
            for kind in re.findall(r"\b[a-z]+-[a-z-]+\b", re.search(r"known\[\] =\s*(.*?);", file.read(), re.S)[1]):
                self.assertIn(f"`{kind}`", document)

    def test_bad_input(self):
        self.assertIn("No such file", explain("/nowhere.greenprof", status=1).stderr)
        self.assertIn("missing FILE or PID", explain(status=2).stderr)


if __name__ == "__main__":
    helpers.main()
