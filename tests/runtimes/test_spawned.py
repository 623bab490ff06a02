# SPDX-License-Identifier: MIT
"""Where coroutines come from (--stitch), and what they are called when they are renamed."""
import atexit
import shutil

from shares import check
import shares

MAIN = ["main", "spawn", "[spawned]"]
CACHE = {}
SERVICE = MAIN + ["trampoline", "service", "spawn", "[spawned]"]


def tidy(stack):
    """Function names alone, what is before main() left out."""
    names = [check.bare(frame) for frame in stack]
    return names[names.index("main"):] if "main" in names else names


class Spawned(shares.Shares):
    def setUp(self):
        """One run for all tests, which only read."""
        if "run" not in CACHE:
            super().setUp()
            self._cleanups.clear()
            atexit.register(shutil.rmtree, self.directory, ignore_errors=True)
            CACHE["run"] = self.profile(self.prepare(["spawned", 1.2]), options=("--clock", "wall"))
        self.done = CACHE["run"]

    def stitched(self, *options):
        return [(tidy(stack), weight) for stack, weight in self.done.folded("--stitch", *options).stacks]

    def check_all(self, stacks, above):
        """Every stack with work_NAME has above[NAME] above it, nothing else."""
        found = set()
        for stack, _ in stacks:
            for name, beginnings in above.items():
                if f"work_{name}" in stack:
                    found.add(name)
                    self.assertTrue(any(stack[:len(beginning)] == beginning for beginning in beginnings), stack)
        self.assertEqual(found, set(above))

    def above(self):
        return {"first": [SERVICE + ["trampoline", "first", "work_first"]],
                "second": [SERVICE + ["trampoline", "second", "work_second"]],
                "leaf": [SERVICE + ["trampoline", parent, "spawn_leaf", "spawn", "[spawned]", "trampoline", "leaf", "work_leaf"]
                         for parent in ("first", "second")]}

    def test_stacks(self):
        stacks = self.stitched("--clock", "cpu")
        self.check_all(stacks, self.above())
        # The time of each is what it is without: only where it stands has changed.
        plain, whole = self.done.folded("--clock", "cpu"), check.Folded("")
        whole.stacks, whole.total = stacks, sum(weight for _, weight in stacks)
        self.near("total", whole.total, plain.total, 0.0001, 0.0001)
        self.check_functions(whole, self.done.truth, len(self.done.capture().samples))
        inclusive = whole.inclusive()
        leaf, service = inclusive["work_leaf"], inclusive["service"]
        self.near("below service", service, sum(self.done.truth.functions.values()), check.SHARE_TOLERANCE, 0.01)
        self.near("below spawn_leaf", inclusive["spawn_leaf"], leaf, check.SHARE_TOLERANCE, 0.01)

    def test_wall(self):
        """Waits stand below the creator of the waiter: all of leaf's own are below spawn_leaf."""
        stacks = self.stitched("--clock", "wall")
        waits = [(stack, weight) for stack, weight in stacks if stack[-1] in ("[parked]", "[waiting]", "[ready]")]
        self.at_least("waits of leaf", sum(weight for stack, weight in waits if "leaf" in stack), 0.1)
        for stack, _ in waits:
            if "leaf" in stack:
                self.assertEqual(stack[:len(SERVICE)], SERVICE)
                self.assertEqual(stack[len(SERVICE) + 2:len(SERVICE) + 5], ["spawn_leaf", "spawn", "[spawned]"])

    def test_by_coroutine(self):
        """What --by puts at the root stays there; filters see the stacks above."""
        for stack, _ in self.done.folded("--stitch", "--by", "coroutine", "--clock", "cpu").stacks:
            self.assertEqual(sum(frame.startswith(("[coroutine", "[thread")) for frame in stack), 1, stack)
            self.assertTrue(stack[0].startswith(("[coroutine", "[thread")), stack)
        focused = self.done.folded("--stitch", "--clock", "cpu", "--focus", "spawn_leaf")
        self.near("focus", focused.total, self.done.truth.functions["work_leaf"], check.SHARE_TOLERANCE, 0.01)
        nothing = check.greenprof("export", self.done.output, "--format", "folded", "--clock", "cpu", "--focus", "^work_leaf$",
                                  "--ignore", "spawn_leaf", "--stitch")
        self.assertIn(b"nothing is left by --focus ^work_leaf$ --ignore spawn_leaf\n", nothing.stderr)
        self.assertNotEqual(self.done.folded("--clock", "cpu", "--focus", "^work_leaf$", "--ignore", "spawn_leaf").stacks, [])

    def names(self, *options):
        return sorted(row[6].strip() for row in self.done.ledger("--clock", "cpu", *options))

    def test_names(self):
        """The last name is shown, and former ones are found."""
        self.assertEqual([name for name in self.names() if not name.startswith("[thread")],
                         ["first, renamed", "second", "service", "the leaf, done", "the leaf, done"])
        self.assertEqual(self.names("--name", "^first$"), ["first, renamed"])
        self.assertEqual(self.names("--name", "^leaf$"), ["the leaf, done"] * 2)
        self.assertEqual(check.greenprof("report", self.done.output, "--name", "nonesuch").returncode, 1)

    def test_report_and_graph(self):
        done = check.greenprof("report", self.done.output, "--stitch", "--clock", "cpu", "-r", "spawn_leaf")
        self.assertRegex(done.stdout.decode(), r"spawn_leaf")
        graph = check.greenprof("flamegraph", self.done.output, "--stitch", "--clock", "cpu")
        self.assertIn(b"[spawned]", graph.stdout)


if __name__ == "__main__":
    check.main()
