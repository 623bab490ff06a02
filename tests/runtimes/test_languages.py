"""Coroutines of language runtimes, as Debian has them: Ruby's and PHP's Fibers, Lua's coroutines."""
import os
import shutil
import subprocess

from shares import check
import shares

ROUNDS = 200
HERE = os.path.dirname(os.path.abspath(__file__))


def interpreter(name, *probe):
    path = shutil.which(name)
    works = path is not None and subprocess.run([path, *probe], capture_output=True).returncode == 0
    check.need(works, f"there is no {name} with Fibers")
    return path


class Ruby(shares.Shares):
    def command(self, *arguments):
        return [interpreter("ruby", "-e", "Fiber.new {}.resume"), os.path.join(HERE, "fibers.rb"), *arguments]

    def test_shares(self):
        self.check_script(self.command(1.5, ROUNDS), switches=(ROUNDS, ROUNDS + 3))

    def test_at_a_high_rate(self):
        self.check_script(self.command(1.0, ROUNDS), hz=10000, switches=(ROUNDS, ROUNDS + 3))

    def test_pool(self):
        """Ruby uses stacks again: each Fiber is its own coroutine all the same."""
        program = "300.times { Fiber.new { x = 0; 20000.times { |i| x += i }; Fiber.yield; 1 }.tap(&:resume).resume }"
        run = self.profile([interpreter("ruby", "-e", "Fiber.new {}.resume"), "-e", program])
        made = [coro for coro in run.capture().coros.values() if coro.kind == 2]
        self.assertEqual(len(made), 300)
        self.assertEqual({run.capture().ledger[coro.id][1] for coro in made}, {2})


class Php(shares.Shares):
    def command(self, *arguments):
        return [interpreter("php", "-r", "(new Fiber(fn () => 1))->start();"), os.path.join(HERE, "fibers.php"), *arguments]

    def test_shares(self):
        run, _, _ = self.check_script(self.command(1.5, ROUNDS), switches=(ROUNDS, ROUNDS + 3), process_clock=True)
        self.assertEqual(run.capture().end, 0)  # it has SIGPROF for itself, and is sampled to its end

    def test_at_a_high_rate(self):
        self.check_script(self.command(1.0, ROUNDS), hz=10000, switches=(ROUNDS, ROUNDS + 3), process_clock=True)


class Lua(shares.Shares):
    def test_shares(self):
        self.check_shares(["lua", 1.5, ROUNDS], [r"lua_resume$"], switches=(ROUNDS, ROUNDS + 3),
                          names={"alpha": r"shares\.lua:2", "beta": r"shares\.lua:3", "gamma": r"shares\.lua:4"})

    def test_at_a_high_rate(self):
        self.check_shares(["lua", 0.7, 5000], [r"lua_resume$"], hz=10000, in_step=True)


if __name__ == "__main__":
    check.main()
