# SPDX-License-Identifier: MIT
"""Spans of Python programs: which there are, in which they nest, what they say, and where the time went."""
import glob
import json
import os
import subprocess
import tempfile
import unittest

import support

support.require_package()

REQUESTS, CHILDREN, TURNS = 20, 3, 5  # of programs/spans.py
REMOTE_PARENT, REPAIRED, IMPLICIT, FAILED, NO_TIMES = 1, 4, 8, 16, 32
REST_DISPATCH, CACHE, TASK, THREAD_SPAWN, THREAD_MAIN = 3, 7, 9, 11, 12


def spans_of(run):
    done = subprocess.run([os.environ["LIST_SPANS"], run.capture], capture_output=True, text=True, timeout=support.LIMIT_SECONDS)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def made_by_program(spans):
    return [span for span in spans if span["kind"] not in (THREAD_SPAWN, THREAD_MAIN)]


class Shapes(unittest.TestCase):
    def check(self, kind):
        run = support.Run("spans.py", kind)
        ids, all_ = json.loads(run.output), spans_of(run)
        spans = made_by_program(all_)
        by_name = {span["name"]: span for span in spans}
        self.assertEqual({name: span["id"] for name, span in by_name.items()}, ids)
        self.assertEqual(len(spans), REQUESTS * (1 + CHILDREN * (1 + TURNS)))
        self.assertEqual(len({span["id"] for span in spans}), len(spans))
        self.assertEqual(len(all_) - len(spans), 2 * REQUESTS * CHILDREN if kind == "threads" else 0)
        self.assertIn(f" {len(all_)} spans,", support.command("info", run.capture))
        for i in range(REQUESTS):
            self.check_request(i, by_name)
        for span in spans:
            self.assertEqual(span["coroutine"], span["end_coroutine"])
            # The known part of its time lies within it; the rest is rounding of clocks read one after the other.
            self.assertLessEqual(span["times_ns"], (span["end_ns"] - span["start_ns"]) + 1000)

    def check_request(self, i, by_name):
        root = by_name[f"request-{i}"]
        self.assertEqual((root["parent_id"], root["flags"], root["is_root"], root["kind"]), (i, REMOTE_PARENT, True, REST_DISPATCH))
        self.assertEqual(root["fields"], [["http.status", "200"]])
        for c in range(CHILDREN):
            child = by_name[f"child-{i}-{c}"]
            self.assertEqual((child["parent_id"], child["flags"], child["kind"]), (root["id"], 0, TASK))
            self.assertNotEqual(child["coroutine"], root["coroutine"])
            for t in range(TURNS):
                inner = by_name[f"get-{i}-{c}-{t}"]
                self.assertEqual((inner["parent_id"], inner["flags"], inner["kind"]), (child["id"], 0, CACHE))
                self.assertEqual(inner["coroutine"], child["coroutine"])
                self.assertEqual(inner["fields"], [["key", f"({i}, {c})"], ["turn", str(t)]])
                self.assertEqual(inner["trace"], f"{i + 1:032x}")
                self.assertTrue(root["start_ns"] <= child["start_ns"] <= inner["start_ns"])
                self.assertTrue(inner["end_ns"] <= child["end_ns"] <= root["end_ns"])

    def test_eventlet(self):
        support.require("eventlet")
        self.check("eventlet")

    def test_gevent(self):
        support.require("gevent")
        self.check("gevent")

    def test_asyncio(self):
        self.check("asyncio")

    def test_threads(self):
        self.check("threads")


class Uses(unittest.TestCase):
    def test_recorded(self):
        run = support.Run("span_uses.py", "recorded")
        self.assertEqual(run.output, "end\n")
        spans = {}
        for span in made_by_program(spans_of(run)):
            spans.setdefault(span["name"], []).append(span)
        self.assertEqual({name: len(same) for name, same in spans.items() if len(same) != 1},
                         {"again": 2, "recursive": 4, "awaited": 10})
        said = {name: dict(same[0]["fields"]) for name, same in spans.items() if same[0]["flags"] & FAILED}
        self.assertEqual(said, {"fails": {"error.type": "KeyError", "error.message": "'k'"}, "broken": {"error.type": "__main__.Broken"},
                                "said": {"error.type": "Timeout", "error.message": "after 5 s"},
                                "caught": {"error.type": "FileNotFoundError",
                                           "error.message": "[Errno 2] No such file or directory: '/nonexistent/file'"},
                                "plain": {}})
        self.assertEqual(dict(spans["fields"][0]["fields"]),
                         {"name": "n", "kind": "k", "number": "5", "db.system": "\\udc80", "nul": "a", "unicode": "\u00e9",
                          "trace": "None"})
        self.check_nesting({name: same[0] for name, same in spans.items()}, spans)

    def check_nesting(self, first, spans):
        self.assertEqual(first["apart"]["flags"], NO_TIMES)
        self.assertNotEqual(first["apart"]["coroutine"], first["apart"]["end_coroutine"])
        self.assertEqual(first["elsewhere"]["parent_id"], first["apart"]["id"])
        self.assertEqual((first["dropped"]["flags"], first["dropped"]["parent_id"]), (0, first["around"]["id"]))
        parents = [span["parent_id"] for span in spans["recursive"]]
        self.assertEqual(parents, [0] + [span["id"] for span in spans["recursive"][:-1]])
        self.assertEqual({span["trace"] for span in spans["recursive"]}, {"1" * 32})
        self.assertEqual(len({span["coroutine"] for span in spans["awaited"]}), 10)
        self.assertEqual((first[""]["flags"], first[""]["trace"]), (IMPLICIT, "2" * 32))
        self.assertFalse({name for name, span in first.items() if span["flags"] & REPAIRED})

    def test_absent(self):
        done = subprocess.run([support.PYTHON, "-B", os.path.join(support.PROGRAMS, "span_uses.py"), "absent"], capture_output=True,
                              text=True, timeout=support.LIMIT_SECONDS)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "end\n", ""))


PARENTS = {"parent over": ("spawn", 1), "below another one": ("spawn", 1), "request over": ("request", 1), "both over": ("spawn", 1),
           "of the first": ("request", 1), "task": ("another", 2), "much later": ("request", 1), "child of open": ("forks", 3),
           "child of over": ("spawn", 1)}


class Parents(unittest.TestCase):
    """A parent that is over is still the parent, in whatever runs its children; stack=True tells Python's functions."""

    def check(self, spans, names):
        by_name = {span["name"]: span for span in spans if span["name"] != "noise"}
        for name in names:
            parent, trace = PARENTS[name]
            one = by_name[name]
            self.assertEqual((one["trace"], one["parent"]), (f"{trace:x}" * 32, by_name[parent]["span"]), name)
            for way, functions in (("by mid", ["outer", "mid", "leaf"]), ("at once", ["outer", "leaf"])):
                below = by_name[f"leaf of {name} {way}"]
                self.assertEqual((below["trace"], below["parent"]), (one["trace"], one["span"]), name)
                self.assertEqual(below["stack"].splitlines()[-len(functions) - 1:][-len(functions):], functions)
                self.assertEqual("mid" in below["stack"].splitlines(), way == "by mid")
                self.assertNotIn("PyEval", below["stack"])
            self.assertNotIn("stack", one)
        self.assertEqual(by_name["leaf of request"]["stack"].splitlines(), ["<module>", "mid", "leaf"])
        self.assertEqual(by_name["leaf of another"]["trace"], "2" * 32)  # what was open goes on

    def test_consumer(self):
        with tempfile.TemporaryDirectory() as directory:
            done = subprocess.run([support.PYTHON, "-B", os.path.join(support.PROGRAMS, "span_parents.py"), directory], capture_output=True,
                                  text=True, timeout=support.LIMIT_SECONDS)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
            spans = []
            for name in glob.glob(directory + "/*/spans-*.jsonl"):
                with open(name, encoding="utf-8") as file:
                    spans += [json.loads(line) for line in file]
            self.check(spans, PARENTS)

    def test_capture(self):
        run = support.Run("span_parents.py")
        for name in PARENTS:
            trace = f"{PARENTS[name][1]:x}" * 32
            spans = json.loads(support.command("trace", "show", trace, run.capture, "--json"))["spans"]
            self.assertEqual({one["trace"] for one in spans}, {trace})
        spans = [one for n in "12" for one in json.loads(support.command("trace", "show", n * 32, run.capture, "--json"))["spans"]]
        self.check(spans, [name for name in PARENTS if not name.startswith("child")])


class Idle(unittest.TestCase):
    def check(self, kind):
        run = support.Run("idle.py", kind)
        states = run.output.splitlines()
        self.assertEqual(len(states), 6)
        for idle, busy in zip(states[::2], states[1::2]):
            self.assertEqual(idle, "idle")
            self.assertIn(busy, ("parked", "ready", "waiting"))
        waits = set()
        for stack, _ in run.folded("--clock", "wall").stacks:
            if stack[-1] in ("[parked]", "[ready]", "[waiting]"):
                waits.update(stack)
        self.assertIn("busy_wait", {name.rpartition(".")[2] for name in waits})
        self.assertNotIn("idle_wait", {name.rpartition(".")[2] for name in waits})
        self.assertEqual([span["name"] for span in spans_of(run)], ["work"] * 3)

    def test_eventlet(self):
        support.require("eventlet")
        self.check("eventlet")

    def test_asyncio(self):
        self.check("asyncio")


class Threads(unittest.TestCase):
    def test_threads_of_a_request(self):
        """Each has an instant at which it is started and a span for its life, also beyond the request; threads of pools have none."""
        spans = spans_of(support.Run("thread_spans.py"))
        request, = (span for span in spans if span["name"] == "request")
        spawns, mains = ({span["id"]: span for span in spans if span["kind"] == kind} for kind in (THREAD_SPAWN, THREAD_MAIN))
        self.assertEqual([(span["parent_id"], span["trace"]) for span in spawns.values()], [(request["id"], request["trace"])] * 3)
        self.assertEqual({span["parent_id"] for span in mains.values()}, set(spawns))
        for main in mains.values():
            self.assertEqual((main["name"], main["trace"]), (spawns[main["parent_id"]]["name"], request["trace"]))
        within = {span["name"]: span["parent_id"] for span in spans if span["name"].startswith("in ")}
        self.assertEqual({mains[within[name]]["name"][:6] for name in ("in joined", "in late", "in timed")}, {"joined", "late", "Thread"})
        self.assertNotIn(within["in pool"], mains)
        self.assertNotIn(within["in lone"], mains)
        late = next(main for main in mains.values() if main["name"] == "late")
        self.assertGreater(late["end_ns"], request["end_ns"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
