# SPDX-License-Identifier: MIT
"""What is not known, not there or not meant is said, and not shown as a 0.

usage: test_messages.py GREENPROF MAKE_CAPTURE RECORDER.so WORK-DIRECTORY
"""
import glob, json, os, re, stat, subprocess, unittest

from support import Command, GREENPROF, SCRIPT, main, run

BLIND = """
module 1 /opt/app/server 0102 0x1000 0x9000 0x0
thread 1 10 1 0 main
coro 1 0 - 0 0 1 1 -
coro 2 1 - 0 0 2 0 -
stack 1 0 1:1010
sample 1000000 1000000 2 1 1 0
ledger 2 0 1000000 9 2000000 1000000 0 {ready} {parked} {waiting} 1000000
counters 4100000 1000000 10000 9 1
end 4200000 0
"""


class Unknown(Command):
    def test_delays_without_a_word_of_readiness(self):
        """Of coroutines that nothing calls ready it is not known that none was delayed."""
        capture = self.make("blind", BLIND.format(ready=0, parked=0, waiting=5000000))
        text = self.succeed("report", capture, "--by", "victim-time")
        self.assertIn("delays     not known: nothing says when a coroutine became ready; a scheduler does by prof_coro_ready()", text)
        self.assertNotIn("0.000 s", text.partition("delays")[2])
        self.assertNotIn("delayed", text)
        out = self.path("out")
        for command in (["flamegraph"], ["export", "-f", "folded"], ["export", "-f", "pstats", "-o", out], ["flamegraph", "-o", out]):
            self.expect(1, "delays are not known: .*prof_coro_ready", *command, capture, "--by", "victim-time")
        known = json.loads(self.succeed("export", capture, "-f", "json", "--by", "victim-time"))
        self.assertEqual([known[name] for name in ("measure", "total_ns", "samples", "rows")], ["delay", None, None, []])

    def test_delays_that_are_none(self):
        for ready, parked, told in ((0, 1000, ""), (1000, 0, "sample 2000000 1000 2 1 1 0 3\n")):
            script = BLIND.format(ready=ready, parked=parked, waiting=0).replace("counters", told + "counters")
            capture = self.make("seen", script)
            self.assertIn("delays     0.000 s that others", self.succeed("report", capture, "--by", "victim-time"))
            known = json.loads(self.succeed("export", capture, "-f", "json", "--by", "victim-time"))
            self.assertEqual([known[name] for name in ("total_ns", "samples")], [0, 0])

    def test_losses_of_the_whole_capture(self):
        """Losses are counted for the process: beside a part of it they are said to be."""
        part = self.succeed("report", self.capture, "--coroutine", "2")
        self.assertRegex(part, r"  part       --coroutine 2\n")
        self.assertRegex(part, r"  of the whole capture, not of this part:\n +3 dropped")
        self.assertNotIn("of the whole", self.succeed("report", self.capture))
        lossless = SCRIPT.replace("9 4 3 0 2 0 0 1", "4 4 0 0 0 0 0 0")
        self.assertNotIn("of the whole", self.succeed("report", self.make("lossless", lossless), "--coroutine", "2"))

    def test_wall_clock_of_threads(self):
        """What is not in it is said with it."""
        text = "threads    have no sleep in it: where their own stacks sleep is recorded with run --clock wall"
        self.assertIn(text, self.succeed("report", self.capture, "--clock", "wall"))
        self.assertNotIn(text, self.succeed("report", self.capture))

    def test_capture_without_an_end(self):
        """The program may have ended in a way that no library sees."""
        capture = self.make("endless", SCRIPT.replace("end 4200000 0\n", ""))
        for command in ("report", "info"):
            self.assertIn("the program still runs, was killed, or left by a system call of its own", self.succeed(command, capture))


class Symbols(Command):
    SAMPLE = "stack 1 0 1:3000 2:3000 3:3000\nsample 1 1000000 1 1 1 0\n"

    def warnings(self, *modules):
        script = "".join(f"module {i + 1} {path} {build_id} 0 0 0\n" for i, (path, build_id) in enumerate(modules))
        capture, said = self.make("symbols", script + self.SAMPLE), []
        for arguments in (["report", capture], ["export", capture, "-f", "folded"], ["flamegraph", capture]):
            result = run(*arguments)
            self.assertEqual(result.returncode, 0)
            said.append(result.stderr)
        self.assertEqual(len(set(said)), 1)
        return said[0]

    def test_files_that_cannot_be_read(self):
        link = self.path("loop")
        os.symlink("loop", link)
        self.assertEqual(self.warnings((link, "01")),
                         f"greenprof: {link}: Too many levels of symbolic links: its functions have no names\n")
        self.assertEqual(self.warnings((link, "01"), ("/etc/passwd/x", "02"), ("/etc/passwd/y", "03")),
                         f"greenprof: {link}: Too many levels of symbolic links: its functions have no names, "
                         "nor have those of 2 more files\n")

    def test_files_without_names_are_no_failure(self):
        """What is gone or no program at all says nothing: it had no names to lose, or is not of this machine."""
        with open(self.path("data"), "w") as file:
            file.write("no program")
        self.assertEqual(self.warnings(("/opt/app/server", "01"), (self.path("data"), "02"), ("[heap]", "-")), "")

    def test_build_that_is_not_known(self):
        """Without a build-id in the capture a file is not said to be another one."""
        self.assertEqual(self.warnings(("/bin/sh", "-")),
                         "greenprof: /bin/sh: may be another build than the one that was profiled, of which no build-id is known: "
                         "its functions have no names\n")


class Nameless(Command):
    def report(self, path, build_id, named=1, nameless=9):
        script = (f"module 1 {path} {build_id} 0 0x100000000 0x0\nthread 1 10 1 0 main\ncoro 1 0 - 0 0 1 1 -\nstack 1 0 switching 1:10\n"
                  f"stack 2 0 truncated\nsample 1 {nameless}000000 1 1 1 0\nsample 2 {named}000000 1 1 2 0\nend 5 0\n")
        return self.succeed("report", self.make("nameless", script), "--clock", "cpu")

    def test_package_that_has_the_names(self):
        """Of a library that Debian has stripped, it is said which package has its symbols."""
        library = next((os.path.realpath(path) for path in glob.glob("/usr/lib/*/libz.so.1")), None)
        if library is None or not glob.glob("/var/lib/dpkg/info/zlib1g*.list"):
            self.skipTest("no Debian package zlib1g")
        notes = subprocess.run(["readelf", "-n", library], capture_output=True, text=True, check=True).stdout
        build_id = re.search("Build ID: ([0-9a-f]+)", notes)[1]
        line = f"  no names   for 90.0 % of it, most in {library}; the package zlib1g-dbgsym has them\n"
        self.assertIn(line, self.report(library, build_id))
        self.assertNotIn("no names", self.report(library, build_id, named=97, nameless=3))

    def test_names_of_a_library(self):
        """The loader and packages may each leave /usr out, and name a link."""
        for path in glob.glob("/usr/lib/*/libz.so.1") + glob.glob("/lib/*/libz.so.1") + glob.glob("/usr/lib/*/libreadline.so.8"):
            owner = subprocess.run(["dpkg", "-S", os.path.realpath(path), path], capture_output=True, text=True).stdout
            notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
            ident, package = re.search("Build ID: ([0-9a-f]+)", notes), owner.split(":")[0]
            if package and ident and not os.path.exists(f"/usr/lib/debug/.build-id/{ident[1][:2]}/{ident[1][2:]}.debug"):
                self.assertIn(f"most in {path}; the package {package}-dbgsym has them\n", self.report(path, ident[1]))

    def test_interpreters(self):
        """No package names a language's functions."""
        for name, words in (("libruby-3.1.so.3.1", "Ruby's functions are not named here; coroutines are: "),
                            ("php8.2", "PHP's functions are not named here; coroutines are: "),
                            ("php-fpm8.2", "PHP's functions are not named here; coroutines are: "),
                            ("liblua5.4.so.0", "Lua's functions are not named here; coroutines are: "),
                            ("luajit-2.1.0", "LuaJIT's functions are not named here, nor are coroutines: "),
                            ("libluajit-5.1.so.2", "LuaJIT's functions are not named here, nor are coroutines: "),
                            ("rubyish", None), ("luatex", None), ("libRmath.so.1", None)):
            library = self.path(name)
            subprocess.run(["cc", "-s", "-shared", "-Wl,--build-id=0x0102", "-o", library, "-xc", "/dev/null"], check=True)
            report = self.report(library, "0102")
            self.assertEqual("build it with -g" in report, words is None)
            self.assertNotIn("package", report)
            self.assertIn(f"  no names   {words}90.0 % of it is in the interpreter; why: greenprof runtimes PROGRAM\n" if words else "no names", report)
            self.assertNotIn("interpreter", self.report(library, "0102", named=97, nameless=3))

    def test_symbols_that_do_not_cover_the_code(self):
        library = self.path("library.so")
        subprocess.run(["cc", "-shared", "-Wl,--build-id=0x0102", "-o", library, "-xc", "/dev/null"], check=True)
        self.assertIn(f"most in {library}; its symbols do not cover that code\n", self.report(library, "0102"))

    def test_program_without_symbols(self):
        program = self.path("stripped")
        with open(self.path("source.c"), "w") as file:
            file.write("int main(void) { return 0; }\n")
        subprocess.run(["cc", "-s", "-Wl,--build-id=0x0102", "-o", program, self.path("source.c")], check=True)
        self.assertIn(f"most in {program}; it has no symbols: build it with -g, and do not strip it\n", self.report(program, "0102"))
        self.assertIn(f"most in {program} (see the warning)\n", self.report(program, "0304"))
        os.unlink(program)
        self.assertIn(f"most in {program} (No such file or directory)\n", self.report(program, "0102"))


class Misspelt(Command):
    def said(self, *arguments):
        result = run(*arguments)
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        return result.stderr

    def test_commands(self):
        self.assertIn("unknown command 'reprot'; did you mean 'report'?", self.said("reprot"))
        self.assertIn("unknown command 'flamgraph'; did you mean 'flamegraph'?", self.said("help", "flamgraph"))
        for other, ours in (("profile", "run"), ("serve", "view"), ("list", "trace list"), ("version", "--version"), ("-v", "--version"),
                            ("stacks", "coroutines"), ("speedscope", "export --format speedscope"), ("recrod", "record")):
            self.assertIn(f"unknown command '{other}'; did you mean '{ours}'?", self.said(other))
        for word in ("x", "frobnicate", "", "a" * 1000, "/etc", "/etc/passwd", "none.greenprof"):
            self.assertNotIn("did you mean", self.said(word))

    def test_what_stands_in_place_of_a_command(self):
        for word, ours in (("/bin/true", "run"), (self.capture, "report"), ("123", "attach")):
            self.assertIn(f"unknown command '{word}'; did you mean 'greenprof {ours} {word}'?", self.said(word))

    def test_guesses(self):
        """Words of perf, py-spy, samply, async-profiler, pprof and strace: each works, or one sentence names the word here."""
        with open(self.path("svc"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n")
        os.chmod(self.path("svc"), 0o755)
        FILE, PID = "test.greenprof", str(2**22 + 1)
        works = ("report --help", "report -h", "help report", "--help report", "--help", "-h", "--version", f"report --sort cumulative {FILE}", f"report -s time {FILE}",
                 f"report {FILE} --by thread", f"report {FILE} -n 5", f"export {FILE} -o a.pb.gz", f"flamegraph {FILE} -o a.svg", f"flamegraph {FILE} -o a.html",
                 f"info {FILE}", f"explain {FILE}", f"export -f speedscope {FILE}", f"report {FILE} --clock wall", f"diff {FILE} {FILE} --json", "record --help")
        for words in works:
            self.assertEqual(run(*words.split(), cwd=self.directory).returncode, 0, words)
        for words, named in {
                "svc": "'greenprof run ./svc'", "./svc": "'greenprof run ./svc'", FILE: f"'greenprof report {FILE}'", PID: "greenprof attach", "top no-such-svc": "no process of yours has that name",
                "attach -p no-such-svc": "no process of yours has that name", f"attach -p {PID}": "no such process", f"attach {PID} -d 10 -f flamegraph": "greenprof export", "top": "missing PID",
                f"annotate {FILE}": "--source", f"stat {FILE}": "then greenprof report FILE", f"script {FILE}": "export", "list": "trace list", "version": "--version", "profile ./svc": "run",
                "threads": "--by thread", f"lock {FILE}": "--by lock", f"why {FILE}": "explain", f"summary {FILE}": "explain", f"sched {FILE}": "--clock wall",
                f"strace -p {PID}": "trace", f"collect -d 10 {PID}": "attach", f"open {FILE}": "view", f"report {FILE} --sort self": "tottime",
                f"report {FILE} --sort total": "cumtime", f"report --stdio {FILE}": "report FILE", f"report --no-children {FILE}": "--sort tottime", f"report -g {FILE}": "--callers",
                f"report --tree {FILE}": "view", f"report --top 5 {FILE}": "--rows", f"report -o x.html {FILE}": "> OUT", f"report {FILE} --requests": "--by request",
                f"run -p {PID}": "attach PID", f"record --pid {PID}": "attach PID", "run -d 10 ./svc": "timeout", "run -f flamegraph ./svc": "export", "run -g ./svc": "always recorded",
                "run --call-graph dwarf ./svc": "always recorded", "run -r 100 ./svc": "-F HZ", "run -c 100 ./svc": "-F HZ", "run -a": "attach", "run -e cycles ./svc": "--engine",
                "run -o x.svg ./svc": "flamegraph", "run -o x.pb.gz ./svc": "export", f"export {FILE} -o x.png": "no format has the suffix", f"export {FILE}": "which --format?",
                f"flamegraph {FILE} -f svg": "export", f"explain {FILE} --html": "view", "dump no-such-svc": "no process of yours has that name", f"trace {FILE}": "list, show or headers", "completion bash": "--help",
                "stat ./svc": "run PROGRAM, then greenprof report FILE", f"tree {FILE}": "view", "heap": "allocations are not", "memory ./svc": "allocations are not",
                "run --memory ./svc": "allocations are not", "run -e wall ./svc": "--clock wall", "run -c print(1)": "run -- python3 -c", "run -m http.server": "run -- python3 -m",
                f"report -top {FILE}": "'greenprof report FILE'", f"report -http :8080 {FILE}": "view FILE", f"report -http=:8080 {FILE}": "view FILE",
                "run -i 10ms ./svc": "-F HZ", "run --interval 10 ./svc": "-F HZ", f"report {FILE} --sort overhead": "tottime", f"report {FILE} --sort symbol": "name",
                f"report {FILE} --sort dso": "filename", f"report {FILE} --sort comm": "--by thread", f"trace -p {PID}": "attach PID", f"trace --pid {PID}": "attach PID",
                f"flamegraph -p {PID}": "attach PID", f"flamegraph --pid {PID}": "attach PID"}.items():
            result = run(*words.split(), cwd=self.directory)
            self.assertNotEqual(result.returncode, 0, words)
            self.assertEqual(result.stdout, "", words)
            self.assertIn(named, result.stderr, words)
            self.assertLessEqual(len(result.stderr.splitlines()), 3, words)

    def test_words_behind_the_program_are_its_own(self):
        self.assertEqual(run("run", "-o", self.path("own.greenprof"), "/bin/echo", "--memory", "-top").stdout, "--memory -top\n")

    def test_no_hint_leads_to_help_by_its_letters(self):
        for word in ("heap", "memory", "tree", "stat"):
            self.assertNotIn("'help'", self.said(word))

    def test_process_by_name(self):
        """A name stands for the only process that has it."""
        name = f"gp{os.getpid()}"
        program = self.path(name)
        os.symlink("/bin/sleep", program)
        sleepers = []
        try:
            for count in (1, 2):
                sleepers.append(subprocess.Popen([program, "1000"]))  # returns behind exec()
                result = run("status", name)
                words = (None, f"{name}: this process cannot be switched", f"2 processes are named '{name}': 'pgrep {name}' lists them")[count]
                self.assertEqual((result.returncode, words in result.stderr), (count, True), result.stderr)
                for command in ("explain", "coroutines"):
                    said = run(command, name)
                    self.assertEqual((said.returncode, "No such file" in said.stderr), (count, False), said.stderr)
        finally:
            for sleeper in sleepers:
                sleeper.kill()
                sleeper.wait()

    def test_outputs_of_another_command(self):
        for name, words in (("x.svg", "'greenprof flamegraph FILE -o OUT.svg' makes a picture"), ("x.PNG", "flamegraph FILE -o OUT.svg' makes a picture"),
                            ("x.html", "'greenprof flamegraph FILE -o OUT.html' makes a page"), ("x.pb.gz", "'greenprof export FILE -o OUT.pb.gz' makes pprof")):
            for arguments in (("run",), ("record",), ("merge",), ("recover",), ("attach",), ("start",), ("dump",)):
                operands = [self.capture, self.capture] if arguments[0] == "merge" else ["1"]
                self.assertIn(f"-o {name}: a capture is written, FILE.greenprof; ", said := self.said(*arguments, "-o", self.path(name), *operands).replace(self.path(""), ""))
                self.assertIn(words, said)
        for arguments in (("view", self.capture), ("flamegraph", self.capture), ("diff", self.capture, self.capture)):
            self.assertRegex(self.said(*arguments, "-o", self.path("x.png")), r"x\.png: .* written as \.html")
        self.assertIn("no format has the suffix", self.said("export", self.capture, "-o", self.path("x.png")))
        self.assertEqual(os.listdir(self.path("")), ["test.greenprof"])

    def test_other_word_of_run(self):
        self.assertEqual(run("record", "--help").stdout, run("run", "--help").stdout)
        self.assertIn("'greenprof record' is the same", run("help", "record").stdout)

    def test_process_by_option(self):
        self.expect(1, "no such process", "attach", "-p", str(2**22 + 1))
        for command in ("attach", "top", "status", "coroutines", "start", "stop", "dump", "detach"):
            self.assertIn("-p 1 and '2': one of them is enough", self.said(command, "--pid", "1", "2"))

    def test_options(self):
        self.assertIn("Did you mean '--engine'?\n", self.said("run", "--enigne", "cpu", "true"))
        self.assertIn("Did you mean '--sort'?\n", self.said("report", self.capture, "--sotr=time"))
        for arguments, ours in ((("run", "--rate", "5", "true"), "frequency"), (("report", self.capture, "--top", "5"), "rows"),
                                (("report", self.capture, "--limit", "5"), "rows"), (("report", self.capture, "--wall"), "clock")):
            self.assertIn(f"Did you mean '--{ours}'?\n", self.said(*arguments))
        for arguments, ours in ((("run", "-p", "5"), "greenprof attach PID"), (("run", "-d", "5", "x"), "timeout SECONDS greenprof run PROGRAM"),
                                (("record", "--duration", "5", "x"), "timeout SECONDS greenprof run PROGRAM"), (("report", "--self", "x"), "--sort tottime")):
            self.assertIn(f"Did you mean '{ours}'?\n", self.said(*arguments))
        for arguments in (("report", "--frobnicate"), ("report", self.capture, "--rate", "5"), ("report", "-Z"), ("report", "--sort"), ("run", "--" + "a" * 1000)):
            self.assertNotIn("Did you mean", self.said(*arguments))

    def test_formats(self):
        self.assertIn("Did you mean 'speedscope'?\n", self.said("export", self.capture, "-f", "spedscope"))
        self.assertIn("Did you mean 'chrome'?\n", self.said("export", self.capture, "-f", "perfetto"))
        self.assertIn("Did you mean 'flamegraph'?\n", self.said("export", self.capture, "-f", "svg"))
        self.assertNotIn("Did you mean", self.said("export", self.capture, "-f", "xyzzy"))

    def test_runtimes_of_what_is_no_program(self):
        self.assertFalse(os.stat("/etc/passwd").st_mode & stat.S_IXUSR)
        self.expect(1, "^greenprof: /etc/passwd: is not a program\n$", "runtimes", "/etc/passwd")


class View(Command):
    """The page is beside the capture, and the browser is told of it."""

    def opened(self, *arguments, browser='echo "$1" >"$OPENED"', stdin=None, **variables):
        program = self.path("browser")
        with open(program, "w") as file:
            file.write("#!/bin/sh\n" + browser + "\n")
        os.chmod(program, 0o755)
        environment = {**os.environ, "BROWSER": program, "OPENED": self.path("opened"), **variables}
        result = run("view", *arguments, env={name: value for name, value in environment.items() if value}, stdin=stdin)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def test_page(self):
        page = self.capture + ".html"
        self.assertEqual(self.opened(self.capture), page + "\n")
        with open(self.path("opened")) as file:
            self.assertEqual(file.read(), os.path.realpath(page) + "\n")
        with open(page) as file:
            self.assertIn("<html", file.read())

    def test_without_a_browser(self):
        for arguments in ({"browser": "exit 1"}, {"BROWSER": "/nowhere/browser"}, {"BROWSER": "", "DISPLAY": "", "WAYLAND_DISPLAY": ""}):
            self.assertEqual(self.opened(self.capture, **arguments), self.capture + ".html: open it in a browser\n")

    def test_places(self):
        self.assertEqual(self.opened(self.capture, "-o", self.path("x.html")), self.path("x.html") + "\n")
        with open(self.capture, "rb") as file:
            made = self.opened("-", TMPDIR=self.path(""), stdin=file)
        self.assertRegex(made, "/greenprof-[^/]{6}/greenprof.html\n$")
        self.assertIn("a browser reads a file", run("view", self.capture, "-o", "-").stderr)

    def test_terminal(self):
        """A graph is not for the eye on a terminal; a table is."""
        main, side = os.openpty()
        for command, status in (("flamegraph", 2), ("report", 0)):
            result = subprocess.run([GREENPROF, command, self.capture], stdout=side, stderr=subprocess.PIPE, text=True)
            self.assertEqual(result.returncode, status, result.stderr)
            self.assertEqual("standard output is a terminal" in result.stderr, status == 2)
        os.close(side)
        os.close(main)


if __name__ == "__main__":
    main()
