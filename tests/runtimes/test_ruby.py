# SPDX-License-Identifier: MIT
"""Ruby's methods, blocks and C functions by name, on each stack that they run on."""
import os
import re
import shutil
import subprocess

from shares import check
import shares

HERE = os.path.dirname(os.path.abspath(__file__))
NATIVE = re.compile(r"ruby3|libruby|rb_vm_exec|^ruby_run_node")


def ruby():
    """A Ruby whose frames are known."""
    path = shutil.which("ruby")
    version = path and subprocess.run([path, "-e", "puts RUBY_VERSION"], capture_output=True, text=True).stdout
    check.need(path is not None, "there is no ruby")
    check.need(version.startswith("3.1."), f"the frames of Ruby {version.strip()} are not known")
    return path


def is_ruby(stack):
    return any(re.match(r"<main>|block .*in <main>", frame) for frame in stack)


class Methods(shares.Shares):
    def run_methods(self, seconds, hz=1000, options=()):
        run = self.profile([ruby(), os.path.join(HERE, "methods.rb"), seconds], hz=hz, status=7, options=options)
        return run, run.folded("--by", "coroutine")

    def test_shares(self):
        run, folded = self.run_methods(2.0)
        self.check_functions(run.folded(), run.truth, len(run.capture().samples))
        self.check_reach(folded)
        self.check_stacks(folded)
        self.assertEqual(run.stderr, "")

    def check_reach(self, folded):
        """What runs in the program names its functions, from the leaf to where its stack begins."""
        native = [(stack, seconds) for stack, seconds in folded.stacks
                  if any(frame == "ruby_run_node" or frame == "start_thread" for frame in stack)
                  and any(frame == "rb_vm_exec" for frame in stack)]
        named = sum(seconds for stack, seconds in folded.stacks if is_ruby(stack))
        self.at_most("seconds without names", sum(seconds for _, seconds in native), 0.01 * named)
        for stack, _ in folded.stacks:
            if is_ruby(stack):
                self.assertFalse(any(NATIVE.search(frame) for frame in stack), stack)
                self.assertRegex(stack[1], r"^(<main>|block (\(\d+ levels\) )?in <main>|\[incomplete\])$", stack)

    def check_stacks(self, folded):
        """Each Fiber and each Thread has its own functions, and no other's."""
        where = {"first_fiber": "coroutine", "second_fiber": "coroutine", "first_thread": "thread", "second_thread": "thread"}
        for name, kind in where.items():
            roots = {stack[0] for stack, _ in folded.stacks if f"Work#{name}" in stack}
            self.assertEqual(len(roots), 1 if kind == "coroutine" else len(roots), roots)
            self.assertTrue(all(root.startswith(f"[{kind} ") for root in roots), roots)
        for stack, _ in folded.stacks:
            self.assertLessEqual(sum(f"Work#{name}" in stack for name in where), 1, stack)

    def test_native(self):
        """C libraries' frames stand where they were called, the interpreter's own do not."""
        program = ("require 'zlib'\ndef packs(text) = Zlib::Deflate.deflate(text, 9)\ntext = (0..200_000).to_a.join\n"
                   "8.times { packs(text) }\n")
        run = self.profile([ruby(), "-e", program], options=["--native"])
        inside = [stack for stack, _ in run.folded().stacks if "Object#packs" in stack]
        deep = [stack for stack in inside if stack[-1] not in ("Object#packs",) and any("libz" in f or "deflate" in f for f in stack)]
        self.assertTrue(deep, inside[:5])
        for stack in deep:
            at = stack.index("Object#packs")
            self.assertEqual([frame for frame in stack[at:] if frame.startswith("libruby") or frame == "rb_vm_exec"], [], stack)
            self.assertLess(stack.index("<main>"), at)

    def test_waits(self):
        """A Fiber that waits shows where, once it goes on."""
        program = ("def waits_here = Fiber.yield\nf = Fiber.new { loop { waits_here } }\n"
                   "40.times { f.resume; 100000.times { |i| i * 2 } }\n")
        run = self.profile([ruby(), "-e", program], options=["--clock", "wall"])
        waits = [stack for stack, _ in run.folded("--clock", "wall", "--by", "coroutine").stacks
                 if stack[0].startswith("[coroutine") and stack[-1] in ("[parked]", "[waiting]")]
        named = [stack for stack in waits if "Object#waits_here" in stack]
        self.assertTrue(named, waits)
        self.assertEqual(named[0][1:4], ["block in <main>", "Kernel#loop", "block (2 levels) in <main>"])


class Refused(shares.Shares):
    """What is not known, or is not as it should be, is not read: native frames, and one sentence."""

    def check_refused(self, source, sentence):
        path = os.path.join(self.directory, "other.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", path, "-xc", "-"], input=source.encode(), check=True)
        run = self.profile([ruby(), "-e", "def work = 3_000_000.times { |i| i * 2 }\nputs work"], environment={"LD_PRELOAD": path})
        self.assertEqual((run.stdout, run.stderr), ("3000000\n", ""))
        self.assertIn(sentence, check.greenprof("report", run.output).stdout.decode())
        stacks = [stack for stack, _ in run.folded().stacks]
        self.assertFalse(any("Object#work" in stack or "<main>" in stack for stack in stacks))
        self.assertTrue(any("rb_vm_exec" in stack for stack in stacks))

    def test_another_line(self):
        """Ruby says something else of a frame than what is read there."""
        self.check_refused("unsigned long rb_profile_frame_first_lineno(unsigned long frame) { (void)frame; return 1999; }",
                           "Ruby 3.1: does not keep its frames where it says, native frames only")

    def test_an_error(self):
        """The trial's call raises: the program does not see it."""
        self.check_refused("unsigned long rb_eval_string(const char *);\n"
                           "int rb_profile_frames(int a, int b, unsigned long *c, int *d)\n"
                           "{ (void)a, (void)b, (void)c, (void)d; rb_eval_string(\"raise 'no'\"); return 0; }",
                           "Ruby 3.1: its trial came to no end, native frames only")


class Storm(shares.Shares):
    def check_storm(self, *arguments, hz=10000):
        run = self.profile([ruby(), os.path.join(HERE, "methods_storm.rb"), *arguments], hz=hz, healthy=False)
        made = int(run.stdout)
        seen = 0
        for frame in self.frames(run):
            match = re.fullmatch(r"storm_(\d+)", frame["name"])
            if match is None:
                continue
            n = int(match[1])
            seen += 1
            self.assertTrue(1 <= n <= made, frame)
            expected = (f"(storm {n})", n % 7 * 1000 + 1) if n % 2 == 0 else ("methods_storm.rb", 17)
            self.assertEqual((os.path.basename(frame["file"]), frame["line"]), expected, frame)
        self.assertGreater(seen, 0)
        self.check_lines(run, made, lambda n: (n % 7 * 1000 + 1, n % 7 * 1001 + 8) if n % 2 == 0 else None)
        unnamed, samples = run.capture().counters["unnamed_frames"], len(run.capture().samples)
        self.at_most("frames without a name", unnamed, 0.01 * samples + 5)

    def test_storm(self):
        self.check_storm(1.2)

    def test_stress(self):
        self.check_storm(1.0, "stress")

    def test_compaction(self):
        self.check_storm(1.0, "compact")


if __name__ == "__main__":
    check.main()
