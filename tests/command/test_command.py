# SPDX-License-Identifier: MIT
"""The greenprof command, from the outside.

usage: test_command.py GREENPROF MAKE_CAPTURE RECORDER.so WORK-DIRECTORY
"""
import os, pstats, random, re, shutil, signal, stat, subprocess

from support import GREENPROF, RECORDER, SCRIPT, Command, main, run


class Main(Command):
    def test_help(self):
        for arguments in (["--help"], ["help"], ["-h"]):
            self.assertIn("flamegraph", self.succeed(*arguments))
        for command in ("run", "report", "export", "flamegraph", "merge", "diff", "info"):
            self.assertIn(f"usage: greenprof {command}", self.succeed(command, "--help"))
            self.assertEqual(self.succeed(command, "-h"), self.succeed(command, "--help"))
            self.assertEqual(self.succeed("help", command), self.succeed(command, "--help"))
        self.assertEqual(self.succeed("help"), self.succeed("--help"))
        self.expect(2, "unknown command 'frobnicate'", "help", "frobnicate")
        self.assertIn("pstats", self.succeed("export", "--help"))

    def test_version(self):
        self.assertRegex(self.succeed("--version"), r"^greenprof \d+\.\d+\.\d+\n$")

    def test_few_libraries(self):
        """Each start pays for all libraries there are; the network's and their 34 are loaded by subcommands that need them."""
        lines = subprocess.run([GREENPROF], env={"LD_TRACE_LOADED_OBJECTS": "1"}, stdout=subprocess.PIPE, text=True).stdout
        loaded = set(re.findall(r"^\s+(lib[^ ]*)\.so", lines, re.M))
        self.assertIn("libc", loaded)
        of_sanitizers = {"libasan", "libtsan", "libubsan", "libstdc++", "libgcc_s"}
        self.assertLessEqual(loaded - of_sanitizers, {"libc", "libm", "libz", "liblzma", "libunwind", "libunwind-ptrace",
                                                      f"libunwind-{os.uname().machine}"})

    def test_usage_errors(self):
        self.assertEqual(run().returncode, 2)
        self.assertEqual(run("frobnicate").returncode, 2)
        for command in ("run", "report", "export", "flamegraph", "merge", "diff", "info"):
            self.assertEqual(run(command, "--frobnicate").returncode, 2)
            self.assertEqual(run(command).returncode, 2)
        self.assertIn("greenprof report: unrecognized option", run("report", "--frobnicate").stderr)

    def test_full_stdout(self):
        with open("/dev/full", "w") as full:
            for arguments in (["--help"], ["report", self.capture], ["export", self.capture, "--format", "folded"]):
                result = subprocess.run([GREENPROF, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual(result.returncode, 1)
                self.assertIn("greenprof: standard output: No space left on device", result.stderr)


class Export(Command):
    def folded(self, *arguments):
        return self.succeed("export", self.capture, "--format", "folded", *arguments).splitlines()

    def test_folded(self):
        self.assertEqual(self.folded(), ["server+0x20;[switching] 1003", "server+0x20;server+0x10 1002",
                                         "server+0x20;server+0x30;server+0x30 2005"])

    def test_options_before_file(self):
        before = self.succeed("export", "--format", "folded", "--by", "trace", self.capture)
        self.assertEqual(before.splitlines(), self.folded("--by", "trace"))
        self.assertEqual(self.succeed("export", "-f", "folded", "--", self.capture), "\n".join(self.folded()) + "\n")

    def test_by(self):
        self.assertEqual({line.split(";")[0] for line in self.folded("--by", "coroutine")},
                         {"[thread main]", "[coroutine 2 server+0x40]", "[coroutine 3 worker]"})
        self.assertEqual({line.split(";")[0] for line in self.folded("--by", "trace")},
                         {"[no trace]", "[trace 4bf92f3577b34da6a3ce929d0e0e4736]",
                          "[trace 00000000000000000000000000000001]"})

    def test_trace_filter(self):
        expected = ["server+0x20;[switching] 925", "server+0x20;server+0x30;server+0x30 925"]
        for text in ("4bf92f3577b34da6a3ce929d0e0e4736", "4BF92F3577B34DA6A3CE929D0E0E4736",
                     "4bf92f35-77b3-4da6-a3ce-929d0e0e4736",
                     "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"):
            self.assertEqual(self.folded("--trace", text), expected)

    def test_coroutine_filter(self):
        self.assertEqual(self.folded("--coroutine", "3"), ["server+0x20;server+0x30;server+0x30 2010"])
        self.assertEqual(self.folded("--coroutine", "3", "--trace", 31 * "0" + "1"),
                         ["server+0x20;server+0x30;server+0x30 1060"])

    def test_files(self):
        out = self.path("out.prof")
        self.succeed("export", self.capture, "--format", "pstats", "-o", out)
        self.assertAlmostEqual(pstats.Stats(out).total_tt, 0.00401, places=9)
        self.succeed("export", self.capture, "--format", "flamegraph", "-o", self.path("out.svg"))
        self.succeed("flamegraph", self.capture, "-o", self.path("same.svg"))
        with open(self.path("out.svg")) as one, open(self.path("same.svg")) as two:
            self.assertEqual(one.read(), two.read())
        self.assertEqual(sorted(os.listdir(self.directory)), ["out.prof", "out.svg", "same.svg", "test.greenprof"])

    def test_suffixes(self):
        """The suffix of the output is the format; one that is none's is refused, and no file is made."""
        for name in ("o.folded", "o.svg", "o.html", "O.HTM", "o.pb.gz", "o.pprof", "o.speedscope.json", "o.trace.json", "o.json", "o.prof"):
            self.succeed("export", self.capture, "-o", self.path(name))
        for name, start in (("o.html", "<!DOCTYPE"), ("O.HTM", "<!DOCTYPE"), ("o.svg", "<?xml"), ("o.trace.json", '{"displayTimeUnit"')):
            with open(self.path(name), encoding="utf-8") as file:
                self.assertEqual(file.read(len(start)).lower(), start.lower(), name)
        for name in ("g.html", "g.svg", "graph", "graph.1", ".hidden"):
            self.succeed("flamegraph", self.capture, "-o", self.path(name))
        before = sorted(os.listdir(self.directory))
        for name in ("x.png", "x.pdf", "x.svgz"):
            self.expect(2, f"no format has the suffix of '.*{name}'", "export", self.capture, "-o", self.path(name))
            self.expect(2, f"{name}: a page is written as .html", "diff", self.capture, self.capture, "-o", self.path(name))
        for name in ("x.png", "x.json", "x.pb.gz"):
            self.expect(2, f"{name}: a flame graph is written as .html, a page, or as .svg", "flamegraph", self.capture, "-o", self.path(name))
        self.assertEqual(sorted(os.listdir(self.directory)), before)

    def test_binary_to_pipe_but_not_to_terminal(self):
        data = run("export", self.capture, "--format", "pstats", text=False).stdout
        self.assertEqual(data[:1], b"{")
        master, slave = os.openpty()
        result = subprocess.run([GREENPROF, "export", self.capture, "--format", "pstats"], stdout=slave,
                                stderr=subprocess.PIPE, text=True)
        os.close(slave)
        os.close(master)
        self.assertEqual(result.returncode, 1)
        self.assertIn("terminal", result.stderr)

    def test_bad_options(self):
        file = self.capture
        result = self.expect(2, r"unknown format 'svg'", "export", file, "--format", "svg")
        for name in ("pstats", "folded", "flamegraph"):
            self.assertIn(name, result.stderr)
        self.expect(2, r"which --format", "export", file)
        self.expect(2, r"--by request", "export", file, "-f", "folded", "--by", "request")
        self.expect(2, r"--by function", "export", file, "-f", "folded", "--by", "function")
        self.expect(2, r"--clock noon", "export", file, "-f", "folded", "--clock", "noon")
        for text in ("", "1234", "zz" * 16, "0" * 32, "4bf92f3577b34da6a3ce929d0e0e473", "4bf92f3577b34da6a3ce929d0e0e47366",
                     "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
                     "4bf92f35-77b3-4da6-a3ce929d0e0e-4736"):
            self.expect(2, r"--trace", "export", file, "-f", "folded", "--trace", text)
        for text in ("", "0", "-1", "x", "1x", "99999999999999999999999"):
            self.expect(2, r"--coroutine", "export", file, "-f", "folded", "--coroutine", text)
        self.expect(2, "unexpected argument 'run'", "help", "report", "run")

    def test_what_is_not_there(self):
        file = self.capture
        self.expect(1, r"has no trace f{32}", "export", file, "-f", "folded", "--trace", "f" * 32)
        self.expect(1, r"has no coroutine 77", "export", file, "-f", "folded", "--coroutine", "77")
        self.succeed("export", file, "-f", "folded", "--clock", "cpu")
        self.succeed("export", file, "-f", "folded", "--clock", "wall")

    def test_unreadable(self):
        def export(error, path, *more):
            self.expect(1, rf"^greenprof: {re.escape(path)}: {error}", "export", path, "-f", "folded", *more)
            self.expect(1, rf"^greenprof: {re.escape(path)}: {error}", "report", path)
        export("No such file or directory", self.path("none"))
        export("Is a directory", self.directory)
        export("is not a greenprof capture", "/bin/sh")
        export("is empty", "/dev/null")
        with open(self.path("random"), "wb") as file:
            file.write(random.Random(1).randbytes(10000))
        export("is not a greenprof capture", self.path("random"))
        open(self.path("empty"), "w").close()
        export("is empty", self.path("empty"))
        export("is a capture of version 9", self.make("v9", "header version=9\n" + SCRIPT))
        export("was written by a newer greenprof: it needs features", self.make("features", "header features=0x40000000\n" + SCRIPT))
        if os.geteuid() != 0:
            os.chmod(self.capture, 0)
            export("Permission denied", self.capture)

    def test_unwritable(self):
        def export(error, out):
            self.expect(1, rf"^greenprof: {re.escape(out)}: {error}", "export", self.capture, "-f", "folded", "-o", out)
        export("No such file or directory", self.path("none/out"))
        export("Not a directory", self.capture + "/out")
        export("Is a directory", self.directory)
        export("No space left on device", "/dev/full")
        export("File name too long", self.path("n" * 300))
        if os.geteuid() != 0:
            os.chmod(self.directory, 0o500)
            self.addCleanup(os.chmod, self.directory, 0o700)
            export("Permission denied", self.path("out"))

    def test_existing_file_survives_failure(self):
        out = self.path("out")
        with open(out, "w") as file:
            file.write("old")
        self.expect(1, "is not a greenprof capture", "export", "/bin/sh", "-f", "folded", "-o", out)
        with open(out) as file:
            self.assertEqual(file.read(), "old")

    def test_what_is_read_is_not_replaced(self):
        with open(self.capture, "rb") as file:
            data = file.read()
        os.symlink(self.capture, self.path("symbolic"))
        os.link(self.capture, self.path("hard"))
        other = self.make("other", SCRIPT.replace("meta exe", "header pid=7\nmeta exe"))
        for out in (self.capture, os.path.relpath(self.capture, self.directory), self.path("symbolic"), self.path("hard")):
            for command in (["export", "-f", "folded"], ["flamegraph"], ["diff", other], ["export", "-f", "pstats", other]):
                self.expect(1, "is an input and cannot be the output too", *command, self.capture, "-o", out, cwd=self.directory)
        with open(self.capture, "rb") as file:
            self.assertEqual(file.read(), data)

    def test_damage_is_a_warning(self):
        damaged = self.make("damaged", SCRIPT.replace("stack 1 0", "bad\nstack 1 0"))
        result = run("export", damaged, "-f", "folded")
        self.assertEqual(result.returncode, 0)
        self.assertIn(f"greenprof: {damaged}: damaged: 1 bad places, 1 chunks missing", result.stderr)
        self.assertEqual(result.stdout, "[lost stack] 4010\n")  # the time is still there

    def test_every_truncation(self):
        with open(self.capture, "rb") as file:
            data = file.read()
        cut = self.path("cut")
        for size in range(0, len(data), 37):
            with open(cut, "wb") as file:
                file.write(data[:size])
            result = run("export", cut, "-f", "folded")
            self.assertEqual(result.returncode, 0 if size >= 128 else 1, result.stderr)

    def test_another_build_is_a_warning(self):
        file = self.make("other", "module 1 /bin/sh 00112233445566778899 0 0 0\nstack 1 0 1:3000\nsample 1 1000000 1 1 1 0\n")
        for arguments in (["report", file], ["export", file, "-f", "folded"]):
            result = run(*arguments)
            self.assertEqual(result.returncode, 0)
            self.assertIn("greenprof: /bin/sh: is another build", result.stderr)
            self.assertIn("sh+0x3000", result.stdout)

    def test_no_samples(self):
        file = self.make("none", "counters 5000 1234000 0 0 0\n")
        self.assertEqual(self.succeed("export", file, "-f", "folded"), "[no samples] 1234\n")
        self.succeed("export", file, "-f", "pstats", "-o", self.path("none.prof"))
        self.assertAlmostEqual(pstats.Stats(self.path("none.prof")).total_tt, 0.001234)
        self.assertIn("0.001 s exact, 0.000 s sampled", self.succeed("report", file))
        nothing = self.make("nothing", "meta exe x\n")
        self.assertEqual(self.succeed("export", nothing, "-f", "folded"), "")
        self.succeed("report", nothing)
        self.succeed("flamegraph", nothing)

    def test_signal_leaves_nothing(self):
        out = self.path("out.svg")
        script = "".join(f"stack {i} 0 " + " ".join(f"1:{i * j:x}" for j in range(1, 400)) + f"\nsample {i} 1000 1 1 {i} 0\n"
                         for i in range(1, 200))
        big = self.make("big", "module 1 /opt/app/server - 0 0 0\n" + script)
        for _ in range(10):  # wherever it is when the signal comes, there is all or nothing
            with subprocess.Popen([GREENPROF, "flamegraph", big, "-o", out]) as process:
                while process.poll() is None and len(os.listdir(self.directory)) == 2:
                    pass
                process.terminate()
            self.assertIn(process.returncode, (0, -signal.SIGTERM))
            self.assertEqual([name for name in os.listdir(self.directory) if name.startswith(".")], [])
            if os.path.exists(out):
                os.unlink(out)

    def test_closed_pipe(self):
        with subprocess.Popen([GREENPROF, "export", self.capture, "-f", "folded"], stdout=subprocess.PIPE) as process:
            process.stdout.close()
        self.assertIn(process.returncode, (0, 1, -signal.SIGPIPE))


class Report(Command):
    def rows(self, *arguments):
        lines = self.succeed("report", self.capture, *arguments).splitlines()
        start = next(number for number, line in enumerate(lines) if "ncalls" in line)
        return [line.split() for line in lines[start + 1:] if line.strip()]

    def test_header(self):
        text = self.succeed("report", self.capture)
        for part in ("/opt/app/server (pid 4242)", "2026-09-21", "0.004 s, asked for 1000 Hz, perf clock",
                     "0.004 s exact, 0.004 s sampled (-0.25 %, chance gives +-97.76 %)", "samples    4 (997.5 a second",
                     "3 dropped, the collector could not keep up", "2 dropped, signal of another timer",
                     "1 inside a switch routine", "Ordered by: internal time"):
            self.assertIn(part, text)
        self.assertNotIn("has no end", text)
        self.assertIn("has no end", self.succeed("report", self.make("killed", SCRIPT.replace("end 4200000 0", ""))))

    def test_functions(self):
        rows = {row[-1]: row[:-1] for row in self.rows()}
        self.assertEqual(rows["/opt/app/server:0(server+0x30)"], ["4/2", "0.002", "0.001", "0.002", "0.001"])
        self.assertEqual(rows["/opt/app/server:0(server+0x20)"], ["4", "0.000", "0.000", "0.004", "0.001"])
        self.assertEqual(rows["[switching]"], ["1", "0.001", "0.001", "0.001", "0.001"])

    def test_sort(self):
        order = lambda key: [row[-1] for row in self.rows("--sort", key)]
        self.assertEqual(order("time")[0], "/opt/app/server:0(server+0x30)")
        self.assertEqual(order("cumulative")[0], "/opt/app/server:0(server+0x20)")
        self.assertEqual(order("pcalls")[0], "/opt/app/server:0(server+0x20)")
        self.assertEqual(order("name")[0], "[switching]")
        for key, meaning in (("cumul", "cumulative time"), ("cumt", "cumulative time"), ("cum", "cumulative time"),
                             ("tot", "internal time"), ("t", "internal time"), ("p", "primitive call count"),
                             ("ca", "call count"), ("nc", "call count"), ("fi", "file name"), ("m", "file name"),
                             ("l", "line number"), ("na", "function name"), ("nf", "name/file/line"), ("s", "standard name"),
                             ("-1", "standard name"), ("0", "call count"), ("1", "internal time"), ("2", "cumulative time"),
                             ("calls,name", "call count, function name")):
            self.assertIn(f"Ordered by: {meaning}\n", self.succeed("report", self.capture, f"--sort={key}"))
        for key in ("c", "n", "x", "times", "3", "time,x"):
            self.expect(2, "unknown or ambiguous key", "report", self.capture, "--sort", key)

    def test_limit(self):
        self.assertEqual(len(self.rows("-n", "2")), 2)
        self.assertEqual(len(self.rows("-n", "0")), 4)
        self.assertIn("List reduced from 4 to 2", self.succeed("report", self.capture, "-n", "2"))
        for number in ("-1", "x", "1.5", ""):
            self.expect(2, "-n", "report", self.capture, "-n", number)

    def test_coroutines(self):
        self.assertEqual(self.groups("coroutine"), [
            ["0.002", "0.002", "2", "4", "3", "2", "traces", "worker"],
            ["0.001", "0.001", "1", "7", "1", "-", "[thread", "main]"],
            ["0.001", "0.001", "1", "2", "2", "4bf92f3577b34da6a3ce929d0e0e4736", "server+0x40"]])
        self.assertEqual(self.groups("coroutine", "--trace", 31 * "0" + "1"),
                         [["0.001", "0.001", "1", "1", "3", "2", "traces", "worker"]])
        self.assertEqual(self.groups("coroutine", "--sort", "name")[0][-1], "main]")

    def test_traces(self):
        self.assertEqual(self.groups("trace"), [
            ["0.002", "0.002", "2", "5", "~0.001", "2", "4bf92f3577b34da6a3ce929d0e0e4736"],
            ["0.001", "0.001", "1", "7", "-", "1", "no", "trace"],
            ["0.001", "0.001", "1", "1", "~0.000", "1", "00000000000000000000000000000001"]])

    def test_names_do_not_steer_the_terminal(self):
        file = self.make("evil", "coro 5 0 - 0 0 2 0 a\x1b]0;x\x07b\xc2\x9bm\nsample 1 5 5 0 0 0\n")
        for by in ("coroutine", "function"):
            self.assertNotRegex(self.succeed("report", file, "--by", by), "[\x00-\x09\x0b-\x1f\x7f-\x9f]")


class Run(Command):
    def setUp(self):
        super().setUp()
        self.record = self.path("record")
        self.environment = {**os.environ, "GREENPROF_CORE": RECORDER, "RECORDER_FILE": self.record}
        self.environment.pop("LD_PRELOAD", None)

    def start(self, *arguments, **options):
        return run("run", *arguments, cwd=self.directory, env=self.environment, **options)

    def refuse(self, status, error, *arguments):
        self.expect(status, error, "run", *arguments, cwd=self.directory, env=self.environment)

    def recorded(self):
        with open(self.record) as file:
            return dict(line.rstrip("\n").split("=", 1) for line in file)

    def test_environment(self):
        result = self.start("-o", "out.greenprof", "-F", "99", "--engine", "cpu", "--", "sh", "-c", "echo $$; exit 7")
        self.assertEqual(result.returncode, 7)
        found = self.recorded()
        self.assertEqual(found["pid"], result.stdout.strip())
        self.assertEqual(found["GREENPROF_OUTPUT"], self.path("out.greenprof"))
        self.assertEqual(found["GREENPROF_FREQUENCY"], "99")
        self.assertEqual(found["GREENPROF_ENGINE"], "cpu")
        self.assertRegex(found["GREENPROF_SESSION"], r"^[0-9a-f]{32}$")
        self.assertEqual(found["GREENPROF_PID"], found["pid"])
        self.assertEqual(found["LD_PRELOAD"], RECORDER)

    def test_defaults(self):
        self.assertEqual(self.start("/bin/true", "-o", "x").returncode, 0)  # -o is the program's
        found = self.recorded()
        self.assertEqual(found["GREENPROF_OUTPUT"], self.path("true.greenprof"))
        self.assertEqual(found["GREENPROF_FREQUENCY"], "1000")
        self.assertEqual(found["GREENPROF_ENGINE"], "(unset)")

    def test_sessions_differ(self):
        self.start("true")
        first = self.recorded()["GREENPROF_SESSION"]
        os.unlink(self.record)
        self.start("true")
        self.assertNotEqual(self.recorded()["GREENPROF_SESSION"], first)

    def test_other_preload_is_kept(self):
        other = self.path("other.so")
        shutil.copy(RECORDER, other)
        self.environment["LD_PRELOAD"] = other
        self.environment["ASAN_OPTIONS"] = "verify_asan_link_order=0"  # where the command is built with it
        self.start("true")
        self.assertEqual(self.recorded()["LD_PRELOAD"], RECORDER + ":" + other)

    def test_percent_p_is_the_library_s(self):
        self.start("-o", "%p.out", "true")
        self.assertEqual(self.recorded()["GREENPROF_OUTPUT"], self.path("%p.out"))

    def test_exit_by_signal(self):
        self.assertEqual(self.start("sh", "-c", "kill -TERM $$").returncode, -signal.SIGTERM)

    def test_arguments_arrive(self):
        text = self.start("-F1", "--", "printf", "%s|", "a b", "--help", "-n", "").stdout
        self.assertEqual(text, "a b|--help|-n||")

    def test_frequency(self):
        for text in ("0", "20001", "1000000000", "-5", "1.5", "x", "", "100Hz", "1e3", " 5", "99999999999999999999"):
            self.refuse(2, "1 to 20000", "-F", text, "true")
        for text in ("1", "20000"):
            self.assertEqual(self.start("-F", text, "true").returncode, 0)

    def test_depth(self):
        for text in ("0", "1", "513", "-2", "x", ""):
            self.refuse(2, "2 to 512", "--depth", text, "true")
        echo = 'printf "%s" "$GREENPROF_DEPTH"'
        self.assertEqual(self.start("--depth", "20", "sh", "-c", echo).stdout, "20")
        self.assertEqual(self.start("sh", "-c", echo).stdout, "")

    def test_output(self):
        self.refuse(1, "No such file or directory", "-o", "none/out", "true")
        self.refuse(1, "Not a directory", "-o", self.capture + "/out", "true")
        self.refuse(1, "Is a directory", "-o", self.directory, "true")
        self.refuse(1, "Is a directory", "-o", self.directory + "/", "true")
        self.refuse(1, "not a regular file", "-o", "/dev/null", "true")
        self.refuse(1, "needs a file", "-o", "-", "true")
        self.refuse(1, "needs a file", "-o", "", "true")
        if os.geteuid() != 0:
            os.chmod(self.directory, 0o500)
            self.addCleanup(os.chmod, self.directory, 0o700)
            self.refuse(1, "Permission denied", "-o", "out", "true")

    def test_program(self):
        self.refuse(127, "command not found", "no-such-program")
        self.refuse(127, "No such file or directory", "./no-such-program")
        self.refuse(126, "Permission denied", self.capture)
        self.refuse(126, "Is a directory", self.directory)
        self.refuse(127, "command not found", "")
        script = self.path("script")
        with open(script, "w") as file:
            file.write("#!/bin/sh\nexit 3\n")
        self.refuse(126, "Permission denied", "./script")
        os.chmod(script, 0o755)
        self.assertEqual(self.start("./script").returncode, 3)

    def test_clock_and_engine(self):
        self.refuse(2, "cpu or wall", "--clock", "noon", "true")
        self.refuse(2, "perf, cpu or monotonic", "--engine", "steam", "true")
        for clock in ("cpu", "wall"):
            self.assertEqual(self.start("--clock", clock, "true").returncode, 0)

    def test_static_program(self):
        source, program = self.path("static.c"), self.path("static")
        with open(source, "w") as file:
            file.write("int main(void) { return 0; }\n")
        if subprocess.run(["cc", "-static", "-o", program, source], capture_output=True).returncode != 0:
            self.skipTest("no static C library")
        self.refuse(1, "statically linked", "./static")

    def test_privileged_program(self):
        for bit, word in ((stat.S_ISUID, "set-user-ID"), (stat.S_ISGID, "set-group-ID")):
            copy = self.path(word)
            shutil.copy("/bin/true", copy)
            os.chmod(copy, 0o755 | bit)
            self.refuse(1, word, copy)

    def test_library(self):
        self.environment["GREENPROF_CORE"] = self.path("none.so")
        self.refuse(1, "GREENPROF_CORE: No such file", "true")
        os.mkdir(self.path("a b"))
        shutil.copy(RECORDER, self.path("a b/core.so"))
        self.environment["GREENPROF_CORE"] = self.path("a b/core.so")
        self.refuse(1, "cannot be preloaded", "true")

    def test_installed_layout(self):
        os.makedirs(self.path("prefix/bin"))
        os.makedirs(self.path("prefix/lib"))
        shutil.copy(GREENPROF, self.path("prefix/bin/greenprof"))
        del self.environment["GREENPROF_CORE"]
        command = [self.path("prefix/bin/greenprof"), "run", "true"]
        alone = subprocess.run(command, cwd=self.directory, env=self.environment, capture_output=True, text=True)
        self.assertEqual(alone.returncode, 1)
        self.assertIn("libgreenprof-core.so.0: not found", alone.stderr)
        shutil.copy(RECORDER, self.path("prefix/lib/libgreenprof-core.so.0"))
        subprocess.run(command, cwd=self.directory, env=self.environment, check=True)
        self.assertEqual(self.recorded()["LD_PRELOAD"], self.path("prefix/lib/libgreenprof-core.so.0"))


if __name__ == "__main__":
    main()
