# SPDX-License-Identifier: MIT
"""Programs with one right output each print that under `greenprof run` at 10,000 Hz as well."""
import os
import subprocess
import tempfile
import unittest

import support

PROGRAM = os.path.join(support.PROGRAMS, "storms.py")
SEMAPHORES = "import multiprocessing; multiprocessing.Lock()"  # /dev/shm
NEEDS = {
    "futures": SEMAPHORES,
    "greenlets_across_threads": "import greenlet",
    "line_coverage": "import coverage",
    "processes_by_fork": SEMAPHORES,
    "processes_by_forkserver": SEMAPHORES,
    "processes_by_spawn": SEMAPHORES,
    "interpreters_with_own_locks": "import _interpreters",  # 3.13 on
    "sub_interpreters": "try: import _interpreters\nexcept ImportError: import _xxsubinterpreters",
}


def what_is_missing(name):
    done = subprocess.run([support.PYTHON, "-c", NEEDS.get(name, "")], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done.stderr.splitlines()[-1] if done.returncode != 0 else None


def run(name, *before):
    done = subprocess.run([*before, support.PYTHON, "-B", PROGRAM, *([name] if name else [])], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=support.LIMIT_SECONDS)
    return done.returncode, done.stdout, done.stderr


class Storms(unittest.TestCase):
    def compare(self, name):
        missing = what_is_missing(name)
        if missing is not None:
            self.skipTest(missing)
        with tempfile.TemporaryDirectory() as directory:
            status, output, errors = run(name)
            self.assertEqual(status, 0, errors)
            profiled = run(name, support.GREENPROF, "run", "-F", "10000", "-o", os.path.join(directory, "c.greenprof"), "--")
            self.assertEqual(profiled[:2], (status, output), profiled[2])


for _name in run(None)[1].split():
    setattr(Storms, f"test_{_name}", lambda self, name=_name: self.compare(name))

if __name__ == "__main__":
    support.helpers.main(partial=0, at_once=2)
