# SPDX-License-Identifier: MIT
"""CPython as another Debian has it, with the core that was built here: shares, tasks told apart, exact calls, locks, pools.

usage: test_python.py SUITE
"""
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import check  # noqa: E402
import support  # noqa: E402
import test_locks  # noqa: E402
import test_pools  # noqa: E402
import test_suites  # noqa: E402

SUITE = test_suites.SUITE
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "python_truth.py")
PYTHONS = {"trixie": ["python3.13"], "sid": ["python3.14", "python3.15", "python3.13"]}[SUITE]
PACKAGED = [python for python in PYTHONS if SUITE != "sid" or python != "python3.13"]  # greenlet is, and for the first one gevent
KINDS = {"plain": PYTHONS, "interpreters": PYTHONS, "asyncio": PYTHONS, "python_tasks": PYTHONS, "calls": PYTHONS, "forks": PYTHONS,
         "locks": PYTHONS, "pools": PYTHONS, "greenlet": PACKAGED, "eventlet": PACKAGED, "gevent": PYTHONS[:1]}
RUNS = [(kind, python) for kind, pythons in KINDS.items() for python in pythons]
SCRIPT = r"""
exec 3>&1 >&2
set -e
apt="apt-get -q -o Acquire::Check-Valid-Until=false"
$apt update && DEBIAN_FRONTEND=noninteractive $apt install -y --no-install-recommends $PACKAGES || { echo "no packages"; exit 77; }
mkdir /tmp/out
for run in $RUNS; do
    kind=${run%%:*} python=${run#*:} mode=sampling clock=cpu
    [ $kind != calls ] || mode=exact
    case $kind in
    locks) program="$SHARED/locks.py" clock=wall;;
    pools) program="$SHARED/pools.py 2 futures" clock=wall;;
    *) program="$PROGRAM $kind";;
    esac
    command -v $python || continue
    env LD_PRELOAD=$CORE GREENPROF_OUTPUT=/tmp/out/$kind-$python.greenprof GREENPROF_FREQUENCY=1000 GREENPROF_MODE=$mode \
        GREENPROF_CLOCK=$clock $python -B -W ignore $program >/tmp/out/$kind-$python.out 2>/tmp/out/$kind-$python.err || echo "status $?" >>/tmp/out/$kind-$python.err
done
tar -C /tmp/out -c . >&3
"""
OUT = tempfile.TemporaryDirectory()


def setUpModule():
    packages = ["python3", *PYTHONS[1:], "python3-greenlet", "python3-eventlet", "python3-gevent"]
    environment = {"PACKAGES": " ".join(packages), "CORE": os.environ["CORE"], "PROGRAM": PROGRAM, "SHARED": support.PROGRAMS,
                   "PYTHONPATH": os.environ["PYTHONPATH"], "RUNS": " ".join(f"{kind}:{python}" for kind, python in RUNS)}
    done = test_suites.in_room("env", *(f"{name}={value}" for name, value in environment.items()), "sh", "-c", SCRIPT)
    check.need(done.returncode == 0, f"no Python of {SUITE}: {done.stderr.decode().strip()[-300:]}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(OUT.name)


class Python(check.Case):
    def run_of(self, kind, python):
        path = os.path.join(OUT.name, f"{kind}-{python}.")
        if not os.path.exists(path + "out"):
            self.skipTest(f"{python} is not in {SUITE}")
        with open(path + "out", "rb") as output, open(path + "err", "rb") as errors:
            done = subprocess.CompletedProcess([], 0, output.read(), errors.read())
        self.assertEqual(done.stderr.decode(), "")
        return check.Run(self.directory, done, path + "greenprof")

    def check_shares(self, kind, python):
        self.profiled(kind, python)

    def profiled(self, kind, python):
        run = self.run_of(kind, python)
        capture = run.capture()
        self.check_health(capture)
        self.check_functions(run.folded(), run.truth, len(capture.samples), tolerance=0.03)
        return run

    def check_tasks(self, kind, python):
        """Each task's own function is in it, and no other task's."""
        run = self.profiled(kind, python)
        functions = {function for _, (function,) in (row for row in self.rows(run, "TASK"))}
        stacks = run.folded("--by", "coroutine").stacks
        for task, (function,) in self.rows(run, "TASK"):
            mine = [(stack, weight) for stack, weight in stacks if re.fullmatch(rf"\[coroutine \d+ {task}\]", stack[0])]
            right = sum(weight for stack, weight in mine if function in stack)
            wrong = sum(weight for stack, weight in mine if (functions - {function}) & set(stack))
            self.assertGreater(right, 0, f"{task}: {sorted({stack[0] for stack, _ in stacks})}")
            self.at_most(f"of others in {task}", wrong, 0.01 * right)
        outside = sum(weight for stack, weight in stacks if not stack[0].startswith("[coroutine") and functions & set(stack))
        self.at_most("of tasks outside", outside, 0.02 * sum(weight for _, weight in stacks))

    def check_forks(self, kind, python):
        """greenprof's own thread is none of those that a fork warns of; another one of the program's is."""
        run = self.run_of(kind, python)
        self.assertEqual({tuple(row) for row in run.truth.values["FORKS"]}, {("0", "0")})
        self.assertEqual(run.truth.values["BESIDE"], [["1"]])
        self.check_health(run.capture())

    @staticmethod
    def rows(run, word):
        return [(values[0], values[1:]) for values in run.truth.values[word]]

    def check_calls(self, kind, python):
        run = self.run_of(kind, python)
        report = check.greenprof("report", run.output, "-n", "0").stdout.decode()
        for function, (calls,) in self.rows(run, "CALLS"):
            found = re.search(rf"^ *(\d+) .*\({function}\)$", report, re.M)
            self.assertTrue(found, report)
            self.assertEqual(int(found[1]), int(calls), function)


def shared(base, kind, python):
    """The checks of tests/python on another Python's run of the same program."""
    class Shared(base):
        @classmethod
        def setUpClass(cls):
            path = os.path.join(OUT.name, f"{kind}-{python}.")
            check.need(os.path.exists(path + "out"), f"{python} is not in {SUITE}")
            with open(path + "out") as output, open(path + "err") as errors:
                run = support.Run.__new__(support.Run)
                run.capture, run.output, run.errors = path + "greenprof", output.read(), errors.read()
            cls.take(run)
    Shared.__name__ = Shared.__qualname__ = f"{kind}_{python.replace('.', '_')}"
    return Shared


SHARED = {"locks": test_locks.Locks, "pools": test_pools.Pool}
CHECKS = {"plain": Python.check_shares, "interpreters": Python.check_shares, "calls": Python.check_calls, "forks": Python.check_forks}
for _kind, _python in RUNS:
    if _kind in SHARED:
        globals()[f"Shared_{_kind}_{_python}"] = shared(SHARED[_kind], _kind, _python)
        continue
    setattr(Python, f"test_{_kind}_{_python.replace('.', '_')}",
            lambda self, kind=_kind, python=_python: CHECKS.get(kind, Python.check_tasks)(self, kind, python))

if __name__ == "__main__":
    check.main()
