# SPDX-License-Identifier: MIT
"""What holds of every runtime: a program with coroutines alpha, beta, gamma (60, 30 and 10 % of the work) and one that
only waits, under `greenprof run`; see shares.h."""
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import check  # noqa: E402

STATUS = 7
WORKERS = ("alpha", "beta", "gamma")


class Shares(check.Case):
    def prepare(self, command):
        """An absolute command line; a SKIP where its program was not built or is not installed."""
        path = check.program(command[0]) if "/" not in command[0] else command[0]
        check.need(os.path.exists(path), f"{command[0]} is not there: its runtime's package is not installed")
        return [path, *map(str, command[1:])]

    def installed(self, name):
        path = shutil.which(name)
        check.need(path is not None, f"{name} is not installed")
        return path

    def unpatched(self, run):
        """How many functions were to be patched and could not be."""
        return run.capture().counters["unpatched"]

    def outcome(self, command):
        done = subprocess.run(command, capture_output=True, timeout=check.LIMIT_SECONDS, cwd=self.directory)
        return done.returncode, self.shape(done.stdout.decode()), done.stderr.decode()

    def outcome_text(self, command):
        return subprocess.run(command, capture_output=True, timeout=check.LIMIT_SECONDS, cwd=self.directory).stdout.decode()

    def shape(self, text):
        """What a program prints, but for the times in it."""
        return [re.sub(r"\d+\.\d+", "N", line) for line in text.splitlines()]

    def check_shares(self, command, bottoms, coroutines=4, extra=(0,), hz=1000, switches=None, names=None, status=STATUS,
                     environment=None, options=(), functions="work_{}", in_step=False):
        """bottoms: regular expressions of what may stand outermost on a coroutine's stack.
        coroutines: how many do the work and wait; extra: how many more may be seen, the runtime's own.
        switches: how often each of them is switched to, at least and at most; None = not known exactly.
        in_step: slices as short as the period: their owner is exact, but the program's own books miss what a sample
        costs between two of their entries."""
        command = self.prepare(command)
        alone = self.outcome(briefly(command))
        run = self.profile(command, hz=hz, status=status, environment=environment, options=options)
        self.assertEqual((run.status, self.shape(run.stdout), run.stderr), alone)
        capture, folded, by_coroutine = run.capture(), run.folded(), run.folded("--by", "coroutine")
        if not in_step:
            self.check_functions(folded, run.truth, len(capture.samples))
        self.check_total(folded, run.truth, slack=0.05)  # interpreters take a while to start
        announced = [coro for coro in capture.coros.values() if coro.kind == 2]
        found = [coro for coro in capture.coros.values() if coro.kind == 3]
        self.assertIn(len(announced) - coroutines, extra, announced)
        self.assertEqual(found, [])
        owners = self.check_owners(by_coroutine, bottoms, functions)
        if not in_step and switches is not None:  # where switches are not reported, the ledger is as good as the samples
            self.check_ledger_of(run, owners)
        if switches is not None:
            self.check_switches(capture, owners, switches)
        if names is not None:
            self.check_names(owners, names)
        self.check_stitched(run, functions)
        return run

    def check_stitched(self, run, functions):
        """The creator of the workers stands above them: the program's own main(), and nothing of greenprof's."""
        for stack, _ in run.folded("--stitch").stacks:
            if not any(check.bare(frame) == functions.format(name) for frame in stack for name in WORKERS):
                continue
            creator = stack[:stack.index("[spawned]")] if "[spawned]" in stack else []
            self.assertTrue(any(check.bare(frame) == "main" for frame in creator), stack)
            self.assertFalse(any(re.search("__wrap_|gp_wrap|prof_coro|libgreenprof", frame) for frame in creator), stack)

    def check_owners(self, folded, bottoms, functions):
        """Each worker's samples are on one coroutine, which holds no other's; nothing stands below the entry."""
        owners = {}
        for stack, _ in folded.stacks:
            if stack[0].startswith("[thread"):
                self.assertFalse(any(check.bare(frame) == functions.format(name) for frame in stack for name in WORKERS),
                                 stack)
                continue
            # The runtime's own function below an entry is there when it calls, bound lazily, what ends the coroutine.
            # A frame alone is the switch to a coroutine that has not come to its entry yet.
            if len(stack) > 2 and not stack[1].startswith("[") and not any(frame.startswith("_dl_runtime_resolve") for frame in stack):
                lowest = ";".join(stack[1:3])
                self.assertTrue(any(re.match(bottom, lowest) or re.match(bottom, stack[1]) for bottom in bottoms),
                                f"phantom frame: {stack[:4]}")
            for name in WORKERS:
                if any(check.bare(frame) == functions.format(name) for frame in stack):
                    owners.setdefault(name, set()).add(stack[0])
        self.assertEqual({name: len(roots) for name, roots in owners.items()}, dict.fromkeys(WORKERS, 1), owners)
        roots = {name: root for name, (root,) in owners.items()}
        self.assertEqual(len(set(roots.values())), len(WORKERS), roots)
        return roots

    def check_ledger_of(self, run, owners):
        ledger = run.capture().ledger
        for name, root in owners.items():
            seconds = run.truth.functions.get(f"work_{name}")
            self.near(f"ledger of {name}", ledger[coro_id(root)][0] / 1e9, seconds, check.SHARE_TOLERANCE, 0.005)

    def check_switches(self, capture, owners, bounds):
        counts = {name: capture.ledger[coro_id(root)][1] for name, root in owners.items()}
        self.assertEqual(len(set(counts.values())), 1, counts)
        count = counts["alpha"]
        print(f"{self.id().split('.', 1)[-1]}: switches to each: {count}, bounds {bounds}")
        self.assertTrue(bounds[0] <= count <= bounds[1], counts)

    def without_own(self, run):
        """A script that has only the clock of its process has booked greenprof's own threads, too."""
        capture = run.capture()
        own = capture.own_cpu_ns / (capture.process_cpu_ns + capture.own_cpu_ns)
        for name in run.truth.functions:
            run.truth.functions[name] *= 1 - own

    def check_script(self, command, coroutines=4, extra=(0,), hz=1000, status=STATUS, switches=None, environment=None,
                     process_clock=False):
        """A program with functions that are no machine code: its owner shows by how much work there is."""
        command = self.prepare(command)
        alone = self.outcome(briefly(command))
        run = self.profile(command, hz=hz, status=status, environment=environment)
        if process_clock:
            self.without_own(run)
        self.assertEqual((run.status, self.shape(run.stdout), run.stderr), alone)
        capture, folded = run.capture(), run.folded("--by", "coroutine")
        announced = [coro for coro in capture.coros.values() if coro.kind == 2]
        self.assertIn(len(announced) - coroutines, extra, announced)
        self.assertEqual([coro for coro in capture.coros.values() if coro.kind == 3], [])
        roots = {root: seconds for root, seconds in folded.roots().items() if not root.startswith("[thread")}
        owners = dict(zip(WORKERS, sorted(roots, key=roots.get, reverse=True)))
        whole = sum(run.truth.functions.values())
        for name, root in owners.items():
            seconds = run.truth.functions[f"work_{name}"]
            self.near(f"samples of {name}", roots[root], seconds, check.SHARE_TOLERANCE, 0.005, len(capture.samples), whole)
        for stack, _ in run.folded("--stitch", "--by", "coroutine").stacks:
            if stack[0] in owners.values():
                above = stack[:stack.index("[spawned]")] if "[spawned]" in stack else []
                self.assertTrue(any(check.bare(frame) == "__libc_start_main" for frame in above), stack)
        self.check_ledger_of(run, owners)
        if switches is not None:
            self.check_switches(capture, owners, switches)
        incomplete = sum(seconds for stack, seconds in
                         ((stack, seconds) for stack, seconds in folded.stacks) if "[incomplete]" in stack)
        print(f"{self.id().split('.', 1)[-1]}: incomplete: {incomplete:.3f} s of {folded.total:.3f}")
        return run, owners, folded

    def check_polled(self, command, names, hz=1000, status=STATUS, environment=None, options=()):
        """The running coroutine was read at samples. Each worker is one coroutine, by its name; its time is its samples'; nothing is said of
        switches and waits. Returns the run, and the workers' roots."""
        command = self.prepare(command)
        alone = self.outcome(briefly(command))
        run = self.profile(command, hz=hz, status=status, environment=environment, options=options)
        self.assertEqual((run.status, self.shape(run.stdout), run.stderr), alone)
        capture, folded = run.capture(), run.folded("--by", "coroutine")
        self.assertEqual({coro.kind for coro in capture.coros.values()} - {1, 4}, set(), capture.coros)
        named = {name: [coro for coro in capture.coros.values() if re.fullmatch(pattern, coro.name)]
                 for name, pattern in names.items()}
        self.assertEqual({name: len(coros) for name, coros in named.items()}, dict.fromkeys(names, 1), capture.coros)
        whole, roots = sum(run.truth.functions.values()), {}
        for name, (coro,) in named.items():
            roots[name], = [root for root in folded.roots() if root.startswith(f"[coroutine {coro.id} ")]
            samples = [sample.weight_ns for sample in capture.samples if sample.coro == coro.id]
            self.assertEqual(capture.ledger[coro.id], [sum(samples), 0])
            seconds = run.truth.functions[f"work_{name}"]
            self.near(f"samples of {name}", sum(samples) / 1e9, seconds, check.SHARE_TOLERANCE, 0.005, len(capture.samples), whole)
        text = check.greenprof("report", run.output, "--by", "coroutine", "--clock", "wall").stdout.decode()
        self.assertRegex(text, r"(?m) - +- +- +- +- +\d+ - +" + names["alpha"] + "$")
        self.assertIn("switches and waits are not known", text)
        misfits = capture.counters["poll_misfit"]
        print(f"{self.id().split('.', 1)[-1]}: {misfits} of {len(capture.samples)} samples amid a switch")
        return run, roots

    def frames(self, run):
        """Each frame with its name, file and first line."""
        out = os.path.join(self.directory, "out.json")
        check.greenprof("export", run.output, "--format", "speedscope", "-o", out, check=True)
        with open(out) as file:
            return json.load(file)["shared"]["frames"]

    def check_lines(self, run, made, bounds, name=r"storm_(\d+)"):
        """Each line that was sampled is inside of its function.
        bounds: the first and the last line of a function by its number, or None."""
        text = check.greenprof("export", run.output, "--format", "callgrind", check=True).stdout.decode()
        names, inside, checked = {}, None, 0
        for line in text.splitlines():
            match = re.match(r"c?fn=\((\d+)\)(?: (.*))?$", line)
            if match and match[2]:
                names[match[1]] = match[2]
            if match and line.startswith("fn"):
                inside = re.fullmatch(name, names.get(match[1]) or "")
            match = re.match(r"(\d+) \d+", line)
            if match and inside and int(match[1]) != 0 and bounds(int(inside[1])) is not None:
                first, last = bounds(int(inside[1]))
                checked += 1
                self.assertTrue(first <= int(match[1]) <= last, (inside[0], line))
        print(f"{self.id()}: {checked} lines of {made} functions")
        return checked

    def check_names(self, owners, names):
        for name, pattern in names.items():
            self.assertRegex(owners[name], r"^\[coroutine \d+ " + pattern + r"\]$")


def briefly(command):
    """The same command with next to no work: what a program prints does not depend on how long it works."""
    return ["0.05" if re.fullmatch(r"\d+\.\d+", word) else word for word in command]


def coro_id(root):
    return int(root.split()[1].rstrip("]"))
