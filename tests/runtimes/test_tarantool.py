# SPDX-License-Identifier: MIT
"""Tarantool's fibers, by entry patches; and polled, where nothing is patched."""
import collections
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
        """Code of the JIT cannot be walked: its owner is exact all the same."""
        self.check(1.0, ROUNDS, switches=EXACTLY)

    def test_shares_without_jit(self):
        _, folded = self.check(1.0, ROUNDS, "off", switches=EXACTLY)
        incomplete = sum(seconds for stack, seconds in folded.stacks if "[incomplete]" in stack)
        self.at_most("incomplete", incomplete, 0.05 * folded.total)
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
        """Without the patch, and not polled, they are found by their stacks."""
        run = self.profile([self.installed("tarantool"), SCRIPT, "0.4", str(ROUNDS)], status=7,
                           options=("--patch", "none"), environment={"GREENPROF_POLL": "none"})
        kinds = {coro.kind for coro in run.capture().coros.values()}
        self.assertNotIn(2, kinds)
        self.assertIn(3, kinds)
        self.assertIn("no hook: run --patch tarantool or", check.greenprof("info", run.output).stdout.decode())


class Polled(shares.Shares):
    """Nothing is patched: the running fiber is read at each sample."""
    UNPATCHED = ("--patch", "none")

    def check(self, *arguments, **options):
        return self.check_polled([self.installed("tarantool"), SCRIPT, *arguments],
                                 {name: name for name in shares.WORKERS}, options=self.UNPATCHED, **options)

    def test_shares(self):
        self.check(1.0, ROUNDS)

    def test_shares_without_jit(self):
        """Nothing stands below where a fiber starts."""
        run, roots = self.check(1.0, ROUNDS, "off")
        folded = run.folded("--by", "coroutine")
        for stack, _ in folded.stacks:
            if stack[0] in roots.values() and not stack[1].startswith("["):
                self.assertEqual(stack[1], "coro_init")
        incomplete = sum(seconds for stack, seconds in folded.stacks if "[incomplete]" in stack)
        self.at_most("incomplete", incomplete, 0.05 * folded.total)

    def test_at_a_high_rate(self):
        self.check(0.6, ROUNDS, hz=10000)

    def test_switches_all_the_time(self):
        """The variable and the stack pointer disagree a good part of the time: no stack is taken for another."""
        path = os.path.join(self.directory, "pingpong.lua")
        with open(path, "w") as text:
            text.write("local fiber, left = require('fiber'), 2\n"
                       "jit.off()\n"
                       "for _, name in ipairs({'ping', 'pong'}) do\n"
                       "  fiber.create(function() fiber.name(name) for i = 1, 300000 do fiber.yield() end left = left - 1 end)\n"
                       "end\n"
                       "while left > 0 do fiber.sleep(0.01) end\n"
                       "os.exit(7)\n")
        run = self.profile([self.installed("tarantool"), path], hz=10000, status=7, options=self.UNPATCHED)
        capture = run.capture()
        polled = sorted(coro.name for coro in capture.coros.values() if coro.kind == 4 and coro.name in ("ping", "pong"))
        self.assertEqual(polled, ["ping", "pong"])
        self.assertNotIn(3, {coro.kind for coro in capture.coros.values()})
        print(f"{capture.counters['poll_misfit']} of {len(capture.samples)} samples amid a switch")

    def test_pool(self):
        """Fibers are used again: each use is a coroutine of its own."""
        path = os.path.join(self.directory, "pool.lua")
        with open(path, "w") as text:
            text.write("local fiber, cpu = require('fiber'), require('clock').thread\n"
                       "for i = 1, 25 do\n"
                       "  local one = fiber.new(function() local start = cpu() while cpu() - start < 0.03 do end end)\n"
                       "  one:set_joinable(true)\n"
                       "  one:join()\n"
                       "end\n"
                       "os.exit(7)\n")
        run = self.profile([self.installed("tarantool"), path], status=7, options=self.UNPATCHED)
        capture = run.capture()
        polled = {coro.id: coro.stack_lo for coro in capture.coros.values() if coro.kind == 4}
        samples = collections.Counter(sample.coro for sample in capture.samples if sample.coro in polled)
        print("samples:", *samples.values())
        self.assertIn(len(polled), range(25, 28))  # the script's own, and one that Tarantool may have
        self.assertLess(len(set(polled.values())), 10)  # few stacks
        self.assertEqual({coro: capture.ledger[coro][1] for coro in polled}, dict.fromkeys(polled, 0))

    def test_runtimes(self):
        text = check.greenprof("runtimes", self.installed("tarantool")).stdout.decode()
        self.assertIn("polled where it is not patched: cord_ptr is read at each sample", text)


if __name__ == "__main__":
    check.main()
