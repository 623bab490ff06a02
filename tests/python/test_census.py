# SPDX-License-Identifier: MIT
"""The census of Python's coroutines: which one waits where, in every way to ask."""
import json
import os
import tempfile
import unittest

import support
import measured

support.require_package()
support.require("greenlet", "eventlet", "gevent")

ENDS = {  # of the stacks, outermost first, without what the library starts them by
    "asyncio": {("request", "leaf", "sleep"), ("request", "middle", "Event.wait")},
    "eventlet": {("request", "leaf", "sleep"), ("request", "middle", "Event.wait")},
    "gevent": {("request", "leaf"), ("request", "middle")}, # further in it is C
}


def run(kind, directory, before=()):
    path = os.path.join(directory, "census")
    said = support.python("census.py", kind, support.GREENPROF, path, before=before, XDG_RUNTIME_DIR=directory)
    written = json.loads(support.command("coroutines", path, "--json"))
    resting, sampling, live = map(json.loads, said.splitlines())
    return resting, sampling, [flat(live), flat(written)]


def flat(census):
    return [dict(member, stack=[(frame["function"], frame.get("file"), frame.get("line")) for frame in group["stack"]])
            for group in census["groups"] for member in group["members"]]


class Census(measured.Case):
    def check_stacks(self, kind, requests):
        self.assertEqual(len(requests), 10)
        for end in ENDS[kind]:
            self.assertEqual(len([one for one in requests if self.is_in(end, one)]), 5, (end, requests))

    def is_in(self, end, one):
        names = [frame[0] for frame in reversed(one["stack"])]
        return tuple(names[names.index("request"):][:len(end)]) == end

    def requests(self, census):
        return [one for one in census if any(frame[0] == "request" for frame in one["stack"])]

    def check(self, kind, before=()):
        with tempfile.TemporaryDirectory() as directory:
            resting, sampling, others = run(kind, directory, before)
        self.check_stacks(kind, self.requests(resting))
        self.check_stacks(kind, self.requests(sampling))
        lines = {frame[0]: frame[2] for one in sampling for frame in one["stack"] if frame[1].endswith("/programs/census.py")}
        with open(os.path.join(support.PROGRAMS, "census.py")) as file:
            source = file.read().splitlines()
        self.assertIn("1000", source[lines["leaf"] - 1])
        self.assertIn("event.wait()", source[lines["middle"] - 1])
        for one in self.requests(sampling):
            self.assertIn(one["state"], ("waiting", "parked"))
            self.at_least("waited", one["seconds"], 0.19)
            self.at_most("waited", one["seconds"], 30)
        asker = [one for one in sampling if one["state"] == "running"]
        self.assertEqual([one["stack"][0][0] for one in asker], ["report"])
        self.assertEqual(asker[0]["trace"], "4bf92f3577b34da6a3ce929d0e0e4736")
        self.assertEqual({one["spawner"] for one in self.requests(sampling)}, {asker[0]["id"]})
        if kind == "asyncio":
            self.assertEqual({one["name"] for one in self.requests(resting)}, {f"request {i}" for i in range(10)})
            self.assertEqual({one["trace"] for one in self.requests(sampling)}, {"1" * 32})
        else:
            self.assertEqual({one["name"] for one in self.requests(sampling)}, {"request"})
            self.assertEqual(len([one for one in sampling if one["name"] == "[hub]"]), 1)
        for census in others:
            self.check_stacks(kind, self.requests(census))
            self.assertEqual({one["spawner"] for one in self.requests(census)}, {asker[0]["id"]})

    def test_asyncio(self):
        self.check("asyncio")

    def test_eventlet(self):
        self.check("eventlet")

    def test_gevent(self):
        self.check("gevent")

    def test_under_greenprof_run(self):
        with tempfile.TemporaryDirectory() as directory:
            capture = os.path.join(directory, "capture")
            before = (support.GREENPROF, "run", "--quiet", "--clock", "wall", "-o", capture, "--")
            run("eventlet", directory, before)
            requests = self.requests(flat(json.loads(support.command("coroutines", capture, "--json"))))
            self.check_stacks("eventlet", requests)
            folded = support.Folded(support.command("export", capture, "--format", "folded", "--clock", "wall"))
        seconds = {stack[-1] for stack, weight in folded.stacks if "leaf" in stack and weight > 1}
        self.assertTrue(seconds & {"[parked]", "[waiting]"}) # a wait that never ended, where it happened


class ThreadNames(unittest.TestCase):
    NAMES = {"db-writer", "a name of mo..number 42", "gr\u00fcn", "renamed-itself", "short-lived", "pool_0"}
    AT_A_LOOK = {"before", "renamed-by-main", "by-the-kernel", "pool_1", "waits"}  # seen where a look comes while they are called so

    def check(self, kind):
        """What a thread is called is the same wherever it is shown."""
        run = support.Run("thread_names.py", kind)
        self.assertEqual((run.status, run.errors), (0, ""))
        report = run.report("--by", "coroutine")
        shown = {line.partition("[thread ")[2][:-1] for line in report.splitlines() if "[thread " in line}
        self.assertLessEqual(self.NAMES, shown)
        self.assertLessEqual(shown, self.NAMES | self.AT_A_LOOK | {name for name in shown if name.startswith("python3") or name.isdigit()})
        chrome = json.loads(support.command("export", run.capture, "--format", "chrome"))
        events = chrome["traceEvents"] if isinstance(chrome, dict) else chrome
        tracks = {event["args"]["name"] for event in events if event.get("name") == "thread_name"}
        for name in self.NAMES:
            self.assertTrue(any(name in track for track in tracks), (name, tracks))
            said = run.report("--by", "coroutine", "--thread", name)
            self.assertTrue(f"[thread {name}]" in said or (name == "pool_0" and " burn\n" in said), said)  # a worker's work is its calls'
        return run.output

    def test_run_alone(self):
        self.check("none")

    def test_package(self):
        self.assertIn("'waits'", self.check("package"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
