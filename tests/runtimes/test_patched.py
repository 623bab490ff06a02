# SPDX-License-Identifier: MIT
"""Runtimes that are linked into the program, by entry patches: the lua5.4 program, Debian's static Boost."""
import os
import subprocess

from shares import check
import shares

ROUNDS = 200
HERE = os.path.dirname(os.path.abspath(__file__)) + "/"


class Lua(shares.Shares):
    ROUNDS = 40  # what a sample costs between two looks at the clock must not matter

    def run_script(self, name, hz):
        command = [self.installed(name), HERE + "coroutines.lua", "100", str(self.ROUNDS)]
        alone = self.outcome(command)
        run = self.profile(command, hz=hz, status=7)
        self.assertEqual((run.status, sorted(self.shape(run.stdout)), run.stderr), (alone[0], sorted(alone[1]), alone[2]))
        return run

    def check(self, hz, name="lua5.4"):
        run = self.run_script(name, hz)
        capture = run.capture()
        self.assertEqual(self.unpatched(run), 0)
        lines = {name: str(line) for line, text in enumerate(open(HERE + "coroutines.lua"), 1)
                 for name in (*shares.WORKERS, "idle") if f"function {name}(" in text}
        coros = {coro.name.rpartition(":")[2]: capture.ledger[coro.id] for coro in capture.coros.values() if coro.kind == 2}
        self.assertEqual(set(coros), set(lines.values()), coros)  # named by the lines of their functions
        whole = sum(coros[lines[name]][0] for name in shares.WORKERS)
        booked = sum(run.truth.functions.values())
        for name in shares.WORKERS:
            cpu, switches = coros[lines[name]][:2]
            self.near(f"share of {name}", cpu / whole, run.truth.functions[name] / booked, check.SHARE_TOLERANCE, 0)
            self.assertEqual(switches, self.ROUNDS + 1)

    def test_shares(self):
        self.check(1000)

    def test_shares_53(self):
        self.check(1000, "lua5.3")

    def test_shares_51(self):
        self.check(1000, "lua5.1")

    def test_at_a_high_rate(self):
        self.check(10000)


class Boost(shares.Shares):
    ENTRY = [r"void boost::context::detail::fiber_entry<", r"__cxa_throw$"]

    def test_static(self):
        run = self.check_shares(["boost_patched", 1.0, ROUNDS], self.ENTRY, switches=(ROUNDS, ROUNDS + 3))
        self.assertEqual(self.unpatched(run), 0)

    def test_at_a_high_rate(self):
        self.check_shares(["boost_patched", 0.7, 5000], self.ENTRY, hz=10000, in_step=True)

    def test_stripped(self):
        """Without symbols, by its code: only where it is asked for."""
        (whole,) = self.prepare(["boost_patched"])
        stripped = os.path.join(self.directory, "stripped")
        subprocess.run(["strip", "-o", stripped, whole], check=True)
        self.assertIn("only by 'greenprof run --patch boost'", check.greenprof("runtimes", stripped).stdout.decode())
        for options, kind in (((), 3), (("--patch", "auto,boost"), 2)):
            run = self.profile([stripped, "0.5", str(ROUNDS)], status=7, options=options)
            capture = run.capture()
            made = [coro.id for coro in capture.coros.values() if coro.kind == 2]
            self.assertEqual(len(made), 4 if kind == 2 else 0)
            if made:
                self.assertTrue(all(ROUNDS <= capture.ledger[coro][1] <= ROUNDS + 3 for coro in made))


class Minicoro(shares.Shares):
    def test_inline(self):
        """Its switch routine begins with an address of its own."""
        run = self.check_shares(["shape_minicoro_inline", 0.7, ROUNDS], [r"entry_"], switches=(ROUNDS, ROUNDS + 3),
                                names={name: f"entry_{name}" for name in shares.WORKERS})
        self.assertEqual(self.unpatched(run), 0)


class Requests(shares.Shares):
    def test_unknown(self):
        done = check.greenprof("run", "--patch", "auto,luna", "--", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown runtime 'luna'; use auto, none, boost, lua, minicoro, nginx, php, tarantool", done.stderr.decode())

    def test_refused(self):
        """A routine that begins in a way that is not known is left as it is, and that is said."""
        (path,) = self.prepare(["patch_refused"])
        self.assertIn("not hooked; jump_fcontext() begins in a way", check.greenprof("runtimes", path).stdout.decode())
        run = self.profile([path], status=7)
        self.assertEqual(run.stdout, "as it was\n")
        self.assertEqual(self.unpatched(run), 1)
        done = check.greenprof("run", "--patch", "boost", "--", path)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertRegex(done.stderr.decode(), r"^greenprof: \S+patch_refused: cannot be patched for boost: jump_fcontext\(\)")

    def test_runtimes(self):
        text = check.greenprof("runtimes").stdout.decode()
        for line in (r"Tarantool fibers +entry patch of coro_transfer", r"Lua, linked in +entry patch of lua_resume"):
            self.assertRegex(text, line)
        self.assertIn("entry patch of coro_transfer, by 'greenprof run'",
                      check.greenprof("runtimes", self.installed("tarantool")).stdout.decode())


if __name__ == "__main__":
    check.main()
