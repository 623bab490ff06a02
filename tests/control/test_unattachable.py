# SPDX-License-Identifier: MIT
"""What greenprof attach says no to, in one sentence each: the process is left as it was."""
import ctypes
import os
import shutil
import signal
import struct
import subprocess
import unittest

from support import GREENPROF, SERVICE, Case

CORE = os.environ["CORE"]
FILTERED = os.environ["FILTERED"]
STATIC = os.environ["STATIC"]
STRANGER = 65534
SYS_PTRACE, SYS_MEMFD_CREATE, SYS_CLONE3, ENOSYS, EPERM = 101, 319, 435, 38, 1  # x86-64
KILL, ERRNO, ALLOW = 0x80000000, 0x00050000, 0x7FFF0000  # linux/seccomp.h
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, MODE_FILTER = 22, 38, 2
FILE_CAPABILITY = struct.pack("<5I", 0x02000001, 1 << 10, 0, 0, 0)  # linux/capability.h: CAP_NET_BIND_SERVICE, effective
THIRTY_TWO_BITS = """
void _start(void)
{
    for (;;)
        __asm__ volatile("int $0x80" ::"a"(29)); // pause()
}
"""


def filter_for(*words):
    """Source: seccomp(2). Calls, and the word for each; all others are allowed."""
    load, equal, give = 0x20, 0x15, 0x06
    code = [(load, 0, 0, 0)]
    for number, word in words:
        code += [(equal, 0, 1, number), (give, 0, 0, word)]
    return b"".join(struct.pack("<HBBI", *line) for line in [*code, (give, 0, 0, ALLOW)])


def install(code):
    libc = ctypes.CDLL(None, use_errno=True)
    code_room = ctypes.create_string_buffer(code)
    program = ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(code_room)))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 or libc.prctl(PR_SET_SECCOMP, MODE_FILTER, program) != 0:
        raise OSError(ctypes.get_errno(), "no filter of system calls to be had")


def become_stranger():
    os.setgroups([])
    os.setgid(STRANGER)
    os.setuid(STRANGER)


def filters_are_shown():
    """Root's sight of filters: CAP_SYS_ADMIN, and none over this process itself."""
    with open("/proc/self/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    return bool(int(fields["CapEff"], 16) >> 21 & 1) and fields["Seccomp"].strip() == "0"


def works(*command):
    return subprocess.run(command, capture_output=True).returncode == 0


SANDBOX = ("bwrap", "--bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--die-with-parent", "--cap-drop", "ALL")


def shape_of(pid):
    """What attaching would change."""
    with open(f"/proc/{pid}/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    names = ("Threads", "SigBlk", "SigIgn", "SigCgt", "TracerPid", "Seccomp", "VmSize")
    with open(f"/proc/{pid}/maps") as maps:
        return {name: fields[name].split() for name in names if name in fields}, maps.read(), os.listdir(f"/proc/{pid}/fd")


class Unattachable(Case):
    def begin(self, *words, **more):
        """A process, with pipes. It is ended in the end."""
        process = subprocess.Popen([*map(str, words)], cwd=self.dir, env=self.env, text=True, bufsize=1,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()

    def begin_program(self, path, *words, **more):
        process = self.begin(path, *words, **more)
        self.wait_until(lambda: os.readlink(f"/proc/{process.pid}/exe") == os.path.realpath(path), "it is that program")
        return process

    def begin_filtered(self, *mode, **more):
        process = self.begin(FILTERED, *mode, **more)
        self.assertEqual(process.stdout.readline(), "ready\n", f"{mode}: {process.poll()}")
        return process

    def check_alive(self, process, line="\n"):
        process.stdin.write(line)
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "alive\n", f"it ended: {process.poll()}")

    def wait_until_idle(self, pid):
        """Its own start changes it, too."""
        def state():
            with open(f"/proc/{pid}/stat") as file:
                return file.read().rpartition(")")[2].split()[0]
        self.wait_until(lambda: state() == "S", "it waits")

    def untouched(self, text, pid):
        self.wait_until_idle(pid)
        before = shape_of(pid)
        done = self.command("attach", pid, "-o", "capture")
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertRegex(done.stderr, rf"\Agreenprof: {pid}: [^\n]+\n\Z")
        self.assertIn(text, done.stderr)
        self.assertEqual(shape_of(pid), before)
        self.assertEqual((self.sockets(), os.path.exists(os.path.join(self.dir, "capture"))), ([], False))

    def as_stranger(self, *words):
        """The command by another user, for whom it and the core are copied: the build may lie where others may not go."""
        os.chmod(self.dir, 0o755)
        for path in (GREENPROF, CORE):
            if not os.path.exists(copy := os.path.join(self.dir, os.path.basename(path))):
                shutil.copy(path, copy)
        return subprocess.run([os.path.join(self.dir, os.path.basename(GREENPROF)), *map(str, words)], cwd=self.dir, text=True,
                              env=dict(self.env, GREENPROF_CORE=os.path.join(self.dir, os.path.basename(CORE))), timeout=100,
                              capture_output=True, stdin=subprocess.DEVNULL, preexec_fn=become_stranger)


class Kinds(Unattachable):
    """Processes that are no program for it."""

    def test_numbers(self):
        self.refused("no such process", "attach", 4194303)
        self.refused("no such process", "attach", 2147483647)
        for number in ("0", "-1", "2147483648", "18446744073709551617", "9" * 400, "1.5", "0x10", ""):
            self.assertEqual(self.command("attach", number).returncode, 2, number)
            self.assertEqual(self.command("attach", "--", number).returncode, 2, number)

    def test_static_program(self):
        self.untouched("linked statically", self.begin_program(STATIC).pid)

    @unittest.skipUnless(shutil.which("musl-gcc"), "musl-tools is not installed")
    def test_musl(self):
        source, program = os.path.join(self.dir, "musl.c"), os.path.join(self.dir, "musl")
        with open(source, "w") as file:
            file.write("#include <stdio.h>\nint main(void) { return getchar(); }\n")
        subprocess.run(["musl-gcc", "-o", program, source], check=True)
        self.untouched("its C library is musl", self.begin_program(program).pid)

    def test_another_architecture(self):
        source, program = os.path.join(self.dir, "narrow.c"), os.path.join(self.dir, "narrow")
        with open(source, "w") as file:
            file.write(THIRTY_TWO_BITS)
        subprocess.run(["gcc", "-m32", "-ffreestanding", "-fno-pie", "-nostdlib", "-static", "-o", program, source], check=True)
        try:
            process = self.begin_program(program)
        except OSError as error:
            self.skipTest(f"this kernel runs no program of 32 bits: {error}")
        self.untouched("not one for x86-64", process.pid)

    def test_zombie(self):
        process = self.begin(SERVICE[0])
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        self.refused("a zombie", "attach", process.pid)

    def test_kernel_thread(self):
        try:
            with open("/proc/2/comm") as file:
                self.assertEqual(file.read(), "kthreadd\n")
        except (OSError, AssertionError):
            self.skipTest("no thread of the kernel is seen from here")
        self.refused("thread of the kernel" if os.geteuid() == 0 else "another user", "attach", 2)

    def test_thread(self):
        process = self.begin_filtered("thread")
        other, = set(os.listdir(f"/proc/{process.pid}/task")) - {str(process.pid)}
        self.refused(f"it is a thread of process {process.pid}", "attach", other)
        self.check_alive(process)

    def test_stopped(self):
        process = self.begin_program(STATIC)
        os.kill(process.pid, signal.SIGSTOP)
        self.refused("the process is stopped", "attach", process.pid)

    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
    def test_ignored_signal(self):
        """By which a call in it ends."""
        sleeper = subprocess.Popen(["sh", "-c", "trap '' SEGV; exec sleep 1000"])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        self.wait_until(lambda: os.path.basename(os.readlink(f"/proc/{sleeper.pid}/exe")) == "sleep", "it sleeps")
        self.refused("it ignores SIGSEGV", "attach", sleeper.pid, "-o", "capture")

    def test_debugger(self):
        process = self.begin_filtered("container")
        debugger = self.begin("gdb", "-q", "-nx", "-p", process.pid, "-ex", "continue&", "-ex", "echo goes\\non\\n", stderr=subprocess.DEVNULL)
        while (line := debugger.stdout.readline()) and "on" not in line.split():
            pass
        self.refused(f"process {debugger.pid} traces it already", "attach", process.pid)
        self.check_alive(process)


@unittest.skipUnless(os.geteuid() == 0, "needs root")
class Rights(Unattachable):
    """Processes of other users, and with other rights."""

    def test_set_user_id(self):
        os.chmod(self.dir, 0o755)
        program = shutil.copy(SERVICE[0], os.path.join(self.dir, "service"))
        os.chmod(program, 0o4755)
        process = self.begin_program(program, preexec_fn=become_stranger)
        self.untouched("more rights than the user who started it", process.pid)
        self.assertIn("another user", self.as_stranger("attach", process.pid).stderr)

    def test_capabilities_of_its_file(self):
        os.chmod(self.dir, 0o755)
        program = shutil.copy(SERVICE[0], os.path.join(self.dir, "service"))
        os.setxattr(program, "security.capability", FILE_CAPABILITY)
        process = self.begin_program(program, preexec_fn=become_stranger)
        self.untouched("more rights than the user who started it", process.pid)
        done = self.as_stranger("attach", process.pid)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"\Agreenprof: \d+: [^\n]+\n\Z")
        self.assertIsNone(process.poll())

    def test_yama(self):
        """As where kernel.yama.ptrace_scope is 1: ptrace() is refused, and the kernel says why in a file."""
        if not works("unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"):
            self.skipTest("nothing may be mounted here")
        process = self.begin_filtered("container")
        script = ("mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama && echo 1 >/proc/sys/kernel/yama/ptrace_scope &&"
                  "exec \"$@\"")
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", GREENPROF, "attach", str(process.pid)], env=self.env,
                              cwd=self.dir, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              preexec_fn=lambda: install(filter_for((SYS_PTRACE, ERRNO | EPERM))))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, rf"\Agreenprof: {process.pid}: may not be traced: kernel.yama.ptrace_scope is 1; [^\n]+\n\Z")
        self.check_alive(process)

    def test_another_name_space(self):
        """From inside, processes outside have no number."""
        if not works("unshare", "--pid", "--fork", "--mount-proc", "true"):
            self.skipTest("no other name space may be made here")
        process = self.begin_filtered("container")
        done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", GREENPROF, "attach", str(process.pid)], env=self.env,
                              cwd=self.dir, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no such process", done.stderr)
        self.check_alive(process)


class Filters(Unattachable):
    """Processes under seccomp, where a call that is not known to a filter is the end."""

    def setUp(self):
        super().setUp()
        if not filters_are_shown():
            self.skipTest("needs root, and no filter over it")

    def check_refused(self, text, *mode):
        process = self.begin_filtered(*mode)
        self.untouched(text, process.pid)
        self.check_alive(process)
        return process

    @staticmethod
    def needs_plain_core():
        if os.environ["SANITIZED"]:
            raise unittest.SkipTest("a sanitizer cannot be loaded into a program that was built without it")

    def check_works(self, process):
        self.needs_plain_core()
        pid = process.pid
        self.do("attach", pid, "-o", "capture")
        for command in (["status", pid], ["top", pid, "--once"], ["dump", pid], ["coroutines", pid]):
            self.do(*command)
            self.check_alive(process, "burn\n")
        self.do("stop", pid)
        self.do("start", pid, "-o", "capture2")
        for _ in range(6):  # one is 30 ms of CPU time, in pieces between ticks where the machine is crowded
            self.check_alive(process, "burn\n")
        self.do("detach", pid)
        self.check_alive(process)
        self.assertIn("burn", self.do("report", "capture2"))

    def test_strict_mode(self):
        self.check_refused("seccomp's strict mode", "strict")

    def test_threads_that_differ(self):
        process = self.begin_filtered("thread")
        self.untouched("under different seccomp filters", process.pid)
        self.check_alive(process)

    def test_executable_memory(self):
        self.check_refused("forbids mmap()", "exec")

    def test_each_call(self):
        """None of them may be what the process is killed for."""
        names = subprocess.run([FILTERED, "names"], capture_output=True, text=True, check=True).stdout.split()
        self.assertGreater(len(names), 50)
        for name in names:
            if name not in ("read", "write"):  # it calls them itself
                with self.subTest(name):
                    self.end(self.check_refused(f"its seccomp filter forbids {name}()", "kill", name))
        self.check_refused("forbids futex()", "trap", "futex")

    def test_calls_that_fail(self):
        self.check_refused("forbids clone()", "errno", "clone")
        self.check_refused("forbids socket()", "errno", "socket")
        self.check_refused("forbids clone3()", "errno", "clone3")
        for name in ("madvise", "membarrier", "prctl", "process_vm_readv", "sigaltstack"):
            with self.subTest(name):
                self.check_works(self.begin_filtered("errno", name))

    def test_what_carrying_needs(self):
        """A call that may fail elsewhere may not where the library has to be carried into a container."""
        self.needs_plain_core()
        process = self.begin_filtered("errno", "memfd_create")
        self.do("attach", process.pid, "-o", "capture")
        self.do("detach", process.pid)
        self.check_alive(process)
        os.remove(os.path.join(self.dir, "capture"))
        hidden = ("unshare", "--mount", "sh", "-c", "mount -t tmpfs none \"$1\" && shift && exec \"$@\"", "sh",
                  os.path.dirname(os.path.realpath(CORE)))
        if not works(*hidden, "true"):
            self.skipTest("nothing may be mounted here")
        for mode in ("errno", "kill"):
            process = self.begin(*hidden, FILTERED, mode, "memfd_create")
            self.assertEqual(process.stdout.readline(), "ready\n")
            self.untouched("its seccomp filter forbids memfd_create(), which attaching needs", process.pid)
            self.check_alive(process)
        process = self.begin(*hidden, FILTERED, "known")
        self.assertEqual(process.stdout.readline(), "ready\n")
        self.check_works(process)

    def test_only_what_is_needed(self):
        self.check_works(self.begin_filtered("known"))

    def test_perf_event_open(self):
        """The core finds out itself that this one is fatal."""
        self.check_works(self.begin_filtered("kill", "perf_event_open"))

    def test_filters_of_containers(self):
        self.check_works(self.begin_filtered("container"))
        code = filter_for((SYS_CLONE3, ERRNO | ENOSYS))
        self.check_works(self.begin_filtered("container", preexec_fn=lambda: install(code)))  # two

    def test_filters_add_up(self):
        code = filter_for((SYS_MEMFD_CREATE, KILL))
        process = self.begin_filtered("container", preexec_fn=lambda: install(code))
        self.untouched("forbids memfd_create()", process.pid)
        self.check_alive(process)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd is not installed")
    def test_filters_of_systemd(self):
        """SystemCallFilter=@system-service kills for the others."""
        allowed, groups = set(), ["@system-service", "@default"]
        for group in groups:
            listed = subprocess.run(["systemd-analyze", "syscall-filter", group], capture_output=True, text=True, check=True).stdout
            names = {line.strip() for line in listed.splitlines()[1:] if line.strip() and not line.strip().startswith("#")}
            groups += [name for name in names if name.startswith("@") and name not in groups]
            allowed |= names
        needed = subprocess.run([FILTERED, "names"], capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual(set(needed) - allowed, set())

    def test_filters_that_are_not_shown(self):
        """Another than root does not see them."""
        os.chmod(self.dir, 0o755)
        program = shutil.copy(FILTERED, os.path.join(self.dir, "filtered"))
        process = self.begin(program, "container", preexec_fn=become_stranger)
        self.assertEqual(process.stdout.readline(), "ready\n")
        done = self.as_stranger("attach", process.pid)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn("cannot be read from here", done.stderr)
        self.check_alive(process)

    def attach_in_container(self, code):
        """All of it under one filter, which nobody there may read. Returns what the command says, and whether the process is alive."""
        script = ("sleep 1000 & pid=$!;"
                  "\"$1\" attach $pid -o capture && \"$1\" status $pid >/dev/null && \"$1\" detach $pid >/dev/null;"
                  "echo status $?; kill -0 $pid && echo alive; kill $pid")
        self.needs_plain_core()
        reading, writing = os.pipe()
        os.write(writing, code)
        os.close(writing)
        done = subprocess.run([*SANDBOX, "--seccomp", str(reading), "sh", "-c", script, "sh", GREENPROF],
                              pass_fds=[reading], capture_output=True, text=True, env=self.env, cwd=self.dir, timeout=100)
        os.close(reading)
        return done

    @unittest.skipUnless(shutil.which("bwrap"), "bubblewrap is not installed")
    def test_inside_a_container(self):
        if not works(*SANDBOX, "true"):
            self.skipTest("bubblewrap may not make a container here")
        done = self.attach_in_container(filter_for((SYS_CLONE3, ERRNO | ENOSYS)))
        self.assertIn("status 0\nalive\n", done.stdout, done.stderr)
        done = self.attach_in_container(filter_for((SYS_MEMFD_CREATE, KILL)))
        self.assertIn("status 1\nalive\n", done.stdout, done.stderr)
        self.assertIn("forbids a system call", done.stderr)


if __name__ == "__main__":
    unittest.main()
