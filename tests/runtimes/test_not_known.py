# SPDX-License-Identifier: MIT
"""Versions, builds and forms of runtimes that greenprof does not know: said by every output that says what is lost, and by
`greenprof runtimes`. Small libraries with the names of the real ones stand for them."""
import json
import os
import re
import shutil
import subprocess
import sys

from shares import check
import shares

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "page"))
from page_data import read_page  # noqa: E402

PYTHON = "int _PyEval_EvalFrameDefault(void) { return 0; } int Py_AddPendingCall(void) { return -1; } "
COST = "(?: took [^\\n;]*;(?: a signal costs [^;]*;)?)?"  # said where it is more than was asked for, as beside a load
BOOST = "_ZN5boost7context6detail13"

# File, its definitions, the message.
UNKNOWN = {
    "python_to_come": ("libpython3.19.so.1.0", PYTHON + "const unsigned long Py_Version = 0x03130200;", r"Python 3\.19\.2: not known"),
    "python_of_old": ("libpython3.10.so.1.0", PYTHON, r"Python before 3\.11: not known"),
    "python_free_threaded": ("libpython3.11t.so.1.0",
                             PYTHON + "const unsigned long Py_Version = 0x030b0200; int _Py_MergeZeroLocalRefcount;",
                             r"Python 3\.11\.2 without the global lock: not known"),
    "boost": ("libboost_context.so.2.0.0", "int leap_fcontext;", r"Boost\.Context: .* fibers are not told apart"),
    "ruby": ("libruby-4.0.so.4.0", "int rb_fiber_resume;", r"Ruby Fiber: switches by a function"),
    "ruby_linked_in": ("libembedded.so", "int rb_fiber_resume, coroutine_transfer;", r"Ruby Fiber: the interpreter is linked in"),
    "php": ("libphp9.so", "int zend_fiber_switch_context;", r"PHP Fiber: .* not told apart"),
    "lua": ("liblua5.2.so.0", "int lua_resume, lua_callk;", r"Lua 5\.2: no hook"),
    "luajit": ("libluajit-5.1.so.2", "int lua_resume, luaJIT_setmode;", r"LuaJIT: coroutines that Lua itself resumes are not told apart"),
    "state_threads": ("libst.so.2", "int st_thread_create;", r"State Threads: .* not told apart"),
    "coro": ("State.so", "int boot_Coro__State;", r"Perl's Coro: no hook"),
}
KNOWN = {
    "python": ("libpython3.11.so.1.0", "const unsigned long Py_Version = 0x030b0200;" + PYTHON),
    "boost_1.92": ("libboost_context.so.1.92.0", f"int {BOOST}jump_fcontextEPvS2_;"),
    "boost_on_ucontext": ("libboost_context.so.1.80.0", "int _ZN5boost7context6detail17activation_record7currentEv;"),
    "lua": ("liblua5.4.so.0", "int lua_resume, lua_toclose;"),
    "ruby": ("libruby-3.1.so.3.1", "int rb_fiber_resume, coroutine_transfer;"),
}
PROGRAM = """
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>
int main(int count, char **names)
{
    struct timespec used;
    for (int i = 1; i < count; i++)
        if (dlopen(names[i], RTLD_NOW) == NULL)
            puts(dlerror());
    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    while (used.tv_sec == 0 && used.tv_nsec < 100000000);
    if (count == 1)
        getchar();
}
"""


class NotKnown(shares.Shares):
    def compile(self, out, source, *options):
        compiler = shutil.which("cc") or shutil.which("gcc")
        check.need(compiler is not None, "there is no C compiler")
        subprocess.run([compiler, "-w", "-x", "c", "-", "-x", "none", "-o", self.path(out), *options], input=source.encode(), check=True)
        return self.path(out)

    def library(self, name, file, source):
        os.makedirs(self.path(name), exist_ok=True)
        return self.compile(f"{name}/{file}", source, "-shared", "-fPIC", f"-Wl,-soname,{file}")

    def record(self, *command):
        """Run it; what its last line says, and the capture."""
        path = self.path("capture.greenprof")
        done = check.greenprof("run", "-o", path, "--", *command, cwd=self.directory, stdin=subprocess.DEVNULL)
        self.assertEqual((done.returncode, done.stdout), (0, b""), done.stderr.decode())
        return done.stderr.decode(), path

    def facts(self, path, *command):
        text = check.greenprof(*command, path).stdout.decode()
        return re.findall(r"(?m)^  not known  (.*)$", text)

    def test_each_is_said(self):
        """All of them in one program, which loads them as it runs."""
        libraries = [self.library(name, *row[:2]) for name, row in UNKNOWN.items()]
        _, path = self.record(self.compile("loads", PROGRAM), *libraries)
        facts = {command: self.facts(path, command) for command in ("info", "report")}
        self.assertEqual(facts["info"], facts["report"])
        for name, (_, _, said) in UNKNOWN.items():
            if not name.startswith("python_"):  # there is one interpreter in a process: the first
                self.assertEqual(sum(re.search(said, fact) is not None for fact in facts["info"]), 1, (name, facts))
        self.assertEqual(json.loads(check.greenprof("export", path, "--format", "json").stdout)["not_known"], facts["info"])
        page = check.greenprof("export", path, "--format", "html", "-o", self.path("page.html"))
        self.assertEqual(page.returncode, 0, page.stderr.decode())
        self.assertEqual(read_page(self.path("page.html"))[0]["not_known"], facts["info"])

    def test_last_line_and_runtimes(self):
        """Each linked to a program: what `run` ends with, and `runtimes` before it was run."""
        for name, (file, source, said) in UNKNOWN.items():
            library = self.library(name, file, source)
            program = self.compile(f"with_{name}", PROGRAM, "-Wl,--no-as-needed", library, f"-Wl,-rpath,{os.path.dirname(library)}")
            with self.subTest(name):
                line, _ = self.record(program)
                self.assertRegex(line, rf"none lost;{COST} {said}[^;]*; next: greenprof explain")
                told = check.greenprof("runtimes", program).stdout.decode()
                self.assertRegex(told, rf"(?m)^not known +{re.escape(file)}: {said}")
                if name != "luajit":  # where a host resumes coroutines, they are told apart
                    self.assertNotRegex(told, r"interposed|CPython +\S+: frames")

    def test_known_ones_are_not_accused(self):
        libraries = [self.library(f"known_{name}", *row) for name, row in KNOWN.items()]
        line, path = self.record(self.compile("loads", PROGRAM), *libraries)
        self.assertNotIn("not known", line)
        self.assertEqual(self.facts(path, "info"), [])
        self.assertRegex(check.greenprof("runtimes", "/usr/bin/python3").stdout.decode(), r"^CPython +python3: frames")
        line, _ = self.record("/usr/bin/python3", "-c", "sum(range(3000000))")
        self.assertRegex(line, rf"none lost;{COST} next:")

    def maps(self, pid):
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            return maps.read()

    def test_process(self):
        library = self.library("python_to_come", *UNKNOWN["python_to_come"][:2])
        program = self.compile("waits", PROGRAM, "-Wl,--no-as-needed", library, f"-Wl,-rpath,{os.path.dirname(library)}")
        with subprocess.Popen([program], stdin=subprocess.PIPE) as process:
            check.until(lambda: "libpython3.19" in self.maps(process.pid))
            self.assertRegex(check.greenprof("runtimes", process.pid).stdout.decode(), r"not known .*Python 3\.19\.2")
            process.communicate(b"\n")

    def test_merged_once(self):
        """Two processes say the same: one line."""
        library = self.library("luajit", *UNKNOWN["luajit"][:2])
        program = self.compile("loads", PROGRAM)
        paths = [shutil.copy(self.record(program, library)[1], self.path(name)) for name in ("one", "two")]
        done = check.greenprof("merge", *paths, "-o", self.path("both"))
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(len(self.facts(self.path("both"), "info")), 1)

    def test_stacks_that_no_hook_announced(self):
        line, path = self.record_shape("unhooked", "--shape", "guarded")
        self.assertRegex(line, rf"none lost;{COST} stacks that no hook announced: [^;]+; next:")
        self.assertEqual(len(self.facts(path, "report")), 1)

    def record_shape(self, *program):
        path = self.path("capture.greenprof")
        done = check.greenprof("run", "-o", path, "--", *self.prepare([*program, 0.3, 50]), cwd=self.directory)
        return done.stderr.decode(), path

    def test_c_names_of_boost(self):
        """A program that declares the C names, where the library has C++ ones: led there, also without `run`."""
        command = self.prepare(["boost_c_names", 0.1, 50])
        self.assertEqual(subprocess.run(command, capture_output=True, timeout=check.limit()).returncode, shares.STATUS)
        self.profile(command, status=shares.STATUS)

    def test_stripped_code_that_is_not_known(self):
        """Neither symbols nor code that is known, but what every build of Boost's routines has."""
        source = "void leap(void) { __asm__(\"lea -0x88(%rsp), %rsp; stmxcsr (%rsp); fnstcw 4(%rsp); lea 0x88(%rsp), %rsp\"); }"
        program = self.compile("stripped", source + PROGRAM, "-s")
        self.assertIn("code that greenprof does not know", check.greenprof("runtimes", program).stdout.decode())


if __name__ == "__main__":
    check.main()
