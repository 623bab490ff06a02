# SPDX-License-Identifier: MIT
"""Debian packages of tools/package: what is in them, what they need, and that they work where they are installed.

usage: test_package.py SOURCE_ROOT FOLDER GREENPROF TRIPLET
"""
import glob
import gzip
import os
import re
import shutil
import subprocess
import sys
import unittest

ROOT, FOLDER, GREENPROF, TRIPLET = sys.argv[1:5]
PACKAGES, SCRATCH, WORK = (os.path.join(FOLDER, name) for name in ("packages", "root", "work"))
LIBDIR = f"usr/lib/{TRIPLET}"
VERSION = subprocess.run([GREENPROF, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
NAMES = ["libgreenprof-dev", "libgreenprof0", "libgreenprof0-dbgsym", "python3-greenprof", "python3-greenprof-dbgsym"]

PROGRAM = """
#include <greenprof/prof.h>
#include <string.h>
__attribute__((noinline)) static void spin(prof_t *profile)
{
    while (prof_total_ns(profile) < 100000000)
        ;
}
int main(int argc, char **argv)
{
    prof_t *profile = prof_start(NULL);
    if (profile == NULL || argc != 2 || strcmp(prof_version(NULL, NULL, NULL), VERSION) != 0)
        return 1;
    spin(profile);
    return prof_stop(profile) != 0 || prof_dump_stats(profile, argv[1]) != 0;
}
"""


def run(*command, **options):
    result = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    assert result.returncode == 0, f"{command}: status {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def package(name):
    found = glob.glob(os.path.join(PACKAGES, name + "_*.deb"))
    assert len(found) == 1, (name, found)
    return found[0]


def field(name, which):
    return run("dpkg-deb", "-f", package(name), which).strip()


def content(name):
    """{path: (mode and kind, owner, target of a link)}"""
    found = {}
    for line in run("dpkg-deb", "-c", package(name)).splitlines():
        mode, owner, _, _, _, path = line.split(maxsplit=5)
        path, _, target = path.partition(" -> ")
        found[path.removeprefix("./")] = (mode, owner, target)
    return found


def place(path):
    return os.path.join(SCRATCH, path)


def setUpModule():
    for tool in ("dpkg", "dpkg-deb", "dpkg-shlibdeps", "pkg-config", "cmake", "ninja"):
        if shutil.which(tool) is None:
            raise unittest.SkipTest(f"no {tool}")
    for folder in (SCRATCH, WORK, PACKAGES):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
    builder = {**os.environ, "DEBFULLNAME": "A Builder", "DEBEMAIL": "builder@debian.org"}
    run(os.path.join(ROOT, "tools", "package"), "--build", os.path.join(FOLDER, "build"), "--into", PACKAGES, env=builder)
    for name in NAMES:
        run("dpkg-deb", "-x", package(name), SCRATCH)


class Contents(unittest.TestCase):
    def test_packages(self):
        self.assertEqual(sorted(os.path.basename(path).split("_")[0] for path in glob.glob(PACKAGES + "/*")), NAMES)
        for name in NAMES:
            self.assertEqual(field(name, "Version"), VERSION + "-1")
            self.assertEqual(field(name, "Maintainer"), "A Builder <builder@debian.org>")

    def test_owners_and_modes(self):
        for name in NAMES:
            for path, (mode, owner, target) in content(name).items():
                self.assertEqual(owner, "root/root", path)
                is_program = path.startswith("usr/bin/") or mode.startswith("d")
                self.assertEqual(mode[1:], "rwxrwxrwx" if target else "rwxr-xr-x" if is_program else "rw-r--r--", path)

    def test_libraries_and_links(self):
        runtime, dev = content("libgreenprof0"), content("libgreenprof-dev")
        for library in ("libgreenprof", "libgreenprof-core"):
            self.assertEqual(runtime[f"{LIBDIR}/{library}.so.0"][2], f"{library}.so.{VERSION}")
            self.assertEqual(dev[f"{LIBDIR}/{library}.so"][2], f"{library}.so.0")
            self.assertNotIn(f"{LIBDIR}/{library}.so", runtime)
            dynamic = run("readelf", "-dW", place(f"{LIBDIR}/{library}.so.0"))
            self.assertRegex(dynamic, rf"SONAME.*\[{library}\.so\.0\]")
            self.assertNotRegex(dynamic, "RPATH|RUNPATH")
            self.assertNotIn(".debug_info", run("readelf", "-SW", place(f"{LIBDIR}/{library}.so.0")))

    def test_files_of_each(self):
        runtime, dev, python = (set(content(name)) for name in ("libgreenprof0", "libgreenprof-dev", "python3-greenprof"))
        for path in ("bin/greenprof", "share/man/man1/greenprof.1.gz", "share/man/man1/greenprof-report.1.gz",
                     "share/bash-completion/completions/greenprof", "share/doc/libgreenprof0/copyright"):
            self.assertIn("usr/" + path, runtime)
        for path in ("usr/include/greenprof/prof.h", f"{LIBDIR}/libgreenprof.a", f"{LIBDIR}/pkgconfig/greenprof.pc",
                     f"{LIBDIR}/cmake/greenprof/greenprofConfig.cmake", "usr/share/man/man3/prof_start.3.gz"):
            self.assertIn(path, dev)
        self.assertIn("usr/lib/python3/dist-packages/greenprof/__init__.py", python)
        self.assertFalse([path for path in runtime | dev | python if re.search(r"/man[0-9]/.*[0-9]$", path)], "not compressed")
        self.assertFalse([path for path in runtime & dev | runtime & python if not path.endswith("/")], "in two packages")
        with gzip.open(place("usr/share/doc/python3-greenprof/changelog.Debian.gz"), "rt") as changelog:
            self.assertTrue(changelog.readline().startswith(f"greenprof ({VERSION}-1) "))

    def test_dependencies(self):
        same = f"libgreenprof0 (= {VERSION}-1)"
        runtime, dev, python = (field(name, "Depends").split(", ") for name in ("libgreenprof0", "libgreenprof-dev", "python3-greenprof"))
        for needed in ("libc6", "libssl3", "zlib1g", "libcurl4"):  # by dpkg-shlibdeps
            self.assertTrue([one for one in runtime if re.match(needed + r"(t64)? \(>= ", one)], (needed, runtime))
        self.assertIn("libdebuginfod1 | libdebuginfod1t64", runtime)
        self.assertFalse([one for one in runtime if re.match("python|libhiredis|libjansson", one)], "not the same in each Debian")
        self.assertEqual(dev, [same])
        self.assertIn(same, python)
        self.assertTrue([one for one in python if one.startswith("python3 (>= 3.")], python)
        self.assertFalse([one for one in python if "<<" in one], "for one Python only")
        self.assertEqual(field("libgreenprof0-dbgsym", "Depends"), same)
        self.assertEqual(run("dpkg-deb", "-I", package("libgreenprof0"), "shlibs").splitlines(),
                         [f"{library} 0 libgreenprof0 (>= {VERSION})" for library in ("libgreenprof", "libgreenprof-core", "libgreenprof-otel",
                                                                                     "libgreenprof-ship", "libgreenprof-redis")])
        self.assertEqual(run("dpkg-deb", "-I", package("libgreenprof0"), "triggers"), "activate-noawait ldconfig\n")

    def test_no_struct_of_a_library_is_copied(self):
        """The command's copy would have the length of this Debian's library, which another one tells at each start."""
        command = place("usr/bin/greenprof")
        copied = set(re.findall(r"_COPY +\S+ ([^@ ]+)", run("readelf", "-rW", command)))
        sizes = {name: int(size, 0) for size, name in re.findall(r": \S+ +(\S+) OBJECT .* ([^@ \n]+)(?:@\S+)?(?: \(\d+\))?$",
                                                                 run("readelf", "--dyn-syms", "-W", command), re.M)}
        self.assertTrue(copied)
        self.assertEqual([name for name in copied if sizes.get(name, 0) > 8], [])

    def test_debug_symbols(self):
        for path in (f"{LIBDIR}/libgreenprof.so.0", f"{LIBDIR}/libgreenprof-core.so.0", "usr/bin/greenprof"):
            build_id = re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-nW", place(path)))[1]
            debug = place(f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug")
            self.assertIn(".debug_info", run("readelf", "-SW", debug), path)

    def test_lintian(self):
        if shutil.which("lintian") is None:
            self.skipTest("no lintian")
        result = subprocess.run(["lintian", "--fail-on", "error,warning", *(package(name) for name in NAMES)], stdin=subprocess.DEVNULL,
                                capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)


class Use(unittest.TestCase):
    """From the scratch root, which the loader, pkg-config, CMake and Python are pointed at."""

    def setUp(self):
        self.environment = {**os.environ, "LD_LIBRARY_PATH": place(LIBDIR), "PKG_CONFIG_PATH": place(LIBDIR + "/pkgconfig"),
                            "PYTHONPATH": place("usr/lib/python3/dist-packages")}
        with open(os.path.join(WORK, "program.c"), "w", encoding="utf-8") as source:
            source.write(PROGRAM)

    def run_inside(self, *command):
        return run(*command, cwd=WORK, env=self.environment)

    def check_stats(self, name):
        functions = self.run_inside("/usr/bin/python3", "-c", "import pstats, sys; print(*(f for _, _, f in pstats.Stats(sys.argv[1]).stats))", name)
        self.assertIn("spin", functions.split())

    def test_dpkg_installs_them(self):
        if os.geteuid() != 0:
            self.skipTest("dpkg installs as root only")
        root = os.path.join(WORK, "installed")
        os.makedirs(os.path.join(root, "var/lib/dpkg"))
        with open(os.path.join(root, "var/lib/dpkg/status"), "w", encoding="utf-8"):
            pass
        # Dependencies on other packages are not in that root.
        run("dpkg", "--root=" + root, "--force-depends", "--force-unsafe-io", "--no-triggers", "--log=/dev/null", "-i", *map(package, NAMES))
        self.assertEqual(run("dpkg", "--root=" + root, "--verify"), "")
        self.assertIn("usr/bin/greenprof", run("dpkg", "--root=" + root, "-L", "libgreenprof0"))

    def test_command(self):
        capture = os.path.join(WORK, "run.greenprof")
        command = place("usr/bin/greenprof")
        # The program needs nothing of greenprof; the command finds its library beside itself.
        run(command, "run", "-o", capture, "--", "sh", "-c", f"exec gzip -9 -k -c {command} >/dev/null", cwd=WORK)
        self.assertIn("CPU time", run(command, "report", capture, "-n", "3"))

    def test_pkg_config(self):
        flags = self.run_inside("pkg-config", "--cflags", "--libs", "greenprof").split()
        self.run_inside("gcc", "-O1", "-Wall", "-Werror", f'-DVERSION="{VERSION}"', "program.c", *flags, "-o", "by_pkg_config")
        self.assertRegex(run("readelf", "-dW", os.path.join(WORK, "by_pkg_config")), r"NEEDED.*\[libgreenprof\.so\.0\]")
        self.run_inside("./by_pkg_config", "by_pkg_config.prof")
        self.check_stats("by_pkg_config.prof")

    def test_cmake(self):
        with open(os.path.join(WORK, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write(f"""cmake_minimum_required(VERSION 3.20)
                           project(user C)
                           find_package(greenprof {VERSION} REQUIRED)
                           add_executable(by_cmake program.c)
                           target_compile_definitions(by_cmake PRIVATE VERSION="{VERSION}")
                           target_link_libraries(by_cmake greenprof::greenprof)\n""")
        self.run_inside("cmake", "-S", ".", "-B", "cmake", "-G", "Ninja", "-DCMAKE_PREFIX_PATH=" + place("usr"))
        self.run_inside("cmake", "--build", "cmake")
        self.run_inside("cmake/by_cmake", "by_cmake.prof")
        self.check_stats("by_cmake.prof")

    def test_python(self):
        script = ("import greenprof, time\n"
                  "def spin(end):\n"
                  "    while time.thread_time() < end: pass\n"
                  "with greenprof.Profile() as profile: spin(time.thread_time() + 0.1)\n"
                  "profile.dump_stats('python.prof')\n"
                  "print(greenprof.__version__, greenprof.__file__)\n")
        version, path = self.run_inside("/usr/bin/python3", "-c", script).split()
        self.assertEqual(version, VERSION)
        self.assertTrue(path.startswith(SCRATCH), path)
        self.check_stats("python.prof")


if __name__ == "__main__":
    program = unittest.main(argv=sys.argv[:1], verbosity=1, exit=False)
    sys.exit(77 if program.result.skipped and not program.result.testsRun else not program.result.wasSuccessful())
