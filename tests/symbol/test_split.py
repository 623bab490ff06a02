# SPDX-License-Identifier: MIT
"""Split DWARF: each address has the names and lines that the same program has with all of its DWARF in one file.

usage: test_split.py RESOLVE GREENPROF
"""
import os, shutil, subprocess, sys, tempfile, unittest

RESOLVE, GREENPROF = sys.argv[1:3]
SOURCES = {
    "header.h": """
template <class T> struct Sum { T all; Sum() : all(0) {} void add(T more) { if (more % 3) all += more * more; } };
inline __attribute__((always_inline)) long inner(long n) { Sum<long> s; for (long i = 0; i < n; i++) s.add(i); return s.all; }
""",
    "one.cc": """
#include <stdlib.h>
#include "header.h"
long two(long n);
__attribute__((noinline, cold)) void rare(long n) { if (n > 7) abort(); }
static inline long middle(long n) { return inner(n) + inner(n + 1); }
__attribute__((noinline)) long one(long n) { if (__builtin_expect(n > 1000, 0)) rare(n); return middle(n) ^ two(n); }
int main(int argc, char **) { volatile long kept = one(argc); return (void)kept, 0; }
""",
    "two.cc": """
#include "header.h"
namespace shop { struct Basket { long items; __attribute__((noinline)) long total(long n); }; }
long shop::Basket::total(long n) { return inner(n) + items; }
long two(long n) { shop::Basket basket = {n}; return basket.total(n + 1); }
"""}
FORMS = {  # how the objects are compiled, by the compiler: after what both programs are compiled with
    "g++": {"": [], "types": ["-fdebug-types-section"], "old zlib": ["-gz=zlib-gnu"]},
    "clang++": {"": [], "types": ["-fdebug-types-section"], "inlining": ["-fsplit-dwarf-inlining"]}}


def run(*command, **options):
    return subprocess.run(command, check=True, text=True, capture_output=True, **options).stdout


class Split(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.place = directory.name
        for name, text in SOURCES.items():
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)

    def path(self, *names):
        return os.path.join(self.place, *names)

    def build(self, compiler, name, *options):
        for unit in ("one", "two"):
            run(compiler, "-O2", "-g", *options, "-c", unit + ".cc", cwd=self.place)
        run(compiler, "one.o", "two.o", "-o", name, "-Wl,--build-id=sha1", cwd=self.place)

    def answers(self, program):
        """What is said of each byte of code; the program's own path left out."""
        line = next(line.split() for line in run("objdump", "-h", program).splitlines() if " .text " in line)
        start, size = int(line[3], 16), int(line[2], 16)
        out = run(RESOLVE, program, input="".join(f"{at:x}\n" for at in range(start, start + size)))
        return out.replace(program, "").replace(os.path.basename(program) + "+", "+").splitlines()

    def both(self, compiler, *options):
        self.build(compiler, "whole", *options)
        self.build(compiler, "split", *options, "-gsplit-dwarf")
        whole, split = self.answers(self.path("whole")), self.answers(self.path("split"))
        self.assertGreater(sum(line.count("inner(long)") for line in whole), 50)
        return whole, split

    def each(self):
        for compiler, forms in FORMS.items():
            if shutil.which(compiler) is None:
                self.skipTest(f"{compiler} is not installed")
            for version in "45":
                for form, options in forms.items():
                    with self.subTest(f"{compiler} {form}, DWARF {version}"):
                        yield compiler, [f"-gdwarf-{version}", *options]

    def test_dwo_and_dwp(self):
        """Beside the objects; then all together beside the program."""
        for compiler, options in self.each():
            whole, split = self.both(compiler, *options)
            self.assertEqual(split, whole)
            if shutil.which("llvm-dwp") is None or "-gz=zlib-gnu" in options:
                continue  # llvm-dwp 14 does not read these
            run("llvm-dwp", "-e", "split", "-o", "split.dwp", cwd=self.place)
            for unit in ("one.dwo", "two.dwo"):
                os.unlink(self.path(unit))
            self.assertEqual(self.answers(self.path("split")), whole)
            os.unlink(self.path("split.dwp"))

    def test_in_the_object(self):
        for version in "45":
            if shutil.which("clang++") is None:
                self.skipTest("clang++ is not installed")
            self.build("clang++", "whole", f"-gdwarf-{version}")
            self.build("clang++", "split", f"-gdwarf-{version}", "-gsplit-dwarf=single")
            self.assertEqual(self.answers(self.path("split")), self.answers(self.path("whole")))

    def test_moved(self):
        """The program and its .dwo files are together at another place."""
        whole, _ = self.both("g++")
        os.mkdir(self.path("moved"))
        for name in ("split", "one.dwo", "two.dwo"):
            os.rename(self.path(name), self.path("moved", name))
        self.assertEqual(self.answers(self.path("moved", "split")), whole)

    def test_missing(self):
        """Each function is one function, in the file of its first line, and it is said what is missing."""
        for other_build in (False, True):
            whole, _ = self.both("g++")
            os.unlink(self.path("two.dwo"))
            if other_build:
                run("g++", "-O1", "-g", "-gsplit-dwarf", "-c", "two.cc", cwd=self.place)
            functions = {}
            for line, truth in zip(self.answers(self.path("split")), whole):
                outermost, expected = line.split("\t")[-4:], truth.split("\t")[-4:]
                self.assertEqual(outermost[0], expected[0])
                functions.setdefault(outermost[0], set()).add((outermost[1], outermost[3]))
            self.assertEqual({name: files for name, files in functions.items() if len(files) > 1}, {})
            self.assertEqual(functions["two(long)"], {(self.path("two.cc"), "0")})
            self.assertEqual({file for file, _ in functions["one(long)"]}, {self.path("one.cc")})

    def test_report(self):
        with open(self.path("one.cc"), "a", encoding="utf-8") as file:
            file.write("__attribute__((constructor)) static void busy() { for (long i = 0; i < 150000; i++) two(i % 1000); }\n")
        self.build("g++", "busy", "-gsplit-dwarf")
        run(GREENPROF, "run", "--quiet", "-o", "it.greenprof", "--", "./busy", cwd=self.place)
        report = subprocess.run([GREENPROF, "report", "it.greenprof"], cwd=self.place, text=True, capture_output=True)
        self.assertIn("(inner(long))", report.stdout)
        self.assertEqual(report.stderr, "")
        os.unlink(self.path("two.dwo"))
        report = subprocess.run([GREENPROF, "report", "it.greenprof"], cwd=self.place, text=True, capture_output=True)
        self.assertEqual(report.stdout.count("(shop::Basket::total(long))"), 1)
        self.assertNotIn("(inner(long))", report.stdout)
        self.assertIn(f"1 of its .dwo files is missing, or of another build, {self.path('two.dwo')}", report.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
