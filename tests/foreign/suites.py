# SPDX-License-Identifier: MIT
"""The suites: what each needs, the programs that run its tests, and how many tests have to run at least.

A suite is a function (quick) -> (units, at_least); quick is what tools/test runs: tests that measure no time, a few
seconds of them. at_least is what ran when the suite was added, less what differs between machines.
"""
import glob
import os
import re
import shutil
import subprocess
import sys

import everyday
import sources
from harness import Broken, Missing, Unit, need, parse_pattern, parse_results, parse_ruby, parse_status, parse_tap

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"  # Debian's: another one on the PATH may be anything


def python_unit(module, *left_out, path=None, **environment):
    words = [word for part in left_out for word in ("-x", part)]
    paths = os.pathsep.join(filter(None, [path, os.environ.get("PYTHONPATH")]))
    return Unit(module, [PYTHON, "-B", os.path.join(HERE, "run_unittest.py"), module, *words], parse_results,
                environment={"PYTHONPATH": paths, **environment})


def need_module(module, package):
    if subprocess.run([PYTHON, "-c", f"import {module}"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode != 0:
        raise Missing(f"{package} is not installed")


def modules_in(package):
    """The test modules of a package that is installed."""
    code = f"import importlib.util as u; print(u.find_spec({package!r}).submodule_search_locations[0])"
    folder = subprocess.run([PYTHON, "-c", code], text=True, capture_output=True, check=True).stdout.strip()
    names = sorted(os.path.basename(path)[:-3] for path in glob.glob(os.path.join(folder, "test_*.py")))
    return [f"{package}.{name}" for name in names]


def cpython(quick):
    need_module("test.test_generators", "libpython3.11-testsuite")
    if quick:
        return [python_unit(f"test.test_{name}") for name in ("generators", "yield_from", "coroutines")], 150
    names = ["test_generators", "test_yield_from", "test_coroutines", "test_asyncgen", "test_fork1", "test_signal",
             "test_threadsignals", "test_thread", "test_threading", "test_threading_local", "test_contextlib"]
    modules = [*(f"test.{name}" for name in names), *modules_in("test.test_asyncio")]
    return [python_unit(module) for module in modules], 2000


def greenlet(quick):
    need_module("greenlet.tests", "python3-greenlet, or python3-objgraph or python3-psutil,")
    modules = modules_in("greenlet.tests")
    if quick:
        modules = [f"greenlet.tests.test_{name}" for name in ("greenlet", "throw", "generator", "cpp", "tracing")]
    return [python_unit(module) for module in modules], 75 if quick else 110


def eventlet(quick):
    need_module("eventlet", "python3-eventlet")
    need_module("nose", "python3-nose")  # of its tests
    folder = sources.source("python-eventlet")
    modules = sorted(os.path.basename(path)[:-3] for path in glob.glob(os.path.join(folder, "tests", "*_test.py")))
    return [python_unit(f"tests.{module}", path=folder, EVENTLET_IMPORT_VERSION_ONLY="0") for module in modules], 300


def gevent(quick):
    need_module("gevent", "python3-gevent")
    folder = os.path.join(sources.source("python-gevent"), "src", "gevent", "tests")
    paths = sorted(glob.glob(os.path.join(folder, "test__*.py")))
    names = [os.path.basename(path)[:-3] for path in paths]
    return [python_unit(name, path=f"{tests_of_gevent()}{os.pathsep}{folder}") for name in names], 500


def tests_of_gevent():
    """gevent.testing and gevent.tests, which Debian's package lacks, beside the installed gevent: a folder with a
    sitecustomize.py that adds them to its path."""
    folder = os.path.join(sources.CACHE, "built", "gevent-tests")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "gevent_tests.pth.py"), "w"):
        pass
    with open(os.path.join(folder, "sitecustomize.py"), "w") as file:
        file.write("import gevent\n"
                   f"gevent.__path__.append({os.path.join(sources.source('python-gevent'), 'src', 'gevent')!r})\n")
    return folder


def perl_coro(quick):
    need("perl")
    if subprocess.run(["perl", "-MCoro", "-e", "1"], capture_output=True, stdin=subprocess.DEVNULL).returncode != 0:
        raise Missing("libcoro-perl is not installed")
    folder = sources.source("libcoro-perl")
    return [Unit(os.path.basename(path), ["perl", path], parse_tap, folder) for path in
            sorted(glob.glob(os.path.join(folder, "t", "*.t")))], 100


PTH_BUILD = """
mkdir made
for test in std mp; do
    gcc -O1 -g -w -o made/$test test_$test.c test_common.c -lpth
done
"""


def pth(quick):
    need("gcc", "dpkg-source")
    if not os.path.exists("/usr/include/pth.h"):
        raise Missing("libpth-dev is not installed")
    folder = sources.build("pth", "pth", PTH_BUILD)
    made = sorted(os.listdir(os.path.join(folder, "made")))
    return [Unit(name, [os.path.join(folder, "made", name)], parse_status, folder) for name in made], 2


def ruby(quick):
    need("ruby")
    folder = sources.source("ruby3.1")
    files = ["test/ruby/test_fiber.rb", "test/ruby/test_enumerator.rb", "test/ruby/test_thread.rb",
             "test/ruby/test_thread_queue.rb", *sorted(os.path.relpath(path, folder) for path in
             glob.glob(os.path.join(folder, "test", "fiber", "test_*.rb")))]
    command = ["ruby", "-W0", "-Itool/lib", "-Itest/lib", "test/runner.rb", "-v", "--tty=no", "--seed=1"]
    return [Unit(file, [*command, file], parse_ruby, folder,
                 {"RUBY_TEST_TIMEOUT_SCALE": "10"}) for file in files], 200


def php(quick):
    need("php")
    folder = os.path.join(sources.source("php8.2"), "Zend", "tests", "fibers")
    runner = os.path.join(sources.source("php8.2"), "run-tests.php")
    php_path = os.path.realpath(shutil.which("php"))
    files = sorted(glob.glob(os.path.join(folder, "*.phpt")))
    if quick:
        files = files[::6]
    pattern = r"^(?P<result>PASS|FAIL|SKIP|BORK|WARN|LEAK|XFAIL) (?P<name>.*\.phpt\])"
    command = ["php", "-n", runner, "-n", "-q", "-p", php_path, "--no-progress", *files]
    environment = {"TEST_PHP_EXECUTABLE": php_path, "NO_INTERACTION": "1", "SKIP_IO_CAPTURE_TESTS": "1"}
    return [Unit("fibers", command, parse_pattern(pattern), None, environment)], 10 if quick else 75


# The block layer alone, and of that what the test is linked with. -O2 -g as everywhere in QEMU.
QEMU_BUILD = """
./configure --without-default-features --disable-system --disable-user --enable-tools --disable-docs \\
    --disable-guest-agent --disable-werror --disable-strip --with-coroutine=ucontext
ninja -C build tests/unit/test-coroutine
"""


def qemu(quick):
    need("gcc", "meson", "ninja", "pkg-config")
    if subprocess.run(["pkg-config", "--exists", "glib-2.0"]).returncode != 0:
        raise Missing("libglib2.0-dev is not installed")
    path = os.path.join(sources.build("qemu", "qemu", QEMU_BUILD), "build", "tests", "unit", "test-coroutine")
    perf = [path, "-m", "perf", "-p", "/perf", "-s", "/perf/nesting"]  # which makes 10 million coroutines in a minute
    return [Unit("test-coroutine", [path], parse_tap), Unit("perf", perf, parse_tap)], 16


BOOST_BUILD = """
mkdir made
ls libs/{library}/test/test_*.cpp | xargs -P "$(nproc)" -I FILE sh -c '
    g++ -O1 -w -std=c++17 -o made/$(basename FILE .cpp) FILE /usr/lib/*/libboost_unit_test_framework.a \\
        -lboost_fiber -lboost_context -lboost_thread -lboost_chrono -lpthread'
"""


def boost(library, left_out, at_least):
    def suite(quick):
        need("g++")
        if not os.path.exists("/usr/include/boost/fiber") or not glob.glob("/usr/lib/*/libboost_unit_test_framework.a"):
            raise Missing("libboost-fiber-dev or libboost-test-dev is not installed")
        made = os.path.join(sources.build("boost1.74", f"boost_{library}", BOOST_BUILD.format(library=library)), "made")
        pattern = r'^ *Test case "(?P<name>[^"]+)" has (?P<result>\w+)'
        return [Unit(name, [os.path.join(made, name), "--report_level=detailed", "--color_output=no"],
                     parse_pattern(pattern)) for name in sorted(os.listdir(made)) if name not in left_out], at_least
    return suite


SUITES = {"cpython": cpython, "greenlet": greenlet, "eventlet": eventlet, "gevent": gevent, "ruby": ruby, "php": php,
          "pth": pth, "perl_coro": perl_coro, "qemu": qemu,
          "boost_context": boost("context", (), 20), "boost_fiber": boost("fiber", (), 150), **everyday.SUITES}
