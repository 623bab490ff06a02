# SPDX-License-Identifier: MIT
"""What `greenprof run` says: before the program starts, what cannot be had; at the end, one line on standard error."""
import ctypes
import fcntl
import os
import platform
import re
import resource
import select
import signal
import struct
import subprocess
import sys
import termios

import check

LINE = r"greenprof: {0}: \d+ samples, (none|\d+) lost(; took [^\n]* us here[^;\n]*)?(; [^;\n]*)?; next: greenprof explain {0}\n"
FAILED = r"greenprof: {0}: not all of it is recorded: [^\n]+\n"
SHELL = "/bin/sh"
WORK_AND_WAIT = "import signal\nfor i in range(3000000): pass\nsignal.pause()"


class Messages(check.Case):
    def start(self, *command, options=(), output="x.greenprof", **extra):
        """`run`, with standard error as the caller has it: a pipe unless said otherwise."""
        extra.setdefault("stdout", subprocess.PIPE)
        extra.setdefault("stderr", subprocess.PIPE)
        extra.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen([check.GREENPROF, "run", "-o", output, *options, "--", *command],
                                   cwd=self.directory, **extra)
        self.addCleanup(process.kill)
        return process

    def finish(self, process, status=0):
        out, error = process.communicate(timeout=check.LIMIT_SECONDS)
        self.assertEqual(process.returncode, status, error)
        return (out or b"").decode(), (error or b"").decode()

    def run_it(self, *command, status=0, **extra):
        return self.finish(self.start(*command, **extra), status)

    def says(self, text, pattern, name="x.greenprof"):
        self.assertRegex(text, r"\A" + pattern.format(re.escape(name)) + r"\Z")

    # The closing line.

    def test_line(self):
        out, error = self.run_it(SHELL, "-c", "echo done; exit 3", status=3)
        self.assertEqual(out, "done\n")
        self.says(error, LINE)
        following = error.rstrip("\n").partition("next: greenprof ")[2].split()
        shown = subprocess.run([check.GREENPROF, *following], cwd=self.directory, capture_output=True, text=True)
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertRegex(shown.stdout, r"^\S+: \d+\.\d+ s, of it CPU time \d")

    def test_line_has_the_name_as_a_shell_takes_it(self):
        _, error = self.run_it(SHELL, "-c", ":", output="a b's.greenprof")
        self.assertIn("next: greenprof explain 'a b'\\''s.greenprof'\n", error)
        process = self.start(SHELL, "-c", ":", output="%p.greenprof")
        self.says(self.finish(process)[1], LINE, f"{process.pid}.greenprof")

    def test_quiet(self):
        self.assertEqual(self.run_it(SHELL, "-c", ":", options=("--quiet",))[1], "")

    def test_what_the_program_says_comes_first(self):
        _, error = self.run_it(SHELL, "-c", "echo error >&2; exit 1", status=1)
        first, rest = error.split("\n", 1)
        self.assertEqual(first, "error")
        self.says(rest, LINE)

    def test_exits(self):
        """However a program ends by itself."""
        for how in ("raise SystemExit(4)", "import os; os._exit(4)", "import sys; sys.exit(4)",
                    "import ctypes; ctypes.CDLL(None).quick_exit(4)", "import ctypes; ctypes.CDLL(None).exit(4)"):
            with self.subTest(how):
                self.says(self.run_it(sys.executable, "-c", how, status=4)[1], LINE)

    def test_exit_from_a_signal_handler(self):
        code = ("import ctypes; libc = ctypes.CDLL(None)\n"
                "libc.signal(15, ctypes.cast(libc._exit, ctypes.c_void_p)); getattr(libc, 'raise')(15)")
        self.says(self.run_it(sys.executable, "-c", code, status=15)[1], LINE)

    def test_killed_programs(self):
        """What is said of them is what the capture holds."""
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGABRT, signal.SIGUSR1):
            with self.subTest(number):
                name = f"{number.name}.greenprof"
                process = self.start(sys.executable, "-c", WORK_AND_WAIT, output=name)
                self.wait_for(rb"samples +[1-9]", "report", name)
                process.send_signal(number)
                _, error = self.finish(process, -number)
                self.says(error, LINE, name)
                self.assertIn(f"; killed by {number.name}: ", error)
                shown = check.greenprof("report", self.path(name)).stdout.decode()
                self.assertEqual(re.search(r"samples +(\d+)", shown)[1], re.search(r": (\d+) samples", error)[1])

    def wait_for(self, pattern, command, name):
        check.until(lambda: re.search(pattern, check.greenprof(command, self.path(name)).stdout), pattern)

    def test_killed_before_anything_is_written(self):
        _, error = self.run_it(SHELL, "-c", "kill -9 $$", status=-signal.SIGKILL)
        self.assertRegex(error, r"\Agreenprof: x.greenprof: (\d+ samples, [^\n]*|nothing is recorded: the program was "
                                r"killed before the first write)\n\Z")

    def test_system_call_of_its_own(self):
        """As Go's programs leave."""
        code = ("import ctypes\n"
                "for i in range(3000000): pass\n"
                "input()\n"
                "ctypes.CDLL(None).syscall(231, 9)\n")  # exit_group
        check.need(platform.machine() == "x86_64", "numbers of system calls are those of x86-64")
        process = self.start(sys.executable, "-c", code, stdin=subprocess.PIPE)
        self.wait_for(rb"samples +[1-9]", "report", "x.greenprof")
        process.stdin.write(b"\n")
        _, error = self.finish(process, 9)
        self.says(error, LINE)
        self.assertIn("; the program left by a system call of its own: ", error)

    def test_killed_quietly(self):
        _, error = self.run_it(SHELL, "-c", "kill -9 $$", options=("--quiet",), status=-signal.SIGKILL)
        self.assertEqual(error, "")

    def test_killed_when_the_file_was_full(self):
        code = ("import threading\n"
                "while True:\n"
                "    thread = threading.Thread(target=int)\n"
                "    thread.start()\n"
                "    thread.join()\n")
        process = self.start(sys.executable, "-c", code, options=("--max-size", "64K"))
        self.wait_for(b"the size that it was to have at most", "info", "x.greenprof")
        process.kill()
        _, error = self.finish(process, -signal.SIGKILL)
        self.says(error, FAILED)
        self.assertIn("it has the size that it was to have at most", error)

    def test_program_that_lets_standard_error_go(self):
        """A reader of it sees its end, while the program lives on."""
        over, keeps = os.pipe()
        self.addCleanup(os.close, keeps)
        process = self.start(SHELL, "-c", "exec 2>mine; read line", stdin=over)
        os.close(over)
        self.assertEqual(process.stderr.read(), b"")
        self.assertIsNone(process.poll())
        os.write(keeps, b"\n")
        self.finish(process)

    def test_nothing_is_left_to_the_program(self):
        """The process that waits for the program's end is no child of its, and left no signal."""
        code = ("import os, resource, signal\n"
                "try:\n"
                "    print(os.waitpid(-1, os.WNOHANG))\n"
                "except ChildProcessError:\n"
                "    print(signal.sigpending(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n")
        def block():
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        out, _ = self.run_it(sys.executable, "-c", code, preexec_fn=block)
        self.assertEqual(out, "set() 0\n")

    def test_children_say_nothing(self):
        code = ("import os, subprocess, sys\n"
                "pid = os.fork()\n"
                "if pid == 0: sys.exit(0)\n"
                "os.waitpid(pid, 0)\n"
                "subprocess.run([sys.executable, '-c', 'pass'], check=True)\n"
                "os.system('exit 0')\n")
        self.says(self.run_it(sys.executable, "-c", code)[1], LINE)

    def test_exec(self):
        """The last program says it, of its own file."""
        self.says(self.run_it(SHELL, "-c", 'exec "$0" -c pass', sys.executable)[1], LINE)

    def test_standard_error_of_the_program_s_own(self):
        """What the program has put in the place of standard error is not written to."""
        _, error = self.run_it(SHELL, "-c", "exec 2>mine; echo mine >&2")
        self.assertEqual(error, "")
        with open(self.path("mine")) as mine:
            self.assertEqual(mine.read(), "mine\n")
        self.assertEqual(self.run_it(SHELL, "-c", "exec 2>&-")[1], "")

    def test_daemon_lets_standard_error_go(self):
        """A reader of standard error is not kept waiting by what a program leaves behind."""
        over, keeps = os.pipe()
        self.addCleanup(os.close, keeps)
        code = ("import os, sys\n"
                "if os.fork() == 0:\n"
                "    os.setsid()\n"
                "    null = os.open('/dev/null', os.O_RDWR)\n"
                "    for fd in (0, 1, 2): os.dup2(null, fd)\n"
                "    os.read(int(sys.argv[1]), 1)\n")  # until this test is over
        process = self.start(sys.executable, "-c", code, str(over), pass_fds=(over,))
        os.close(over)
        self.says(self.finish(process)[1], LINE)

    def test_reader_that_is_gone(self):
        reading, writing = os.pipe()
        os.close(reading)
        process = self.start(SHELL, "-c", "exit 6", stderr=writing)
        os.close(writing)
        self.finish(process, 6)

    def test_reader_that_does_not_read(self):
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        os.set_blocking(writing, False)
        try:
            while True:
                os.write(writing, bytes(65536))
        except BlockingIOError:
            os.set_blocking(writing, True)
        process = self.start(SHELL, "-c", "exit 6", stderr=writing)
        os.close(writing)
        self.finish(process, 6)

    def test_background_job_of_a_terminal_that_stops_them(self):
        """A background process that writes to such a terminal is stopped (tostop): not for a line of ours."""
        try:
            leader, terminal = os.openpty()
        except OSError as error:
            self.skipTest(f"no terminal to be had: {error}")
        self.addCleanup(os.close, leader)
        settings = termios.tcgetattr(terminal)
        settings[3] |= termios.TOSTOP
        termios.tcsetattr(terminal, termios.TCSANOW, settings)
        report, status_pipe = os.pipe()
        session = os.fork()
        if session == 0:
            try:
                os.setsid()
                fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
                job = os.fork()
                if job == 0:
                    os.setpgid(0, 0)
                    os.chdir(self.directory)
                    os.dup2(terminal, 2)
                    os.execv(check.GREENPROF, ["greenprof", "run", "-o", "x.greenprof", "--", SHELL, "-c", "exit 7"])
                _, status = os.waitpid(job, os.WUNTRACED)
                if os.WIFSTOPPED(status):
                    os.kill(job, signal.SIGKILL)
                os.write(status_pipe, struct.pack("<i", status))
            finally:
                os._exit(0)
        os.close(terminal)
        os.close(status_pipe)
        self.assertEqual(select.select([report], [], [], check.LIMIT_SECONDS)[0], [report])
        status, = struct.unpack("<i", os.read(report, 4))
        os.close(report)
        os.waitpid(session, 0)
        self.assertTrue(os.WIFEXITED(status), status)
        self.assertEqual(os.WEXITSTATUS(status), 7)
        self.assertTrue(os.path.exists(self.path("x.greenprof")))

    # Failures later on.

    def test_recording_that_fails_later(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
        for options in ((), ("--quiet",)):  # the header is written, and no more: at the end, if not before
            _, error = self.run_it(SHELL, "-c", ":", options=options, preexec_fn=limit)
            self.says(error, FAILED)

    def test_capture_that_is_removed(self):
        for how in ("rm x.greenprof", "mv other x.greenprof"):
            with open(self.path("other"), "w"):
                pass
            _, error = self.run_it(SHELL, "-c", how, options=("--quiet",))
            self.says(error, FAILED)
            self.assertIn("removed or replaced", error)

    def test_recording_that_never_begins(self):
        """Past the checks of `run`: the second program of this process is told to write elsewhere."""
        _, error = self.run_it("env", "GREENPROF_OUTPUT=/nowhere/x", sys.executable, "-c", "raise SystemExit(8)", status=8)
        self.assertEqual(error, "greenprof: x.greenprof: nothing is recorded: No such file or directory\n")

    def test_pipe_without_a_reader(self):
        """The program neither waits for a reader nor fails."""
        os.mkfifo(self.path("pipe"))
        _, error = self.run_it("env", "GREENPROF_OUTPUT=pipe", sys.executable, "-c", "raise SystemExit(8)", status=8)
        self.assertEqual(error, "greenprof: x.greenprof: nothing is recorded: it is a pipe that nothing reads\n")

    # Things that cannot be had.

    def refuse(self, says, *arguments, preexec_fn=None, program=("touch", "started")):
        before = sorted(os.listdir(self.directory))
        done = check.greenprof("run", *arguments, "--", *program, cwd=self.directory, preexec_fn=preexec_fn)
        self.assertEqual((done.returncode, done.stdout), (1, b""), done.stderr)
        self.assertRegex(done.stderr.decode(), r"\Agreenprof: [^\n]+\n\Z")
        self.assertIn(says, done.stderr.decode())
        self.assertEqual(sorted(os.listdir(self.directory)), before)

    def test_program_with_a_sanitizer_of_its_own(self):
        program = os.path.join(check.PROGRAMS, "sanitized")
        out, error = self.run_it(program, status=3)
        self.assertEqual(out, "sanitized\n")
        self.says(error, LINE)

    def test_thread_sanitizers(self):
        """The runtime sees no race, in the program or in greenprof's threads: the exit status is as without greenprof."""
        clangs = self.path("raced")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "raced.c")
        subprocess.run(["clang", "-fsanitize=thread", "-O1", "-o", clangs, source], check=True)
        for program in (os.path.join(check.PROGRAMS, "raced"), clangs):
            for hz in (1000, 10000):
                with self.subTest(program, hz=hz):
                    out, error = self.run_it(program, options=["-F", str(hz)], status=3)
                    self.assertEqual(out, "raced\n")
                    self.says(error, LINE)

    def test_fewer_samples_than_asked_for(self):
        says = "slow clock a CPU timer goes off once a tick of the kernel's at most: --engine monotonic has the rate asked for"
        for engine, hz, is_said in (("cpu", 10000, True), ("cpu", 50, False), ("monotonic", 10000, False)):
            self.run_it(sys.executable, "-c", "for i in range(8000000): pass", options=["--engine", engine, "-F", str(hz)])
            for command in ("report", "info"):
                shown = check.greenprof(command, self.path("x.greenprof")).stdout.decode()
                self.assertEqual(says in shown, is_said, shown)

    def test_engine_that_cannot_be_had(self):
        calls = {"perf": 298, "cpu": 222}  # perf_event_open, timer_create
        check.need(can_deny(), "no filter of system calls to be had")
        check.need(platform.machine() == "x86_64", "numbers of system calls are those of x86-64")
        with open(self.path("x.greenprof"), "w") as old:
            old.write("old")
        for engine, number in calls.items():
            self.refuse(f"the {engine} engine cannot be had here: Permission denied", "-o", "x.greenprof",
                        "--engine", engine, preexec_fn=lambda: deny(number))
        self.refuse("the perf engine cannot be had here", "-o", "x.greenprof",
                    preexec_fn=lambda: (os.environ.update(GREENPROF_ENGINE="perf"), deny(298)))

    def test_output_that_cannot_be_opened(self):
        self.refuse("/proc/x", "-o", "/proc/x")
        self.refuse("/proc/self/x", "-o", "/proc/self/x")

    # Files that are there already.

    def test_old_capture_does_not_pass_for_new(self):
        self.run_it(SHELL, "-c", ":")
        with open(self.path("x.greenprof"), "rb") as file:
            old = file.read()
        self.run_it(SHELL, "-c", ":", options=("--follow-name", "no-such-program"))  # nothing is recorded
        shown = check.greenprof("report", self.path("x.greenprof"))
        self.assertEqual(shown.returncode, 1, shown.stdout)
        with open(self.path("x.greenprof.old"), "rb") as file:
            self.assertEqual(file.read(), old)

    def test_old_capture_behind_a_link(self):
        os.mkdir(self.path("far"))
        os.symlink("far/y", self.path("x.greenprof"))
        for _ in range(2):
            self.run_it(SHELL, "-c", ":")
        self.assertEqual(sorted(os.listdir(self.path("far"))), ["y", "y.old"])
        self.assertTrue(os.path.islink(self.path("x.greenprof")))

    def test_old_capture_stays_where_nothing_is_started(self):
        self.run_it(SHELL, "-c", ":")
        with open(self.path("script"), "w") as script:
            script.write("#!/no/such/interpreter\n")
        os.chmod(self.path("script"), 0o755)
        process = self.start("./script")
        self.finish(process, 127)
        self.assertEqual(sorted(os.listdir(self.directory)), ["script", "x.greenprof"])


def deny(number):
    """From here on, a system call fails with EACCES; in the programs that are executed, too."""
    libc = ctypes.CDLL(None, use_errno=True)
    load, equal, give = 0x20, 0x15, 0x06
    code = [(load, 0, 0, 0), (equal, 0, 1, number), (give, 0, 0, 0x00050000 | 13), (give, 0, 0, 0x7FFF0000)]
    filters = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *line) for line in code))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(code), ctypes.addressof(filters)))
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program, 0, 0) != 0:  # NO_NEW_PRIVS, SECCOMP
        raise OSError(ctypes.get_errno(), "no filter of system calls to be had")


def can_deny():
    try:
        return subprocess.run(["true"], preexec_fn=lambda: deny(298)).returncode == 0
    except subprocess.SubprocessError:
        return False


if __name__ == "__main__":
    check.main()
