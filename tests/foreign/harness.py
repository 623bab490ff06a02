# SPDX-License-Identifier: MIT
"""Runs tests that others wrote, alone and under greenprof, and compares what each of them says.

A suite is a list of units; a unit is one program that runs some tests. It runs alone twice: a test with two different
results is unstable, listed and left out. Then it runs under greenprof, once a rate. Every result has to be the same; a
test that is missing, or one more, is a difference, too. Where one differs, the unit runs alone ALONE_AGAIN times more:
a test that differs there is unstable, and no difference of greenprof's.
"""
import collections
import dataclasses
import functools
import itertools
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile

ALONE_AGAIN = 4
LIMIT_SECONDS = 300
SKIPPED = 77


class Missing(Exception):
    """What a suite needs cannot be had here: a skip, with this reason."""


class Broken(Exception):
    """A suite does not build, or too few of its tests ran: a failure."""


@dataclasses.dataclass
class Unit:
    """One program, which runs some tests.
    parse: the program's output and the run's own folder -> {name of a test: its result}"""
    name: str
    command: list
    parse: object = None
    folder: str = None  # where it runs; a new empty one if None
    environment: dict = dataclasses.field(default_factory=dict)
    engines: tuple = ()  # it runs with each, under `run` and by LD_PRELOAD
    rounds: int = 1      # in each way
    may_be_short: bool = False  # what only starts others, and ends at once, writes no capture


@dataclasses.dataclass(frozen=True)
class Way:
    """How greenprof comes into a program."""
    hz: int
    engine: str = None       # None = greenprof's own choice
    is_preloaded: bool = False

    def __str__(self):
        return " ".join(filter(None, [f"{self.hz} Hz", self.engine, "preloaded" if self.is_preloaded else None]))

    def begin(self, greenprof, captures):
        """Returns (words before the program, variables)."""
        output = os.path.join(captures, "%p.greenprof")
        if self.is_preloaded:
            return [], {"LD_PRELOAD": core_of(greenprof), "GREENPROF_OUTPUT": output, "GREENPROF_FREQUENCY": str(self.hz),
                        "GREENPROF_ENGINE": self.engine}
        options = ["--quiet", "--engine", self.engine] if self.engine else []
        return [greenprof, "run", "-F", str(self.hz), "-o", output, *options, "--"], {}


def ways_of(unit, rates):
    if not unit.engines:
        return [Way(hz) for hz in rates]
    return [Way(*way) for way in itertools.product(rates, unit.engines, (False, True))]


@functools.cache
def core_of(greenprof):
    """What `run` preloads."""
    with tempfile.TemporaryDirectory(prefix="foreign.") as scratch:
        command = [greenprof, "run", "--quiet", "-o", os.path.join(scratch, "x.greenprof"), "--", "/bin/sh", "-c", "echo $LD_PRELOAD"]
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


@dataclasses.dataclass
class Verdict:
    tests: int = 0  # that were compared
    unstable: list = dataclasses.field(default_factory=list)
    differences: list = dataclasses.field(default_factory=list)
    captures: int = 0


def end_all(group):
    """End what a unit left behind, so that the next one is alone."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run_program(command, folder, environment):
    """Returns (status, output). In a session of its own, without input; its output goes to a file, as what it leaves
    behind may keep a pipe open."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            status = "no end"
        finally:
            end_all(process.pid)
        process.wait()
        output.seek(0)
        return status, output.read().decode(errors="replace").replace("\r\n", "\n")


def run_unit(unit, greenprof=None, way=None):
    """Returns ({test: result}, number of captures). Each run has a new home and a new folder for what is temporary."""
    with tempfile.TemporaryDirectory(prefix="foreign.") as scratch:
        folders = {name: os.path.join(scratch, name) for name in ("home", "tmp", "work", "captures")}
        os.chmod(scratch, 0o755)
        for folder in folders.values():
            os.mkdir(folder)
            os.chmod(folder, 0o777)  # for those who give up their rights
        environment = {**os.environ, "HOME": folders["home"], "TMPDIR": folders["tmp"], "LC_ALL": "C.UTF-8",
                       "NO_COLOR": "1", "RESULTS": os.path.join(scratch, "results"), **unit.environment}
        command = list(unit.command)
        if greenprof:
            words, variables = way.begin(greenprof, folders["captures"])
            command = [*words, *command]
            environment.update(variables)
        status, output = run_program(command, unit.folder or folders["work"], environment)
        results = unit.parse(output, scratch) if unit.parse else {}
        captures = [name for name in os.listdir(folders["captures"]) if name.endswith(".greenprof")]
        if os.environ.get("FOREIGN_KEEP"):
            with open(os.path.join(os.environ["FOREIGN_KEEP"], f"{unit.name}.{way}".replace("/", "_")), "w") as kept:
                kept.write(output)
        results = {"[status]": status, **results}
        return {f"{unit.name}: {name}": result for name, result in results.items()}, len(captures)


def unstable_of(runs):
    """Tests that have not the same result in all runs."""
    names = dict.fromkeys(name for run in runs for name in run)
    return [name for name in names if len({str(run.get(name, "missing")) for run in runs}) > 1]


def differences_of(alone, beside, unstable):
    """[(test, result alone, result beside greenprof)]"""
    names = dict.fromkeys([*alone, *beside])
    return [(name, str(alone.get(name, "missing")), str(beside.get(name, "missing"))) for name in names
            if name not in unstable and str(alone.get(name, "missing")) != str(beside.get(name, "missing"))]


def command_of(unit, way, greenprof):
    begin, variables = way.begin(greenprof, ".")
    words = [f"{name}={value}" for name, value in {**unit.environment, **variables}.items()]
    where = f"cd {shlex.quote(unit.folder)}; " if unit.folder else ""
    return where + shlex.join(["env", *words, *begin, *unit.command])


def compare_unit(unit, greenprof, rates, verdict, say):
    """Adds what one unit shows to the verdict."""
    runs = [run_unit(unit)[0] for _ in range(2)]
    unstable, found = unstable_of(runs), []
    for way in ways_of(unit, rates):
        captures_before = verdict.captures
        for _ in range(unit.rounds):
            beside, captures = run_unit(unit, greenprof, way)
            verdict.captures += captures
            found += [(way, difference) for difference in differences_of(runs[0], beside, unstable)]
        if verdict.captures == captures_before and not unit.may_be_short:
            found.append((way, ("[capture]", "written", "missing")))
    if found:
        runs += [run_unit(unit)[0] for _ in range(ALONE_AGAIN)]
        unstable = unstable_of(runs)
        found = [(way, difference) for way, difference in found if difference[0] not in unstable]
    for way, (name, alone, beside) in found:
        say(f"DIFFERENT at {way}  {name}: {alone} -> {beside}\n  again: {command_of(unit, way, greenprof)}")
        verdict.differences.append((way, name))
    for name in unstable:
        say(f"unstable alone  {name}: {', '.join(sorted({str(run.get(name, 'missing')) for run in runs}))}")
    verdict.unstable += unstable
    verdict.tests += len([name for name in runs[0] if name not in unstable and not name.endswith(": [status]")])


def compare(name, units, at_least, greenprof, rates, say=print):
    """Returns whether no test of a suite behaves in another way, and at_least tests were compared."""
    verdict = Verdict()
    for unit in units:
        say(f"{name}: {unit.name}")
        compare_unit(unit, greenprof, rates, verdict, say)
    rates_text = " and ".join(f"{hz} Hz" for hz in rates)
    say(f"{name}: {len(units)} programs, {verdict.tests} tests the same alone and at {rates_text} but "
        f"{len(verdict.differences)}, {len(verdict.unstable)} unstable alone, {verdict.captures} captures")
    if verdict.tests < at_least:
        say(f"{name}: FAILED: {verdict.tests} tests ran, at least {at_least} should")
    return not verdict.differences and verdict.tests >= at_least


# --- what programs print

def parse_results(output, scratch):
    """The file of run_unittest.py: a result and a name a line."""
    try:
        with open(os.path.join(scratch, "results")) as file:
            return dict(reversed(line.rstrip("\n").split(" ", 1)) for line in file)
    except FileNotFoundError:
        return {}


def parse_tap(output, scratch):
    """Perl's: "ok 3 - name", "not ok 4". What stands twice is numbered."""
    counts, results = collections.Counter(), {}
    for word, name in re.findall(r"(?m)^(ok|not ok)\b[ \t]*(\d*)", output):
        counts[name] += 1
        results[f"{name} ({counts[name]})"] = word
    return results


def parse_pattern(pattern):
    """A pattern with the groups `result` and `name`."""
    def parse(output, scratch):
        return {found["name"]: found["result"] for found in re.finditer(pattern, output, re.M)}
    return parse


def parse_ruby(output, scratch):
    """test-unit -v: "[ 3/32] TestFiber#test_tls = 0.00 s", and at the end "  1) Failure:\\nTestFiber#test_tls ["."""
    results = {name: "ran" for name in re.findall(r"(?m)^\[ *\d+/\d+\] (\S+#\S+) = ", output)}
    for result, name in re.findall(r"(?m)^ *\d+\) (Failure|Error|Skipped|Timeout):?\n *(\w\S*#\w+)", output):
        results[name] = result.lower()
    return results


def parse_status(output, scratch):
    """A program that is one test, with nothing but its status to tell: a crash, a hang or a failed check is another."""
    return {"ended": "yes"}


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            raise Missing(f"{program} is not installed")
