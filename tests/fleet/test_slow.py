# SPDX-License-Identifier: MIT
"""greenprof ship to slow+file:///DIRECTORY: which requests leave files, what is in them, and how many stay."""
import json, os, pstats, re, shutil, signal, subprocess, tempfile, time, unittest

GREENPROF, MAKE_CAPTURE = os.environ["GREENPROF"], os.environ["MAKE_CAPTURE"]
MS, START = 1000000, 1700000000
FILES = ["critical-path.folded", "request.html", "request.json", "request.prof", "verdict.txt", "wall.prof"]
HEAD = f"""
header frequency=1000 realtime={START}000000000
meta exe /opt/app/server
meta hostname web-1
module 1 /opt/app/server 0102 0x1000 0x9000 0x0
thread 1 10 1 0 main
coro 1 0 - 0x1000 0x1000 1 1 -
stack 1 0 1:10 1:20
"""


def script(latencies_ms, name="GET /x"):
    """Requests in a row, each a coroutine and a trace of its own, 4 ms of it on the CPU."""
    lines, at = [HEAD], 0
    for i, latency_ms in enumerate(latencies_ms):
        coro, trace, end = i + 2, i + 1, at + int(latency_ms * MS)
        parked = end - at - 4 * MS
        lines += [f"coro {coro} 1 1:40 0x3000 0x1000 2 0 handler", f"trace {trace} {i + 1:032x}",
                  f"ledger {coro} {trace} {4 * MS} 1 {end} {4 * MS} 0 0 {parked} 0 {4 * MS}",
                  f"sample {at + 4 * MS} {4 * MS} {coro} 1 1 {trace}", f"sample {end} {parked} {coro} 1 1 {trace} 2",
                  f"activity {coro} {at} {at + 4 * MS} {end} {4 * MS} {end} 0 {trace} 1 0",
                  f"span {1000 + i} 0 {coro} {coro} {at} {end} {trace} 1 0 {name}"]
        at = end + 5 * MS
    return "\n".join([*lines, f"counters {at} {4 * MS * len(latencies_ms)} 0 1 1", f"end {at} 0", ""])


class Slow(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="greenprof-slow-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.capture = os.path.join(self.folder, "api.greenprof")
        self.slow = os.path.join(self.folder, "slow")
        os.mkdir(self.slow)

    def make(self, text):
        subprocess.run([MAKE_CAPTURE, self.capture], input=text.encode(), check=True)

    def command(self, *options, url=None, state="state"):
        return [GREENPROF, "ship", self.capture, "--state", os.path.join(self.folder, state), "--to", url or self.url(), *options]

    def url(self, options="over=20ms"):
        return f"slow+file://{self.slow}?{options}"

    def ship(self, options="over=20ms", status=0, state="state", **more):
        done = subprocess.run(self.command("--once", url=self.url(options), state=state), capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=120, **more)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def found(self):
        """The latencies of the requests that have files, by their ends."""
        names = sorted(os.listdir(self.slow))
        return [int(re.fullmatch(r"20231114T2213\d\d\.\d{3}Z-(\d+)ms-\w+-[0-9a-f]{16}", name)[1]) for name in names]

    def test_chosen(self):
        """Only the slow one; its files agree with what is known of it."""
        self.make(script([6, 19.9, 25, 7]))
        self.assertEqual(self.ship(), "")
        name, = os.listdir(self.slow)
        self.assertEqual(name, "20231114T221320.060Z-25ms-request_GET__x-00000000000003ea")
        folder = os.path.join(self.slow, name)
        self.assertEqual(sorted(os.listdir(folder)), FILES)
        self.assertEqual(os.stat(folder).st_mode & 0o777, 0o700)
        with open(os.path.join(folder, "request.json")) as file:
            said = json.load(file)
        start = START * 10**9 + 6 * MS + 5 * MS + 199 * MS // 10 + 5 * MS
        expected = {"endpoint": "request GET /x", "trace": f"{3:032x}", "span": "00000000000003ea", "start_unix_ns": start,
                    "latency_ns": 25 * MS, "slow_from_ns": 20 * MS, "failed": False, "host": "web-1", "service": "server",
                    "capture": self.capture, "in_capture": True, "coroutines": 1, "cpu_ns": 4 * MS, "parked_ns": 21 * MS}
        self.assertEqual({key: said.get(key) for key in expected}, expected)
        self.assertAlmostEqual(pstats.Stats(os.path.join(folder, "request.prof")).total_tt, 0.004, 6)
        self.assertAlmostEqual(pstats.Stats(os.path.join(folder, "wall.prof")).total_tt, 0.025, 6)
        with open(os.path.join(folder, "critical-path.folded")) as file:
            self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in file), 25000)
        with open(os.path.join(folder, "request.html")) as file:
            self.assertIn("GET /x", file.read())

    def test_none(self):
        self.make(script([6, 19.9, 7]))
        self.ship()
        self.assertEqual(os.listdir(self.slow), [])

    def test_percentile(self):
        """By the endpoint's requests before: not the first hundred, and not what is usual there."""
        self.make(script([100] * 3 + [10] * 200 + [40] + [10] * 50 + [30]))
        self.ship("over=p98")
        self.assertEqual(self.found(), [40, 30])
        shutil.rmtree(self.slow)
        os.mkdir(self.slow)
        self.make(script([100] * 3 + [10] * 200 + [40]))
        self.ship("over=p99.9", state="other")  # three of 203 took longer
        self.assertEqual(self.found(), [])

    def test_keep(self):
        """The latest; what others put there stays."""
        self.make(script([30, 40, 50, 25, 26]))
        os.mkdir(os.path.join(self.slow, "mine"))
        touched = os.path.join(self.slow, "20231114T221300.000Z-1ms-x-0000000000000001")
        os.mkdir(touched)
        for name in ("request.json", "notes"):
            open(os.path.join(touched, name), "w").close()
        self.ship("over=20ms&keep=3")
        os.rmdir(os.path.join(self.slow, "mine"))
        self.assertEqual(os.listdir(touched), ["notes"])
        shutil.rmtree(touched)
        self.assertEqual(self.found(), [30, 40, 50])  # of one batch the slowest
        self.make(script([21, 22], "GET /y").replace(f"realtime={START}", f"realtime={START + 10}"))
        self.ship("over=20ms&keep=3")
        self.assertEqual(self.found(), [50, 21, 22])

    def test_again(self):
        """Sent twice, also after a process that was killed in the middle: each once."""
        self.make(script([30, 6, 40]))
        self.ship()
        first = {name: os.stat(os.path.join(self.slow, name)).st_mtime_ns for name in os.listdir(self.slow)}
        half = sorted(first)[1]
        os.rename(os.path.join(self.slow, half), os.path.join(self.slow, f".{half}.part"))
        self.ship(state="other")
        second = {name: os.stat(os.path.join(self.slow, name)).st_mtime_ns for name in os.listdir(self.slow)}
        self.assertEqual(sorted(second), sorted(first))
        self.assertEqual(self.found(), [30, 40])
        self.assertEqual(sorted(os.listdir(os.path.join(self.slow, half))), FILES)
        self.assertEqual([second[name] == first[name] for name in sorted(first)], [True, False])

    def test_while_it_runs(self):
        """Of a process that still writes: files are there soon after the request, with all that was seen of it."""
        with open(os.path.join(self.folder, "out"), "w") as out:
            running = subprocess.Popen([GREENPROF, "run", "-q", "-o", self.capture, "--", os.environ["PARTS"], "1.5", "linger"],
                                       stdout=out)
            self.addCleanup(running.wait)
            self.addCleanup(running.kill)
            shipping = subprocess.Popen([GREENPROF, "ship", self.folder, "--state", os.path.join(self.folder, "state"),
                                         "--interval", "1s", "--to", self.url("over=1s")])
            self.addCleanup(shipping.wait)
            self.addCleanup(shipping.kill)
            start = time.monotonic()
            while not [name for name in os.listdir(self.slow) if name[0] != "."]:
                self.assertLess(time.monotonic() - start, 60)
                time.sleep(0.05)
            shipping.send_signal(signal.SIGTERM)
            self.assertEqual(shipping.wait(60), 0)
        name, = os.listdir(self.slow)
        with open(os.path.join(self.folder, "out")) as file:
            seconds = float(re.search(r"SPANS parent \d+ ([\d.]+)", file.read())[1])
        folder = os.path.join(self.slow, name)
        with open(os.path.join(folder, "request.json")) as file:
            said = json.load(file)
        self.assertAlmostEqual(said["latency_ns"] / 1e9, seconds, delta=0.3)
        self.assertAlmostEqual(said["cpu_ns"] / 1e9, 1.5, delta=0.02)
        self.assertAlmostEqual(pstats.Stats(os.path.join(folder, "request.prof")).total_tt, 1.5, delta=0.02)

    def open_path(self, *records):
        """The critical path of a request that is open from 10 ms to 100 ms, of a capture with such records."""
        self.make("\n".join([HEAD, "coro 2 1 1:40 0x3000 0x1000 2 0 handler", "trace 1 " + 32 * "a", *records,
                             f"open_span 77 0 2 0 {10 * MS} {100 * MS} 1 1 1 GET /x", f"counters {100 * MS} 0 0 1 1", ""]))
        shutil.rmtree(self.slow)
        os.mkdir(self.slow)
        self.ship("stuck=0s", state=f"state{len(os.listdir(self.folder))}")
        name, = os.listdir(self.slow)
        with open(os.path.join(self.slow, name, "critical-path.folded")) as file:
            return {stack.rsplit(";", 1)[1]: int(us) / 1000 for stack, us in (line.rsplit(" ", 1) for line in file)}

    def test_open(self):
        """What its coroutine was in the middle of is the path's end, unless a record says how that ended."""
        record = lambda kind, start, left, end, is_open=0: (
            f"{kind} 2 {start * MS} {left * MS} {end * MS} {(left - start) * MS} 0 0 1 1 {is_open} 0 0")
        opened, done = lambda *times: record("open_activity", *times, 1), lambda *times: record("activity", *times)
        none, waits, ran = "[not recorded]", "[waiting]", "[not sampled]"
        for records, expected in (
                ([], {none: 90}),
                ([opened(10, 30, 100)], {ran: 20, waits: 70}),
                ([opened(10, 100, 100)], {ran: 90}),
                ([opened(10, 20, 40), opened(10, 20, 100)], {ran: 10, waits: 80}),  # the later one
                ([opened(10, 20, 50), done(10, 20, 60)], {ran: 10, waits: 40, none: 40}),  # how it ended
                ([opened(10, 20, 50), done(10, 20, 60), opened(60, 90, 100)], {ran: 40, waits: 50}),
                ([done(10, 20, 60), opened(60, 90, 100)], {ran: 40, waits: 50}),
                ([opened(60, 90, 100), done(10, 20, 60)], {ran: 40, waits: 50})):  # which came late
            self.assertEqual(self.open_path(*records), expected, records)

    def test_directory_is_missing(self):
        """It may not be mounted: nothing is made, and it is sent when it is there."""
        self.make(script([30]))
        os.rmdir(self.slow)
        self.assertIn("No such file or directory", self.ship(status=1))
        self.assertFalse(os.path.exists(self.slow))
        os.mkdir(self.slow)
        self.ship()
        self.assertEqual(self.found(), [30])

    def test_no_room(self):
        """A full disk leaves no half of a folder, and the request is tried again."""
        self.make(script([30]))

        def limited():
            import resource
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

        self.assertIn("File too large", self.ship(status=1, preexec_fn=limited))
        self.assertEqual(os.listdir(self.slow), [])
        self.ship()
        self.assertEqual(self.found(), [30])

    def test_bad_urls(self):
        self.make(script([30]))
        for options, said in (("", "is to be slow+file:///DIRECTORY?over=TIME"), ("keep=3", "is to be slow+file:"),
                              ("over=20", "must be a time"), ("over=0ms", "must be a time"), ("over=p", "must be a time"),
                              ("over=p49", "must be a time"), ("over=p100", "must be a time"), ("over=pnan", "must be a time"),
                              ("over=-5ms", "must be a time"), ("over=1e9s", "must be a time"), ("over=20ms&keep=0", "keep: must be"),
                              ("over=20ms&keep=x", "keep: must be"), ("over=20ms&keep=99999999", "keep: must be"),
                              ("over=20ms&max=3", "has no option 'max'; there are over, stuck and keep")):
            self.assertIn(said, self.ship(options, status=2), options)
        done = subprocess.run([GREENPROF, "ship", self.capture, "--once", "--to", "slow+file://other/slow?over=1s", "--state",
                               os.path.join(self.folder, "state")], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("is to be slow+file:///DIRECTORY", done.stderr)

    def test_dry_run(self):
        self.make(script([30]))
        done = subprocess.run(self.command("--dry-run"), capture_output=True, text=True, timeout=60)
        self.assertIn("for each slow request a folder with its profile", done.stdout)
        self.assertEqual(os.listdir(self.slow), [])


if __name__ == "__main__":
    unittest.main()
