# SPDX-License-Identifier: MIT
"""Lua's functions by name: in Debian's interpreters, which have Lua linked in, and in a program with the shared library."""
import os
import re
import shutil
import subprocess

from shares import check
import shares

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = "/usr/lib/x86_64-linux-gnu"


class Case(shares.Shares):
    def command(self, name, *options):
        """An interpreter, or the program that is linked with the shared library: "shared 5.3"."""
        if name.startswith("shared "):
            path = check.program("lua_script" + name.split()[1].replace("5.4", ""))
            check.need(os.path.exists(path), f"{os.path.basename(path)} was not built: the library or its headers are not installed")
            return [path]
        return [self.installed(name), *options]


class Functions(Case):
    def check_functions_of(self, *command, hz=1000, is_apart=False):
        command = self.command(*command)
        run = self.profile([*command, os.path.join(HERE, "functions.lua"), "1.0"], hz=hz, status=7)
        self.assertEqual(run.stderr, "")
        self.without_own(run)
        folded = run.folded()
        whole, found = sum(run.truth.functions.values()), folded.cumulative()
        for name, seconds in run.truth.functions.items():
            seen = found[{"field": "module.field", "method": "module:method"}.get(name, name)]
            self.near(name, seen, seconds, check.SHARE_TOLERANCE, samples=len(run.capture().samples), whole=whole)
        roots = ("main chunk", "body") if is_apart else ("main chunk",)
        self.at_least("seconds that reach the script's root",
                      sum(seconds for stack, seconds in folded.stacks if stack[0] in roots), 0.99 * whole)
        stacks = [stack for stack, _ in folded.stacks]
        self.assertIn(["main chunk", "pcall", "global_one"], [stack[:3] for stack in stacks])
        self.assertIn(["body", "within"] if is_apart else ["main chunk", "resume", "body", "within"], stacks)
        self.assertTrue(any(stack[:3] == ["main chunk", "sorts", "table.sort"] for stack in stacks), stacks)
        nameless = sum(seconds for stack, seconds in folded.stacks  # what C alone calls: finalizers of the library's own
                       if stack[0] == "main chunk" and any(re.search("lua.*[+]0x", frame) for frame in stack))
        self.at_most("seconds of functions without a name", nameless, 0.01 * whole)
        return run

    def check_places(self, run):
        """Each function is said to begin where it does."""
        with open(os.path.join(HERE, "functions.lua")) as file:
            lines = file.read().splitlines()
        seen = {frame["name"]: (os.path.basename(frame.get("file", "")), frame.get("line")) for frame in self.frames(run)}
        for name in ("module.field", "module:method", "plain", "global_one", "sorts", "within", "body"):
            first = next(at for at, text in enumerate(lines, 1) if re.search(rf"function {re.escape(name)}\(", text))
            self.assertEqual(seen[name], ("functions.lua", first), seen)
        self.assertEqual(seen["table.sort"][0], "[C]")

    def test_lua_54(self):
        self.check_places(self.check_functions_of("lua5.4", is_apart=True))

    def test_lua_53(self):
        self.check_places(self.check_functions_of("lua5.3", is_apart=True))

    def test_lua_51(self):
        self.check_places(self.check_functions_of("lua5.1", is_apart=True))

    def test_luajit_interpreter(self):
        self.check_places(self.check_functions_of("luajit", "-joff"))

    def test_luajit_compiled(self):
        self.check_places(self.check_functions_of("luajit"))

    def test_shared_54(self):
        self.check_functions_of("shared 5.4", is_apart=True)

    def test_shared_53(self):
        self.check_functions_of("shared 5.3", is_apart=True)

    def test_shared_51(self):
        self.check_functions_of("shared 5.1", is_apart=True)

    def test_shared_luajit(self):
        self.check_functions_of("shared jit")


class Stacks(Case):
    PROGRAM = ("local function deep(n) if n == 0 then local x = 0 for i = 1, 4e7 do x = x + i end return x end\n"
               "return 1 + deep(n - 1) end\ndeep(700)")

    def each(self, *names):
        for name in names:
            if shutil.which(name) is not None:
                with self.subTest(name):
                    yield shutil.which(name)

    def test_deep(self):
        """Of a stack that is too deep, the leaf and the root are kept."""
        deepest = {"lua5.4": 8000, "lua5.3": 60000, "lua5.1": 16000, "luajit": 9000}
        for path, depth in [(path, depth) for path in self.each(*deepest) for depth in (700, deepest[os.path.basename(path)])]:
            run = self.profile([path, "-e", self.PROGRAM.replace("700", str(depth))], healthy=False)
            stack = max(run.folded().stacks, key=lambda row: row[1])[0]
            self.assertEqual((stack.count("deep") > 400, stack[-1]), (True, "deep"))
            self.assertEqual("main chunk" in stack[:3], path.endswith("lua5.1") or depth < 8192 or "jit" in path, path)  # beyond, the root is not looked for

    def test_stripped(self):
        """Bytecode without names and lines."""
        program = ("local load = loadstring or load\nlocal function work() local x = 0 for i = 1, 3e7 do x = x + i end end\n"
                   "load(string.dump(work, true))()")
        for path in self.each("lua5.4", "lua5.3", "lua5.1", "luajit"):
            run = self.profile([path, "-e", program])
            self.assertEqual(run.stderr, "")
            self.assertTrue(any(stack[0] == "main chunk" for stack, _ in run.folded().stacks))

    def test_long_lists(self):
        """In 5.1 a count without an instruction follows some; where it is read as one, it has an index of anything."""
        program = ("local load = loadstring or load\nlocal function list(n, item) return '{' .. (item .. ','):rep(n) .. '}' end\n"
                   "for n = 511, 600 do load('return ' .. list(n * 50, n % 2 == 0 and 'true' or '7')) end\n"
                   "load('local t = ' .. list(546 * 50, 'true') .. '\\n"
                   "local function named() local x = 0 for i = 1, 3e7 do x = x + i end return x end\\nreturn 1 + named()')()\n")
        for path in self.each("lua5.4", "lua5.3", "lua5.1", "luajit"):
            run = self.profile([path, "-e", program])
            self.assertEqual(run.stderr, "")
            self.assertTrue(any(stack[-2:] == ["main chunk", "named"] for stack, _ in run.folded().stacks))

    def test_errors(self):
        """Errors that pass through calls leave no frames behind."""
        program = ("local function fails(n) if n == 0 then error('no') end fails(n - 1) end\n"
                   "local function work() local x = 0 for i = 1, 1e7 do x = x + i % 3 end return x end\n"
                   "for i = 1, 5 do pcall(fails, 30) pcall(coroutine.wrap(fails), 30) work() end\n")
        for path in self.each("lua5.4", "lua5.3", "lua5.1", "luajit"):
            stacks = self.profile([path, "-e", program]).folded().stacks
            self.assertEqual({tuple(stack) for stack, _ in stacks if "work" in stack}, {("main chunk", "work")})

    def test_native(self):
        """Functions in C of a library stand where Lua calls them, the interpreter's own do not."""
        run = self.profile([*self.command("shared 5.4"), os.path.join(HERE, "functions.lua"), "0.7"], status=7, options=["--native"])
        inside = [stack for stack, _ in run.folded().stacks if "sorts" in stack]
        self.assertTrue(inside)
        for stack in inside:
            self.assertFalse(any(frame.startswith("liblua5.4") for frame in stack[stack.index("main chunk"):]), stack)
            self.assertLess(stack.index("main"), stack.index("main chunk"))


class Apart(Case):
    def check_work(self, how, share):
        run = self.profile(self.prepare(["lua_apart", how]), healthy=how == "threads")
        self.assertEqual(run.stderr, "")
        found = [(stack[stack.index("main chunk"):] if "main chunk" in stack else stack, seconds) for stack, seconds in run.folded().stacks]
        self.at_least("seconds of functions by name", sum(seconds for stack, seconds in found if stack == ["main chunk", "pcall", "work"]),
                      share * sum(seconds for _, seconds in found))

    def test_fibers(self):
        """A call ends within one that began later, on another stack, which outlives it."""
        self.check_work("fibers", 0.9)

    def test_threads(self):
        """The first calls into Lua begin at once."""
        self.check_work("threads", 0.8)


class Resumed(Case):
    def test_as_alone(self):
        """What Lua refuses, and what it starts, is what it is without greenprof, errno too."""
        for name in "lua5.4", "lua5.3", "lua5.1", "luajit", "shared 5.4", "shared 5.3", "shared 5.1", "shared jit", "shared _static":
            command = [*self.command(name), os.path.join(HERE, "resumed.lua"), "0"]
            output = self.outcome_text(command)
            run = self.profile(command, status=7, healthy=False)
            self.assertEqual((run.stdout, run.stderr), (output, ""), name)
            self.assertIn("inner\tfalse\tcannot resume", output, name)
            self.assertEqual("called\t" in output, name.startswith("shared"), name)


class Refused(Case):
    """What is not as it should be is not read: native frames, and one sentence."""

    def test_another_line(self):
        """Lua says something else of a frame than what is read there: its lua_getstack() says that there is none."""
        library = f"{LIBRARIES}/liblua5.4.so.0"
        check.need(os.path.exists(library), "there is no shared Lua 5.4")
        symbols = subprocess.run(["nm", "-D", library], capture_output=True, text=True).stdout
        at = int(re.search(r"(?m)^([0-9a-f]+) T lua_getstack\b", symbols)[1], 16)
        with open(library, "rb") as file:
            code = bytearray(file.read())
        code[at:at + 3] = b"\x31\xc0\xc3"
        with open(os.path.join(self.directory, "liblua5.4.so.0"), "wb") as file:
            file.write(code)
        run = self.profile([*self.command("shared 5.4"), os.path.join(HERE, "functions.lua"), "0.3"], status=7,
                           environment={"LD_LIBRARY_PATH": self.directory})
        self.assertEqual(run.stderr, "")
        self.assertIn("Lua 5.4: does not keep its frames where it says, native frames only",
                      check.greenprof("report", run.output).stdout.decode())
        self.assertFalse(any("main chunk" in stack for stack, _ in run.folded().stacks))

    def test_older_luajit(self):
        """Tarantool 2.6 has a LuaJIT with references of 32 bits."""
        run = self.profile([self.installed("tarantool"), "-e", "local x = 0 for i = 1, 3e7 do x = x + i end os.exit(0)"], healthy=False)
        self.assertIn("LuaJIT: does not keep its state where it says, native frames only",
                      check.greenprof("report", run.output).stdout.decode())


class Storm(Case):
    def check_storm(self, *command):
        run = self.profile([*self.command(*command), os.path.join(HERE, "functions_storm.lua"), "0.8"], hz=10000, healthy=False)
        self.assertEqual(run.stderr, "")
        made, seen = int(run.stdout), 0
        for frame in self.frames(run):
            match = re.fullmatch(r"storm_(\d+)", frame["name"])
            if match is None:
                continue
            n, seen = int(match[1]), seen + 1
            self.assertTrue(1 <= n <= made, frame)
            self.assertEqual((frame.get("file"), frame.get("line")), (f"(storm {n})" if n % 2 == 0 else "same", n % 7 + 1), frame)
        self.assertGreater(seen, 0)
        self.assertGreater(self.check_lines(run, made, lambda n: (n % 7 + 1, n % 7 + n % 5 + 6)), 0)
        unnamed, samples = run.capture().counters["unnamed_frames"], len(run.capture().samples)
        self.at_most("frames without a name", unnamed, 0.01 * samples + 5)

    def test_lua_54(self):
        self.check_storm("lua5.4")

    def test_lua_53(self):
        self.check_storm("lua5.3")

    def test_lua_51(self):
        self.check_storm("lua5.1")

    def test_luajit(self):
        self.check_storm("luajit")

    def test_luajit_interpreter(self):
        self.check_storm("luajit", "-joff")


if __name__ == "__main__":
    check.main()
