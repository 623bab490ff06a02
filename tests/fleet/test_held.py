# SPDX-License-Identifier: MIT
"""run --slow stuck=: a coroutine that keeps its thread leaves one folder, though no request is open; loops at rest,
threads without coroutines and a coroutine that is alone leave none."""
import json, os, pstats, shutil, subprocess, sys, tempfile, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from helpers import main, until  # noqa: E402

GREENPROF, HELD = os.environ["GREENPROF"], os.environ["HELD"]
FILES = ["coroutines.txt", "held.html", "held.json", "held.prof", "wall.prof"]


class Held(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="greenprof-held-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.slow = os.path.join(self.folder, "slow")
        os.mkdir(self.slow)

    def start(self, mode, seconds, *more, output="api.greenprof"):
        process = subprocess.Popen([GREENPROF, "run", "-q", "--slow", f"stuck=1s,{self.slow}", *more, "-o",
                                    os.path.join(self.folder, output), "--", HELD, mode, str(seconds)], stderr=subprocess.PIPE)
        self.addCleanup(lambda: process.stderr.closed or process.communicate(timeout=100))  # what follows it has ended then
        self.addCleanup(process.kill)
        return process

    def folders(self):
        return sorted(name for name in os.listdir(self.slow) if name[0] != ".")

    def end(self, *processes):
        """The folders once these have ended."""
        for process in processes:
            error = process.communicate(timeout=200)[1]
            self.assertEqual((process.returncode, error), (0, b""), process.args)
        return self.folders()

    def check_held(self, mode, state):
        process = self.start(mode, 6 if mode == "cpu" else 1000)
        name, = until(self.folders)
        self.assertIsNone(process.poll())  # it was there while the thread was held
        self.assertRegex(name, r"^\d{8}T\d{6}\.\d{3}Z-\d+ms-held-run_task-[0-9a-f]{16}$")
        folder = os.path.join(self.slow, name)
        self.assertEqual(sorted(os.listdir(folder)), FILES)
        with open(os.path.join(folder, "held.json")) as file:
            said = json.load(file)
        self.assertEqual((said["state"], said["name"], said["others"], said["stuck_from_ns"]), (state, "run_task", 5, 10**9))
        self.assertGreaterEqual(said["held_ns"], 10**9)
        rows = pstats.Stats(os.path.join(folder, "wall.prof")).stats
        kept = sum(row[3] for key, row in rows.items() if key[2] == "keep_the_thread")
        self.assertAlmostEqual(kept, sum(row[2] for row in rows.values()), delta=0.05)  # and nothing of before
        self.assertGreater(kept, 0.9)
        with open(os.path.join(folder, "coroutines.txt")) as file:
            text = file.read()
        self.assertIn(f"6 coroutines: 1 {state}, 5 waiting; 1 thread", text)
        return process, name

    def test_computes(self):
        process, name = self.check_held("cpu", "running")
        self.assertEqual(process.wait(100), 0)
        process.communicate(timeout=100)
        self.assertEqual(self.folders(), [name])  # it is told once

    def test_blocked(self):
        process, name = self.check_held("blocked", "blocked")
        start = os.path.getsize(os.path.join(self.folder, "api.greenprof"))
        until(lambda: os.path.getsize(os.path.join(self.folder, "api.greenprof")) > start + 2000)
        self.assertEqual(self.folders(), [name])

    def test_each_slice(self):
        names = self.end(self.start("twice", 7))
        self.assertEqual(len(names), 2)
        self.assertEqual(len({name.rsplit("-", 1)[1] for name in names}), 1)

    def test_parts(self):
        """A slice that goes on in later parts of the recording is told once, too."""
        process = self.start("cpu", 1000, "--rotate", "1s", "--keep", "20")
        name, = until(self.folders)
        self.assertIn("-held-run_task-", name)
        parts = lambda: len([name for name in os.listdir(self.folder) if name.startswith("api-")])
        before = parts()
        until(lambda: parts() > before + 1, process=process)
        self.assertEqual(self.folders(), [name])

    def test_keep(self):
        """The oldest go first, as those of requests do."""
        names = self.end(self.start("naps", 7, "--slow", f"stuck=1s,keep=1,{self.slow}"))
        self.assertEqual(len(names), 1)

    def test_none(self):
        processes = [self.start(mode, 4, output=f"{mode}.greenprof") for mode in ("root", "loop", "poll", "alone", "threads")]
        self.assertEqual(self.end(*processes), [])


if __name__ == "__main__":
    main(at_once=3)
