# SPDX-License-Identifier: MIT
"""PHP's functions by name, on each stack that they run on."""
import os
import re
import subprocess

from shares import check
import shares

HERE = os.path.dirname(os.path.abspath(__file__))
JIT = ("-d", "opcache.enable_cli=1", "-d", "opcache.jit_buffer_size=32M", "-d")
MODES = {"plain": ("-d", "opcache.enable_cli=0"), "opcache": ("-d", "opcache.enable_cli=1", "-d", "opcache.jit=off"),
         "tracing": (*JIT, "opcache.jit=tracing"), "function": (*JIT, "opcache.jit=function")}


class Case(shares.Shares):
    def php(self, mode="plain"):
        """A PHP whose frames are known."""
        path = self.installed("php")
        version = subprocess.run([path, "-r", "echo PHP_VERSION;"], capture_output=True, text=True).stdout
        check.need(version.startswith("8.2."), f"the frames of PHP {version} are not known")
        cached = subprocess.run([path, "-m"], capture_output=True, text=True).stdout
        check.need(mode == "plain" or "OPcache" in cached, "there is no opcache")
        return [path, *MODES[mode]]

    def write(self, name, text):
        with open(os.path.join(self.directory, name), "w") as file:
            file.write(text)
        return os.path.join(self.directory, name)


class Functions(Case):
    def check_mode(self, mode):
        run = self.profile([*self.php(mode), os.path.join(HERE, "functions.php"), 2.0], status=7)
        self.without_own(run)
        found, whole = run.folded().cumulative(), sum(run.truth.functions.values())
        for name, seconds in run.truth.functions.items():
            self.near(name, found[name], seconds, check.SHARE_TOLERANCE, samples=len(run.capture().samples), whole=whole)
        self.assertEqual(run.stderr, "")
        self.check_reach(run, whole)
        self.check_places(run)

    def check_reach(self, run, whole):
        """What runs in the program names its functions, from the leaf to where its stack begins."""
        stacks = run.folded("--by", "coroutine").stacks
        reach = sum(seconds for stack, seconds in stacks if stack[1] == "{main}" or
                    stack[0].startswith("[coroutine") and re.match(r"{closure:functions.php:\d+}", stack[1]))
        self.at_least("seconds that reach the script's root", reach, 0.99 * whole)
        for stack, _ in stacks:
            own = [frame for frame in stack if re.search("_fiber$", frame)]
            self.assertFalse(own != [] and not stack[0].startswith("[coroutine"), stack)
            self.assertLessEqual(len(own), 1, stack)

    def check_places(self, run):
        """Each function is said to begin where it does; what it is called, in which class, and by which generators."""
        with open(os.path.join(HERE, "functions.php")) as file:
            lines = file.read().splitlines()
        seen = {frame["name"]: (os.path.basename(frame.get("file", "")), frame.get("line")) for frame in self.frames(run)}
        for name in ("App\\plain", "App\\spin", "App\\Work::step", "App\\Work::shared", "App\\Work::sorts", "App\\Work::__call",
                     "App\\numbers", "App\\delegates", "App\\first_fiber"):
            first = next(at for at, text in enumerate(lines, 1) if re.search(rf"function {re.split(r'::|' + chr(92) * 2, name)[-1]}\(", text))
            self.assertEqual(seen[name], ("functions.php", first), seen)
        self.assertEqual(seen["sort"][0], "[C]")
        stacks = [stack for stack, _ in run.folded().stacks]
        inside = [stack for stack in stacks if "App\\numbers" in stack and stack[0] != "[incomplete]"]
        for stack in inside:
            self.assertEqual(stack[:3], ["{main}", "App\\generated", "App\\booked"])
            self.assertRegex(stack[3], r"^{closure:functions.php:\d+}$")
        self.at_least("stacks of the generator that delegates",
                      sum(stack[4:6] == ["App\\delegates", "App\\numbers"] for stack in inside), 0.5 * len(inside))

    def test_plain(self):
        self.check_mode("plain")

    def test_opcache(self):
        self.check_mode("opcache")

    def test_tracing(self):
        self.check_mode("tracing")

    def test_function(self):
        self.check_mode("function")


class Stacks(Case):
    CODE = "function work() { for ($i = 0, $x = 0; $i < 5000000; $i++) $x += $i; return $x; }\n"

    def test_names(self):
        """Code outside of functions, of files and of texts; methods of classes without a name, and closures."""
        self.write("inner.php", "<?php\nwork();\n")
        path = self.write("names.php", "<?php\n" + self.CODE + "include 'inner.php';\neval(\"\\nwork();\");\n"
                          "(new class { function named() { work(); } })->named();\n(function () {\n  work(); })();\n")
        stacks = {tuple(stack) for stack, _ in self.profile([*self.php(), path]).folded().stacks if stack[-1] == "work"}
        self.assertEqual(stacks, {("{main}", "include inner.php", "work"), ("{main}", "eval names.php(4) : eval()'d code", "work"),
                                  ("{main}", "class@anonymous::named", "work"), ("{main}", "{closure:names.php:6}", "work")})

    def test_deep(self):
        """Of a stack that is too deep, the leaf and the root are kept."""
        for depth in (700, 8000, 60000):
            path = self.write("deep.php", "<?php\n" + self.CODE +
                              f"function deep($n) {{ return $n == 0 ? work() + work() : 1 + deep($n - 1); }}\ndeep({depth});\n")
            run = self.profile([*self.php(), path], healthy=False)
            stack = max((row for row in run.folded().stacks if row[0][-1] == "work"), key=lambda row: row[1])[0]
            self.assertGreater(stack.count("deep"), 400)
            self.assertEqual("{main}" in stack[:3], depth <= 8000, stack[:3])  # beyond, the root is not looked for

    def test_waits(self):
        """A Fiber that waits shows where, once it goes on; and so does who waits for it."""
        path = self.write("waits.php", "<?php\n" + self.CODE + "function waits() { Fiber::suspend(); }\n"
                          "$fiber = new Fiber(function () { for ($i = 0; $i < 8; $i++) { waits(); work(); } });\n"
                          "$fiber->start();\nwhile (!$fiber->isTerminated()) { work(); $fiber->resume(); }\n")
        run = self.profile([*self.php(), path], options=["--clock", "wall"])
        waits = [stack[1:-1] for stack, _ in run.folded("--clock", "wall", "--by", "coroutine").stacks
                 if stack[-1] in ("[parked]", "[waiting]") and (stack[0].startswith("[coroutine") or "{main}" in stack)]
        self.assertIn(["{closure:waits.php:4}", "waits", "Fiber::suspend"], waits)
        for stack in waits:
            self.assertIn(stack, (["{closure:waits.php:4}", "waits", "Fiber::suspend"], ["{main}", "Fiber::resume"]))

    def test_native(self):
        """C libraries' frames stand where they were called, the engine's own do not."""
        path = self.write("packs.php", "<?php\nfunction packs($text) { return gzcompress($text, 9); }\n"
                          "$text = implode(range(0, 200000));\nfor ($i = 0; $i < 8; $i++) packs($text);\n")
        run = self.profile([*self.php(), path], options=["--native"])
        deep = [stack for stack, _ in run.folded().stacks if "packs" in stack and any("libz" in f or "deflate" in f for f in stack)]
        self.assertTrue(deep)
        for stack in deep:
            at = stack.index("{main}")
            self.assertEqual(stack[at:at + 3], ["{main}", "packs", "gzcompress"])
            self.assertFalse(any("php" in frame or frame == "execute_ex" for frame in stack), stack)

    def test_other_threads(self):
        """A signal on a thread that is not the engine's, which has none here but greenprof's: a child's is."""
        path = self.write("forks.php", "<?php\n" + self.CODE + "function child() { work(); }\n"
                          "$pid = pcntl_fork();\nif ($pid == 0) { child(); exit(0); }\npcntl_waitpid($pid, $status);\nwork();\n")
        php = self.php()
        check.need("pcntl" in subprocess.run([php[0], "-m"], capture_output=True, text=True).stdout, "there is no pcntl")
        self.profile([*php, path])
        paths = [os.path.join(self.directory, name) for name in os.listdir(self.directory) if ".greenprof" in name]
        texts = [check.greenprof("export", path, "--format", "folded").stdout.decode() for path in paths]
        self.assertTrue(any("{main};child;work" in text for text in texts), texts)


class Refused(Case):
    """What is not known, or is not as it should be, is not read: native frames, and one sentence."""

    def changed(self, find, code):
        """The interpreter, with other bytes somewhere."""
        real = os.path.realpath(self.php()[0])
        with open(real, "rb") as file:
            whole = bytearray(file.read())
        at = find(whole, subprocess.run(["nm", "-D", real], capture_output=True, text=True).stdout)
        whole[at:at + len(code)] = code
        path = os.path.join(self.directory, "php")
        with open(path, "wb") as file:
            file.write(whole)
        os.chmod(path, 0o755)
        return path

    def check_refused(self, path, *sentences):
        script = self.write("work.php", "<?php\n" + Stacks.CODE + "echo work();\n")
        run = self.profile([path, script])
        self.assertEqual((run.stdout, run.stderr), ("12499997500000", ""))
        for sentence in sentences:
            self.assertIn(sentence, check.greenprof("report", run.output).stdout.decode())
        stacks = [stack for stack, _ in run.folded().stacks]
        self.assertFalse(any("work" in stack or "{main}" in stack for stack in stacks), stacks)
        self.assertTrue(any("execute_ex" in stack for stack in stacks))

    def test_another_line(self):
        """The engine says something else of a frame than what is read there."""
        self.check_refused(self.changed(lambda _, symbols: int(re.search("(?m)^([0-9a-f]+) T zend_get_executed_lineno$", symbols)[1], 16),
                                        b"\x31\xc0\xc3"), "PHP 8.2: does not keep its frames where it says, native frames only")

    def test_another_version(self):
        path = self.changed(lambda whole, _: whole.index(b"Zend Engine v4.2."), b"Zend Engine v4.9.")
        self.check_refused(path, "PHP: Zend Engine v4.9.")

    def test_runtimes(self):
        said = check.greenprof("runtimes", self.php()[0]).stdout.decode()
        self.assertRegex(said, r"(?m)^PHP's functions +php: entry patch of php_request_startup, by 'greenprof run'$")


class Storm(Case):
    def check_storm(self, mode):
        run = self.profile([*self.php(mode), os.path.join(HERE, "functions_storm.php"), 0.8], hz=10000, healthy=False)
        self.assertEqual(run.stderr, "")
        made, seen = int(run.stdout), 0
        for frame in self.frames(run):
            match = re.fullmatch(r"(?:class@anonymous::)?storm_(\d+)", frame["name"])
            closure = re.fullmatch(r"{closure:functions_storm.php(.*):(\d+)}", frame["name"])
            if closure is not None:
                self.assertIn(int(closure[2]), range(1, 8) if closure[1] else (3,), frame)
            if match is None:
                self.assertNotIn("storm_", frame["name"].split("{")[0], frame)
                continue
            n, seen = int(match[1]), seen + 1
            self.assertTrue(1 <= n <= made, frame)
            self.assertRegex(frame["file"], r"functions_storm\.php\(\d+\) : eval\(\)'d code$")
            self.assertEqual(frame["line"], n % 7 + 1, frame)
        self.assertGreater(seen, 0)
        self.assertGreater(self.check_lines(run, made, lambda n: (n % 7 + 1, n % 7 + n % 5 + 6), r"(?:class@anonymous::)?storm_(\d+)"), 0)
        unnamed, samples = run.capture().counters["unnamed_frames"], len(run.capture().samples)
        self.at_most("frames without a name", unnamed, 0.01 * samples + 5)

    def test_plain(self):
        self.check_storm("plain")

    def test_tracing(self):
        self.check_storm("tracing")


if __name__ == "__main__":
    check.main()
