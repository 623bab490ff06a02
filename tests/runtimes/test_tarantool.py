"""Tarantool's fibers, by entry patches."""
import os
import re

from shares import check
import shares

ROUNDS = 200
EXACTLY = (ROUNDS + 1, ROUNDS + 3)
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fibers_tarantool.lua")


class Tarantool(shares.Shares):
    """The script runs in a fiber itself, and Tarantool makes two or three of its own."""
    EXTRA = range(1, 5)

    def check(self, *arguments, **options):
        command = [self.installed("tarantool"), SCRIPT, *arguments]
        run, owners, folded = self.check_script(command, extra=self.EXTRA, **options)
        self.check_names(owners, {name: name for name in shares.WORKERS})
        self.assertEqual(self.unpatched(run), 0)
        return run, folded

    def test_shares(self):
        """Code of the JIT cannot be walked: whose it is is exact all the same."""
        self.check(1.0, ROUNDS, switches=EXACTLY)

    def test_shares_without_jit(self):
        _, folded = self.check(1.0, ROUNDS, "off", switches=EXACTLY)
        incomplete = sum(seconds for stack, seconds in folded.stacks if "[incomplete]" in stack)
        self.assertLess(incomplete, 0.05 * folded.total)
        for stack, _ in folded.stacks:
            if "coroutine" in stack[0] and not stack[1].startswith("["):
                self.assertEqual(stack[1], "coro_init")  # nothing stands below where a fiber starts

    def test_at_a_high_rate(self):
        self.check(0.7, ROUNDS, hz=10000, switches=EXACTLY)

    def test_pool(self):
        """Fibers are used again: each use is a coroutine of its own, with its own name."""
        path = os.path.join(self.directory, "pool.lua")
        with open(path, "w") as text:
            text.write("local fiber = require('fiber')\n"
                       "for i = 1, 500 do\n"
                       "  local one = fiber.new(function() fiber.name('n' .. i) fiber.yield() fiber.yield() end)\n"
                       "  one:set_joinable(i % 2 == 0)\n"
                       "  if i % 2 == 0 then one:join() else fiber.sleep(0) fiber.yield() end\n"
                       "end\n"
                       "os.exit(7)\n")
        run = self.profile([self.installed("tarantool"), path], status=7)
        capture = run.capture()
        names = [coro.name for coro in capture.coros.values() if re.fullmatch(r"n\d+", coro.name)]
        self.assertEqual(sorted(names, key=lambda name: int(name[1:])), [f"n{i}" for i in range(1, 501)])

    def test_not_asked_for(self):
        """Without the patch they are found by their stacks."""
        run = self.profile([self.installed("tarantool"), SCRIPT, "0.4", str(ROUNDS)], status=7,
                           options=("--patch", "none"))
        kinds = {coro.kind for coro in run.capture().coros.values()}
        self.assertNotIn(2, kinds)
        self.assertIn(3, kinds)
        self.assertIn("no hook: run --patch tarantool or", check.greenprof("info", run.output).stdout.decode())


if __name__ == "__main__":
    check.main()
