# SPDX-License-Identifier: MIT
"""run --slow, dump --slow: slow requests and those that hang leave a folder each, and no others do.
  test_flight.py [--long]    --long: 20 runs of 50,000 requests"""
import collections, json, os, pstats, re, shutil, signal, subprocess, sys, tempfile, time, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from helpers import until  # noqa: E402

GREENPROF, FLIGHT, PARTS = (os.environ[name] for name in ("GREENPROF", "FLIGHT", "PARTS"))
LONG = "--long" in sys.argv
FILES = ["critical-path.folded", "request.html", "request.json", "request.prof", "verdict.txt", "wall.prof"]
TRACE = b"\x47\x19\xf1" + bytes(5)


def trace_of(number):
    return (TRACE + (number + 1).to_bytes(8, "little")).hex()


class Flight(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="greenprof-flight-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.slow = os.path.join(self.folder, "slow")
        os.mkdir(self.slow)

    def command(self, options, program, *more):
        return [GREENPROF, "run", "--slow", f"{options},{self.slow}", *more, "-o", os.path.join(self.folder, "api.greenprof"), "--",
                *map(str, program)]

    def start(self, *command, **more):
        process = subprocess.Popen(self.command(*command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
        self.addCleanup(lambda: process.stderr.closed or process.communicate(timeout=100))  # what follows it has ended then
        self.addCleanup(process.kill)
        return process

    def finish(self, process):
        """Until what follows the program has ended, too: it has standard error open."""
        out, error = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, error)
        self.assertRegex(error, r"^greenprof: \S+: \d+ samples, none lost; .*next: greenprof explain \S+\n$")
        self.assertEqual([name for name in os.listdir(self.slow) if name[0] == "."], [])
        return out

    def folders(self):
        return sorted(name for name in os.listdir(self.slow) if name[0] != ".")

    def json(self, name):
        with open(os.path.join(self.slow, name, "request.json")) as file:
            return json.load(file)

    def check_requests(self, requests, slow, seed):
        """The program's own clock says which requests were slow: these leave folders, and the others do not."""
        out = self.finish(self.start("over=80ms,keep=1000", (FLIGHT, requests, slow, seed, 120)))
        self.assertIn(f"SERVED {requests}\n", out)
        own = {trace: int(ns) for trace, ns in re.findall(r"SLOW (\w+) (\d+)", out)}
        found = {said["trace"]: said for said in map(self.json, self.folders())}
        self.assertGreaterEqual(sum(ns >= 120e6 for ns in own.values()), slow - 1)  # two may fall on one
        for trace, ns in own.items():  # around the span's own times
            self.assertTrue(trace in found or ns < 80.2e6, (trace, ns))
        self.assertLessEqual(set(found), set(own))
        waited = 0
        for name in self.folders():
            said = self.json(name)
            self.assertLessEqual(said["latency_ns"], own[said["trace"]])
            self.assertTrue(said["in_capture"])
            self.assertEqual(sorted(os.listdir(os.path.join(self.slow, name))), FILES)
            with open(os.path.join(self.slow, name, "critical-path.folded")) as file:
                path = file.read()
            self.assertAlmostEqual(sum(int(line.rsplit(" ", 1)[1]) for line in path.splitlines()), said["latency_ns"] / 1000, delta=2)
            waited += "handle;wait_for_database;wait_ns;[waiting]" in path
        self.assertGreaterEqual(waited, slow - 1)  # others are slow where the machine is
        shutil.rmtree(self.slow)
        os.mkdir(self.slow)
        return len(found)

    def test_slow_of_many(self):
        for seed in range(20 if LONG else 1):
            requests = 50000 if LONG else 10000
            count = self.check_requests(requests, 5, seed)
            if LONG:
                print(f"seed {seed}: {requests} requests, {count} were slow and left folders", flush=True)

    def test_hangs(self):
        """While it hangs there is a folder that says where it waits; of those that go on there is none."""
        process = self.start("stuck=1s", (FLIGHT, "hang", 1000), "--rotate", "1s")
        name, = until(self.folders)
        self.assertIsNone(process.poll())
        self.assertRegex(name, r"^\d{8}T\d{6}\.\d{3}Z-\d+ms-open-request_GET__item-[0-9a-f]{16}$")
        said = self.json(name)
        self.assertEqual((said["open"], said["trace"], said["stuck_from_ns"]), (True, trace_of(1000), 10**9))
        self.assertGreaterEqual(said["latency_ns"], 10**9)
        self.assertEqual(sorted(os.listdir(os.path.join(self.slow, name))), ["coroutines.txt", *FILES])
        with open(os.path.join(self.slow, name, "coroutines.txt")) as file:
            text = file.read()
        self.assertTrue(text.startswith("As the process said when this folder was made.\n"), text)
        own, every = re.fullmatch(r"(?s).*Of this request:(.*)Of all:(.*)", text).groups()
        self.assertRegex(own, r"(?s)\n1 coroutine: 1 waiting; 0 threads\n.*wait_for_reply.*\n    handle.*trace " + trace_of(1000))
        self.assertIn("[thread fleet_flight]", every)
        parts = lambda: [name for name in os.listdir(self.folder) if re.fullmatch(r"api-\d{4}\.greenprof", name)]
        until(lambda: len(parts()) >= 2)  # it is told once, also in later parts
        self.assertEqual(self.folders(), [name])

    def open_path(self, name):
        """The critical path of a request that is open: by its last frame, ms."""
        leaves = collections.Counter()
        with open(os.path.join(self.slow, name, "critical-path.folded")) as file:
            for stack, us in (line.rsplit(" ", 1) for line in file):
                frames = [frame for frame in stack.split(";") if frame != "[not sampled]"]
                leaf = frames[-1] if re.fullmatch(r"\[[a-z ]+\]", frames[-1]) and len(frames) > 1 else "running"  # none is [vdso]+0x79d
                known = {"wait_for_reply", "hold_the_loop", "doze_off"}.intersection(frames)
                leaves[(leaf, *known)] += int(us) / 1000
        return leaves

    def check_open(self, mode, state, function):
        """A request that is stuck: nearly all of its path is what it does at that moment, and its times have it as well."""
        process = self.start("over=100s", (FLIGHT, mode, 1000), "--control")
        dump = lambda: subprocess.run([GREENPROF, "dump", str(process.pid), "--slow", self.slow], capture_output=True, timeout=100)
        mine = lambda: [name for name in self.folders() if self.json(name)["trace"] == trace_of(1000)]
        until(lambda: dump().returncode == 0 and mine())
        for _ in range(2):  # again of a longer one
            count = len(mine())
            time.sleep(0.5)
            until(lambda: dump().returncode == 0 and len(mine()) > count)
        for name in mine()[1:]:
            said, path = self.json(name), self.open_path(name)
            self.assertEqual([leaf for leaf in path if leaf[0] == "[not recorded]"], [], path)
            whole = said["latency_ns"] / 1e6
            self.assertAlmostEqual(sum(path.values()), whole, delta=0.1 * whole)
            off = path[("[preempted]", function)] if state == "running" else 0  # other programs' time
            self.assertGreater(path[(state, function)] + off, 0.8 * whole, path)
            times = sum(said[key + "_ns"] for key in ("cpu", "preempted", "blocked", "ready", "parked", "waiting"))
            self.assertAlmostEqual(times / 1e6, whole, delta=0.1 * whole)
        return process

    def test_open_waits(self):
        self.check_open("hang", "[waiting]", "wait_for_reply")

    def test_open_runs(self):
        self.check_open("hold", "running", "hold_the_loop")

    def test_open_sleeps(self):
        """And so says what is recovered of it, when it is killed."""
        process = self.check_open("doze", "[blocked]", "doze_off")
        process.kill()
        process.communicate(timeout=100)
        capture = os.path.join(self.folder, "api.greenprof")
        subprocess.run([GREENPROF, "recover", capture, "-o", capture + "-recovered"], check=True, capture_output=True, timeout=100)
        text = subprocess.run([GREENPROF, "report", capture + "-recovered", "--by", "critical-path", "--trace", trace_of(1000)],
                              check=True, capture_output=True, text=True, timeout=100).stdout
        self.assertNotIn("not recorded", text)
        self.assertRegex(text, r"\n +[\d.]+ +(9[5-9]|100)\.\d blocked +\[coroutine \d+ run_task\]\n")
        self.assertRegex(text, r"blocked +\[coroutine \d+ run_task\] .* < doze_off")

    def test_asked(self):
        """dump --slow: what is open now, each time it is asked, and nothing else."""
        process = self.start("over=100s", (FLIGHT, "hang", 1000), "--control")
        dump = lambda *options: subprocess.run([GREENPROF, "dump", str(process.pid), "--slow", ",".join([*options, self.slow])],
                                               capture_output=True, text=True, timeout=100)
        mine = lambda: [name for name in self.folders() if self.json(name)["trace"] == trace_of(1000)]
        until(lambda: dump().returncode == 0 and mine())
        before = len(mine())
        self.assertEqual({self.json(name)["open"] for name in self.folders()}, {True})
        done = dump("over=15ms", "keep=1000")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^so far \d+ samples: greenprof report \S+/api\.greenprof\n$")
        self.assertEqual(len(mine()), before + 1)
        self.assertGreater([self.json(name)["open"] for name in self.folders()].count(False), 0)

    def test_part_before(self):
        """A request that began in another part has the samples of that part, too."""
        self.finish(self.start("over=2s", (PARTS, 3), "--rotate", "1s"))
        name, = self.folders()
        said = self.json(name)
        self.assertAlmostEqual(said["cpu_ns"] / 1e9, 3, delta=0.02)
        self.assertEqual(said["coroutines"], 1)
        self.assertAlmostEqual(pstats.Stats(os.path.join(self.slow, name, "request.prof")).total_tt, 3, delta=0.02)
        with open(os.path.join(self.slow, name, "critical-path.folded")) as file:
            worked = sum(int(line.rsplit(" ", 1)[1]) for line in file if "work_short_request" in line)
        self.assertGreater(worked / 1e6, 2.8)

    def test_others_are_left_alone(self):
        """Captures of earlier runs and of other services in the same directory."""
        subprocess.run([GREENPROF, "run", "-q", "-o", os.path.join(self.folder, "api.greenprof"), "--", FLIGHT, "500", "1", "1", "90"],
                       stdout=subprocess.DEVNULL, check=True, timeout=100)
        other = subprocess.Popen([GREENPROF, "run", "-q", "-o", os.path.join(self.folder, "api2.greenprof"), "--", FLIGHT, "5000", "3",
                                  "1", "90"], stdout=subprocess.DEVNULL)
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        self.finish(self.start("over=80ms", (FLIGHT, "2000", "1", "2", "120")))
        self.assertGreater(len(self.folders()), 0)
        self.assertEqual({self.json(name)["capture"] for name in self.folders()}, {os.path.join(self.folder, "api.greenprof")})

    def test_refused(self):
        """Before the program is started."""
        missing = os.path.join(self.folder, "missing")
        for value, status, said in (
                (self.slow, 2, "must be options and a directory, as over=250ms,stuck=5s,DIR"), ("over=20ms", 2, "must be options and"),
                (f"over=20,{self.slow}", 2, "over=20: must be a time"), (f"stuck=-1s,{self.slow}", 2, "stuck=-1s: must be a time"),
                (f"keep=5,{self.slow}", 2, "over=p99 or stuck=TIME"), (f"over=1s,less=3,{self.slow}", 2, "has no option 'less'"),
                (f"over=1s,{missing}", 1, f"{missing}: No such file or directory"), (f"over=1s,{GREENPROF}", 1, "Not a directory")):
            done = subprocess.run([GREENPROF, "run", "--slow", value, "-o", os.path.join(self.folder, "x.greenprof"), "--", "touch",
                                   os.path.join(self.folder, "started")], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, status, (value, done.stderr))
            self.assertIn(said, done.stderr)
        self.assertEqual(os.listdir(self.folder), ["slow"])
        done = subprocess.run(["unshare", "-rpf", *self.command("over=1s", ("true",))], capture_output=True, text=True, timeout=60)
        if "unshare failed" not in done.stderr:
            self.assertEqual(done.returncode, 1)
            self.assertIn("run 'greenprof ship' beside it", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *(word for word in sys.argv[1:] if word != "--long")])
