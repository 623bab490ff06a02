# SPDX-License-Identifier: MIT
"""Programs of known truth in a room of another Debian, with the core that was built here; the captures are read here.

usage: test_suites.py SUITE
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import check  # noqa: E402

SUITE = sys.argv.pop() if len(sys.argv) > 1 else "trixie"
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
WAITS = os.environ["WAITS"]
LIMIT_SECONDS = 1200  # the room is made first, and may get packages
PLACE = "/tmp/capture.greenprof"
MARK = b"\n=== the capture\n"


def in_room(*command):
    return subprocess.run([os.path.join(ROOT, "tools", "clean-room"), "--bare", "--suite", SUITE, "--stale", SUITE, "--with", ROOT, *command],
                          capture_output=True, timeout=LIMIT_SECONDS, stdin=subprocess.DEVNULL)


def setUpModule():
    done = in_room("true")
    check.need(done.returncode == 0, f"no room of {SUITE}: {done.stderr.decode().strip()[-300:]}")


class Suite(check.Case):
    def run_in_room(self, *command, hz=1000):
        script = f'"$@" && printf "%s" "{MARK.decode()}" && cat {PLACE}'  # neither sh nor cat is profiled
        done = in_room("sh", "-c", script, "sh", "env", f"LD_PRELOAD={os.environ['CORE']}", f"GREENPROF_OUTPUT={PLACE}",
                       f"GREENPROF_FREQUENCY={hz}", *map(str, command))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        done.stdout, _, capture = done.stdout.partition(MARK)
        path = os.path.join(self.directory, "capture.greenprof")
        with open(path, "wb") as file:
            file.write(capture)
        return check.Run(self.directory, done, path)

    def test_coroutines(self):
        run = self.run_in_room(check.program("coroutines"), 2.0, 500)
        capture = run.capture()
        self.check_health(capture)
        self.check_functions(run.folded(), run.truth, len(capture.samples))
        self.check_total(run.folded(), run.truth)
        self.check_ledger(run)

    def test_waits(self):
        """No call that waits ends early or with EINTR, at 5,000 Hz."""
        run = self.run_in_room(WAITS, "length", 100, hz=5000)
        self.assertEqual(run.truth.values["BAD"], [])


if __name__ == "__main__":
    check.main()
