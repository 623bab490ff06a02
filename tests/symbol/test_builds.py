# SPDX-License-Identifier: MIT
"""Files that were rebuilt, replaced or deleted: names of the build that ran, or none. Code that a linker has folded.

usage: test_builds.py RESOLVE GREENPROF
"""
import os, re, shutil, subprocess, sys, tempfile, unittest

RESOLVE, GREENPROF = sys.argv[1:3]
WORK = """
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
MORE __attribute__((noinline)) void NAME(void) { double end = now() + 0.05; while (now() < end) ; }
"""
MAIN = "void NAME(void);\nint main(void) { NAME(); return 0; }\n"
BEFORE = "__attribute__((used, noinline)) static void before(void) { volatile int i = 0; while (i < 100) i++; }"


class Builds(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.place = directory.name

    def path(self, name):
        return os.path.join(self.place, name)

    def build(self, name, build_id, library=False, more=""):
        """A program, or one with a library, whose function is called so."""
        options = ["-O1", f"-DNAME={name}", "-DMORE=" + more, "-Wl,--build-id=" + build_id, "-o"]
        for file, text in (("work.c", WORK), ("main.c", MAIN)):
            with open(self.path(file), "w", encoding="utf-8") as out:
                out.write(text)
        if library:
            subprocess.run(["cc", "-shared", "-fPIC", *options, "libwork.so", "work.c"], cwd=self.place, check=True)
            if name == "work_one":
                subprocess.run(["cc", *options, "program", "main.c", "./libwork.so"], cwd=self.place, check=True)
            return self.path("libwork.so")
        subprocess.run(["cc", *options, "program", "main.c", "work.c"], cwd=self.place, check=True)
        return self.path("program")

    def record(self):
        subprocess.run([GREENPROF, "run", "--quiet", "-o", "it.greenprof", "--", "./program"], cwd=self.place, check=True)

    def functions(self):
        """Those of our own that are named, and what was said on standard error."""
        done = subprocess.run([GREENPROF, "report", "-n", "100", "it.greenprof"], cwd=self.place, text=True, check=True,
                              capture_output=True)
        return set(re.findall(r"\((work_\w+|before)\)", done.stdout)), done.stderr

    def test_without_a_build_id(self):
        for library in (False, True):
            for more, words in (("", "may be another build"), (BEFORE, "is another build")):
                with self.subTest(library=library, more=bool(more)):
                    file = self.build("work_one", "none", library)
                    self.record()
                    self.assertEqual(self.functions(), ({"work_one"}, ""))
                    shutil.copy2(file, self.path("kept"))
                    self.build("work_two", "none", library, more)
                    self.assertEqual(more == "", os.path.getsize(file) == os.path.getsize(self.path("kept")))
                    named, said = self.functions()
                    self.assertEqual(named, set())
                    self.assertIn(f"{file}: {words} than the one that was profiled", said)
                    os.rename(self.path("kept"), file)  # saved with its time: the right one
                    self.assertEqual(self.functions(), ({"work_one"}, ""))

    def test_identical_code(self):
        """Where a linker made one of two functions, that is said, once; an alias in the source is no other function."""
        source = WORK.replace("MORE", "") .replace("NAME", "work_one") + "".join(line for line in WORK.splitlines(True) if "NAME" in line) \
            .replace("MORE", "").replace("NAME", "work_two") + """
extern void __work_one(void) __attribute__((alias("work_one")));
int main(void) { for (int i = 0; i < 2; i++) { work_one(); work_two(); } return 0; }
"""
        for linker in ("gold", "lld"):
            if shutil.which("ld." + linker) is None:
                self.skipTest(f"ld.{linker} is not installed")
            for fold in ("all", "none"):
                done = subprocess.run(["cc", "-O1", "-g", "-ffunction-sections", "-xc", "-", "-o", "program", "-fuse-ld=" + linker,
                                       "-Wl,--icf=" + fold], cwd=self.place, input=source, text=True, capture_output=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.record()
                named, said = self.functions()
                words = (f"{self.path('program')}: work_one and work_two are the same code, folded by the linker or an alias: "
                         "it has the first name\n")
                self.assertEqual(said, f"greenprof: {words}" if fold == "all" else "")
                self.assertEqual(named, {"work_one"} if fold == "all" else {"work_one", "work_two"})

    def test_it_had_none_and_has_one(self):
        file = self.build("work_one", "none")
        self.record()
        self.build("work_two", "sha1")
        named, said = self.functions()
        self.assertEqual(named, set())
        self.assertIn(f"{file}: ", said)

    def test_several_builds_in_one_report(self):
        """Each capture's names are of its own build."""
        file = self.build("work_one", "none")
        self.record()
        os.rename(self.path("it.greenprof"), self.path("first.greenprof"))
        self.build("work_two", "none")
        self.record()
        subprocess.run([GREENPROF, "merge", "first.greenprof", "it.greenprof", "-o", "both.greenprof"], cwd=self.place, check=True)
        os.rename(self.path("both.greenprof"), self.path("it.greenprof"))
        named, said = self.functions()
        self.assertEqual(named, {"work_two"})
        self.assertIn(f"{file}: may be another build", said)

    def test_deleted(self):
        """What the kernel calls a file that is gone: a copy that came back has its names, if the build-id says so."""
        def named(path, build_id=None):
            ask = [RESOLVE, path] + ([build_id] if build_id else [])
            return subprocess.run(ask, input=start, text=True, check=True, capture_output=True).stdout.split("\t")[0]
        for kind in ("sha1", "none"):
            file = self.build("work_one", kind)
            table = subprocess.run(["nm", file], text=True, check=True, capture_output=True).stdout
            start = next(line.split()[0] for line in table.splitlines() if line.endswith(" work_one"))
            notes = subprocess.run(["readelf", "-n", file], text=True, capture_output=True).stdout
            ident = re.search(r"Build ID: (\w+)", notes)
            self.assertEqual(named(file), "work_one")
            expected = "work_one" if kind == "sha1" else f"program (deleted)+0x{int(start, 16):x}"
            self.assertEqual(named(file + " (deleted)", ident[1] if ident else None), expected)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
