# SPDX-License-Identifier: MIT
"""The census against a program with known coroutines: names, states, stacks, traces, counts."""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

GREENPROF = os.environ["GREENPROF"]
MANY = os.environ["MANY"]
STATES = ["parked", "waiting", "ready", "new"]  # of number % 4
PLACES = ["wait_for_reply", "wait_for_reply", "wait_for_turn", None]


class CensusCase(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.env = dict(os.environ, XDG_RUNTIME_DIR=self.dir)
        self.file = os.path.join(self.dir, "census")

    def many(self, *args, **more):
        return subprocess.run([MANY, *map(str, args)], env=dict(self.env, **more), timeout=100,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def command(self, *args, greenprof=GREENPROF, **kwargs):
        return subprocess.run([greenprof, "coroutines", *map(str, args)], env=self.env, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, **kwargs)

    def read(self, *args):
        done = self.command(*args, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_a_thread_that_slept_has_not_been_running(self):
        done = subprocess.run([GREENPROF, "run", "-o", self.file, "sleep", "1"], env=self.env, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr)
        members = [member for group in self.read(self.file)["groups"] for member in group["members"]]
        self.assertEqual(len(members), 1)
        if members[0]["state"] == "running":
            self.assertLess(members[0]["state_ms"], 1000)  # of its life, what it was on a processor

    def members(self, census):
        return [(member, [frame["function"] for frame in group["stack"]])
                for group in census["groups"] for member in group["members"] if "is_thread" not in member]

    def check(self, census, count):
        self.assertEqual(census["coroutines"], count)
        members = self.members(census)
        self.assertEqual({m["name"] for m, _ in members}, {"request %d" % i for i in range(count)})
        for member, stack in members:
            number = int(member["name"].split()[1])
            self.assertEqual(member["state"], STATES[number % 4], member)
            self.assertGreaterEqual(member["state_ms"], 190)
            self.assertLess(member["state_ms"], 60000)
            if number % 4 == 3:
                self.assertEqual(stack, ["[not started]", "work"])
                continue
            self.assertEqual(stack[-2:], [PLACES[number % 4], "work"])
            self.assertEqual(member["trace"], "%032x" % (number % 4 + 1))
        counts = sorted(g["count"] for g in census["groups"] if "is_thread" not in g["members"][0])
        self.assertEqual(counts, [count // 4, count // 4, count // 2])

    def start_waiting(self, *prefix, count=10000, **more):
        process = subprocess.Popen([*prefix, MANY, str(count), "wait"], env=dict(self.env, **more),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def test_the_program_asks(self):
        done = self.many(10000, "dump", self.file)
        self.assertEqual(done.returncode, 0, done.stderr)
        census = self.read(self.file)
        self.check(census, 10000)
        self.assertEqual(census["threads"], 1)
        thread = [g for g in census["groups"] if "is_thread" in g["members"][0]][0]
        self.assertEqual(thread["members"][0]["state"], "blocked")
        self.assertIn("main", [frame["function"] for frame in thread["stack"]])
        self.assertEqual(sorted(os.listdir(self.dir)), ["census", "greenprof"])  # no half-written file
        self.assertEqual(os.listdir(self.dir + "/greenprof"), [])

    def test_held_up_threads(self):
        """What sleeps in the kernel is blocked, and shows where; what computes is running, and shows where if it was sampled."""
        self.assertEqual(self.many(0, "asleep", self.file).returncode, 0)
        census = self.read(self.file)
        self.assertEqual((census["coroutines"], census["threads"]), (2, 4))
        coros = {member["name"]: (member["state"], stack) for member, stack in self.members(census)}
        self.assertEqual(coros["request 0"][0], "blocked")
        self.assertEqual(coros["request 0"][1][-2:], ["sleep_in_the_kernel", "hold_up"])
        self.assertEqual(coros["request 1"][0], "running")
        self.assertIn(coros["request 1"][1], ([], ["compute", "hold_up"]))
        threads = [(member["state"], [frame["function"] for frame in group["stack"]]) for group in census["groups"]
                   for member in group["members"] if "is_thread" in member]
        asleep = [state for state, stack in threads if "sleep_in_the_kernel" in stack]
        self.assertEqual(asleep, ["blocked"])

    def check_held(self, census):
        """Of the 8 coroutines that wait, and the one that keeps the thread."""
        members = {member["name"]: (member, stack) for member, stack in self.members(census)}
        self.assertEqual(set(members), {"request %d" % i for i in range(9)})
        holder, stack = members.pop("request 8")
        self.assertEqual((holder["state"], stack), ("running", ["compute", "hold_up"]))
        self.assertGreater(holder["sampled_before_ms"], 0)
        for member, _ in members.values():
            self.assertEqual(member["state"], STATES[int(member["name"].split()[1]) % 4])
            self.assertNotIn("sampled_before_ms", member)
        return holder["state_ms"]

    def read_if_any(self, capture):
        """The latest census that is written so far."""
        done = self.command(capture, "--json") if os.path.exists(capture) else None
        return json.loads(done.stdout) if done is not None and done.returncode == 0 else {"groups": []}

    def start_recorded(self, count, what, capture):
        process = subprocess.Popen([GREENPROF, "run", "--quiet", "-o", capture, MANY, str(count), what],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(self.env, UNSAMPLED="1"))
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        return process

    def start_holding(self, count, capture):
        """A coroutine keeps the thread, and a census of the capture has it."""
        process = self.start_recorded(count, "hold", capture)
        while not any(member["name"] == "request %d" % count and member["state_ms"] >= 1000 and
                      member["state"] == ("running" if count > 0 else "blocked")
                      for member, _ in self.members(self.read_if_any(capture))):
            self.assertIsNone(process.poll())
        return process

    def report(self, capture, status=0):
        done = subprocess.run([GREENPROF, "report", capture], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, timeout=60)
        self.assertIn(done.returncode, (0, 1) if status is None else (status,), done.stderr)
        return done.stdout

    def test_a_thread_that_is_held(self):
        """Where a coroutine is that keeps its thread: of the live process, and of one that was killed."""
        capture = os.path.join(self.dir, "capture")
        process = self.start_holding(8, capture)
        self.check_held(self.read(process.pid))
        text = self.command(process.pid).stdout
        self.assertIn("[on the CPU, sampled ", text)
        self.assertRegex(text, r"\nA thread is held by request 8, for at least \d+\.\d+ s, in compute \(many\.c:\d+\)\n")
        process.kill()
        process.wait()
        census = self.read(capture)
        self.assertGreaterEqual(self.check_held(census), 1000)
        self.assertLessEqual(census["at_ms"], census["recorded_ms"])
        self.assertRegex(self.report(capture), r"\n  held       by request 8, .*in compute \(many\.c:\d+\)")

    def test_a_thread_that_is_held_asleep(self):
        capture = os.path.join(self.dir, "capture")
        process = self.start_holding(0, capture)
        process.kill()
        process.wait()
        census = self.read(capture)
        (holder, stack), = self.members(census)
        self.assertEqual((holder["state"], stack[-3:]), ("blocked", ["sleep_in_the_kernel", "hold_up", "tire_out"]))
        self.assertLess(holder["state_ms"], census["at_ms"] - 1000)  # before that it computed for so long
        self.assertRegex(self.report(capture), r"\n  held       by request 0, .*in \S*read")

    def test_a_child_that_is_killed(self):
        """It has a census of its own as soon as it has samples, whenever its parent had one."""
        capture = os.path.join(self.dir, "capture")
        process = self.start_recorded(4, "child", capture)
        while not self.read_if_any(capture)["groups"]:
            self.assertIsNone(process.poll())
        process.stdin.write(b"\n")
        process.stdin.flush()
        child = int(process.stdout.readline())
        of_child = "%s.%d" % (capture, child)
        self.addCleanup(process.wait)  # after the child
        self.addCleanup(os.kill, child, signal.SIGKILL)
        while not os.path.exists(of_child) or not re.search(r"\n  samples +[1-9]", self.report(of_child, None)):
            self.assertIsNone(process.poll())
        threads = [member["name"] for group in self.read(of_child)["groups"] for member in group["members"]
                   if "is_thread" in member]
        self.assertEqual(threads, ["[thread census_many]"])

    def test_a_thread_that_is_not_held(self):
        capture = os.path.join(self.dir, "capture")
        process = self.start_recorded(8, "wait", capture)
        while not self.read_if_any(capture)["groups"]:
            self.assertIsNone(process.poll())
        process.kill()
        process.wait()
        self.assertNotIn("  held ", self.report(capture))

    def test_filters_and_text(self):
        self.assertEqual(self.many(400, "dump", self.file).returncode, 0)
        self.assertEqual(self.read(self.file, "--trace", "%032x" % 3)["coroutines"], 100)
        self.assertEqual(self.read(self.file, "--name", "request 7[0-9]$")["coroutines"], 10)
        text = self.command(self.file, "-n", 1, "-m", 2).stdout
        self.assertTrue(text.startswith("400 coroutines: 100 ready, 100 parked, 100 waiting, 100 new; 1 thread\n"))
        self.assertEqual(len([line for line in text.splitlines() if " request " in line]), 2)
        self.assertIn("more stacks", text)

    def test_live_process(self):
        process = self.start_waiting()
        self.check(self.read(process.pid), 10000)
        kept = os.path.join(self.dir, "kept")
        self.assertEqual(self.command(process.pid, "-o", kept).returncode, 0)
        self.check(self.read(kept), 10000)
        for out, error in (("/dev/full", "No space left on device"), (self.dir, "Is a directory"), ("-", "needs a file with a name")):
            done = self.command(process.pid, "-o", out)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(error, done.stderr)
        self.assertTrue(os.path.exists("/dev/full"))
        self.assertEqual(sorted(os.listdir(self.dir + "/greenprof")), [str(process.pid)])
        process.stdin.close()
        self.assertEqual(process.wait(), 0)
        self.assertEqual(os.listdir(self.dir + "/greenprof"), [])

    def test_capture_of_a_run(self):
        capture = os.path.join(self.dir, "capture")
        process = self.start_waiting(GREENPROF, "run", "--quiet", "-F", "1", "-o", capture, count=400)
        process.stdin.close()
        process.wait()
        self.check(self.read(capture), 400)

    def test_fatal_signal(self):
        for what, number in (("crash", signal.SIGSEGV), ("abort", signal.SIGABRT)):
            done = self.many(400, what, GREENPROF_CENSUS=self.file + ".%p")
            self.assertEqual(done.returncode, -number)
            path = [os.path.join(self.dir, f) for f in os.listdir(self.dir) if f.startswith("census.")][0]
            census = self.read(path)
            os.unlink(path)
            self.assertEqual(census["coroutines"], 400)
            fatal = [(member, [f["function"] for f in group["stack"]]) for group in census["groups"]
                     for member in group["members"] if "fatal" in member]
            self.assertEqual(len(fatal), 1)
            self.assertIn("work" if what == "crash" else "main", fatal[0][1])
            self.assertEqual(fatal[0][0]["name"], "request 1" if what == "crash" else "[thread census_many]")

    def test_nobody_samples(self):
        self.assertEqual(self.many(400, "dump", self.file, UNSAMPLED="1").returncode, 0)
        members = self.members(self.read(self.file))
        self.assertEqual({m["state"] for m, _ in members}, {"unknown"})
        self.assertEqual(len(members), 400)
        self.assertIn("Not sampled", self.command(self.file).stdout)

    def test_churn(self):
        self.assertEqual(self.many(1000, "churn", self.file).returncode, 0)
        for member, stack in self.members(self.read(self.file)):
            # A coroutine just made has no entry yet: its context is made after its record.
            if stack and stack != ["[not started]"] and not member["state"] in ("running", "blocked"):
                self.assertEqual(stack[-1], "work", stack)

    def refused(self, operand, text, **kwargs):
        done = self.command(operand, **kwargs)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(text, done.stderr)

    def test_refused(self):
        other = subprocess.Popen(["sleep", "60"])
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        self.refused(other.pid, "no greenprof in this process")
        self.assertIsNone(other.poll())
        self.refused(4194303, "no such process")
        self.refused("nothing", "No such file")
        os.mkdir(self.dir + "/greenprof", 0o700)
        marker = "%s/greenprof/%d" % (self.dir, other.pid)
        text = "greenprof 1 pid %d start 1 tid %d signal 27 space 1\n"
        with open(marker, "w") as file:  # of a process that had this number before
            file.write(text % (other.pid, other.pid))
        self.refused(other.pid, "no greenprof in this process")
        self.assertIsNone(other.poll())
        if os.geteuid() == 0:
            os.chmod(self.dir, 0o755)
            process = self.start_waiting(count=4)
            copy = shutil.copy(GREENPROF, self.file + "-command")  # the build may lie where others may not go
            self.refused(process.pid, "another user", greenprof=copy, preexec_fn=lambda: os.setuid(65534))
        empty = os.path.join(self.dir, "empty")
        open(empty, "w").close()
        self.refused(empty, "empty")

    def test_directory_of_somebody_else(self):
        os.mkdir(self.dir + "/greenprof", 0o755)  # others may look into it
        process = self.start_waiting(count=4)
        self.assertEqual(os.listdir(self.dir + "/greenprof"), [])
        process.stdin.close()


if __name__ == "__main__":
    unittest.main()
