# SPDX-License-Identifier: MIT
"""Coroutines of language runtimes, as Debian has them: Ruby's and PHP's Fibers."""
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
        _, owners, _ = self.check_script(self.command(1.5, ROUNDS), switches=(ROUNDS, ROUNDS + 3))
        self.check_names(owners, dict.fromkeys(owners, r"fiber at fibers\.rb:22"))

    def test_names(self):
        """A Fiber is called by the place of its block, also one that never yields; one without a block of its own is not."""
        path = os.path.join(self.directory, "a_file_with_a_name_that_is_longer_than_fits_there.rb")
        with open(path, "w") as file:
            file.write("burn = 'x = 0; 300000.times { |i| x += i }'\n"
                       "def work = 300000.times { |i| i * 2 }\n"
                       "Fiber.new { work }.resume\n"
                       "Fiber.new do\n  work\nend.resume\n"
                       "Fiber.new(&proc { work }).resume\n"
                       "Fiber.new(&method(:work)).resume\n"
                       "e = Enumerator.new { |y| work; y << 1 }\ne.next\n"
                       "eval('Fiber.new { work }', binding, '(text)', 77).resume\n")
        run = self.profile([interpreter("ruby", "-e", "Fiber.new {}.resume"), path])
        names = sorted(coro.name for coro in run.capture().coros.values() if coro.kind == 2)
        place = "fiber at _name_that_is_longer_than_fits_there.rb:"
        self.assertEqual([name[:9] + "_" + name[-5:] if "fits" in name else name for name in names],
                         sorted(["fiber", "fiber", "fiber at (text):77"] + [f"fiber at _.rb:{line}" for line in (3, 4, 7)]), names)
        self.assertEqual({len(name) for name in names if "fits" in name}, {47}, place)

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
        run, owners, _ = self.check_script(self.command(1.5, ROUNDS), switches=(ROUNDS, ROUNDS + 3), process_clock=True)
        self.check_names(owners, dict.fromkeys(owners, r"fiber at fibers\.php:30"))
        self.assertEqual(run.capture().end, 0)  # it has SIGPROF for itself, and is sampled to its end

    def test_at_a_high_rate(self):
        self.check_script(self.command(1.0, ROUNDS), hz=10000, switches=(ROUNDS, ROUNDS + 3), process_clock=True)

    def test_beside_another_library_that_replaces_mmap(self):
        """It sees the stack of each Fiber, as it does without greenprof; and so does greenprof."""
        php = interpreter("php", "-r", "(new Fiber(fn () => 1))->start();")
        program = "$all = []; for ($i = 0; $i < 20; $i++) { $all[] = $f = new Fiber(fn () => Fiber::suspend()); $f->start(); }"
        environment = {"LD_PRELOAD": check.program("stack_maps.so")}
        alone = subprocess.run([php, "-n", "-r", program], capture_output=True, text=True, env={**os.environ, **environment})
        self.assertEqual((alone.returncode, alone.stdout, alone.stderr), (0, "STACKS 20\n", ""))
        run = self.profile([php, "-n", "-r", program], environment=environment)
        self.assertEqual((run.stdout, run.stderr), (alone.stdout, alone.stderr))
        self.assertEqual(len([coro for coro in run.capture().coros.values() if coro.kind == 2]), 20)

    def test_names(self):
        """A Fiber is called what it calls; closures have a place instead of a name."""
        path = os.path.join(self.directory, "names.php")
        with open(path, "w") as file:
            file.write("<?php\nnamespace App;\nfunction work() { for ($i = 0, $x = 0; $i < 3000000; $i++) $x += $i; }\n"
                       "class Job { function run() { work(); } static function go() { work(); } function __invoke() { work(); } }\n"
                       "$all = [new \\Fiber('App\\work'), new \\Fiber([new Job, 'run']), new \\Fiber('App\\Job::go'),\n"
                       "new \\Fiber(fn () => work()), new \\Fiber(new Job), new \\Fiber(work(...)),\n"
                       "new \\Fiber(function () {\n    work();\n})];\n"
                       "foreach ($all as $fiber) $fiber->start();\n")
        run = self.profile([interpreter("php", "-r", "(new Fiber(fn () => 1))->start();"), path])
        names = sorted(coro.name for coro in run.capture().coros.values() if coro.kind == 2)
        self.assertEqual(names, sorted(["App\\work", "App\\work", "App\\Job::run", "App\\Job::go", "App\\Job::__invoke",
                                        "fiber at names.php:6", "fiber at names.php:7"]))


if __name__ == "__main__":
    check.main()
