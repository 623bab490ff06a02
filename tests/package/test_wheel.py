# SPDX-License-Identifier: MIT
"""The wheel: what is in it, what its tag claims, and that it works wherever pip puts it, without a path in the environment.

usage: test_wheel.py SOURCE_ROOT BUILD FOLDER
"""
import base64
import csv
import email
import glob
import hashlib
import importlib.metadata
import io
import os
import pstats
import re
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import unittest
import zipfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), *place) for place in ([".."], ["..", "..", "tools", "wheel"])]
import backend  # noqa: E402
import elf  # noqa: E402
import helpers  # noqa: E402
import measured  # noqa: E402
import pack  # noqa: E402

ROOT, BUILD, FOLDER = sys.argv[1:4]
VERSION, OTHER = backend._version(), "7.7.7"  # as long
PYTHON = "/usr/bin/python3"
# Nothing that leads to greenprof, nor pip to a network.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": FOLDER, "LANG": "C.UTF-8", "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull,
               "PIP_NO_CACHE_DIR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ROOT_USER_ACTION": "ignore", "PYTHONDONTWRITEBYTECODE": "1"}
PROGRAM = """
import sys, time
def spin(end):
    while time.thread_time() < end: pass
def twice():
    spin(time.thread_time() + 0.4)
def once():
    spin(time.thread_time() + 0.2)
if "profile" in sys.argv:
    import greenprof
    with greenprof.Profile() as profile:
        twice(); once()
    profile.dump_stats(sys.argv[-1])
else:
    twice(); once()
print(*sorted({line.split(maxsplit=5)[5].strip() for line in open("/proc/self/maps") if "greenprof" in line}), sep="\\n")
"""


def run(*command, status=0, **options):
    return helpers.run(command, status, **{"env": ENVIRONMENT, "cwd": FOLDER, **options}).stdout


def place(*names):
    return os.path.join(FOLDER, *names)


def pip(*arguments, into=None, **options):
    return run(PYTHON, "-m", "pip", *(["--python", os.path.join(into, "bin", "python")] if into else []), *arguments, **options)


def make_venv(name, *options, wheel=None):
    """Without a pip of its own, which takes seconds."""
    folder = place(name)
    run(PYTHON, "-m", "venv", "--without-pip", *options, folder)
    pip("install", "-q", "--no-compile", wheel or WHEEL, into=folder)
    return folder


def files_of(folder):
    return {os.path.relpath(os.path.join(at, name), folder) for at, folders, names in os.walk(folder) for name in names + folders}


def setUpModule():
    global WHEEL
    for module in ("pip", "ensurepip", "venv"):
        if subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True).returncode != 0:
            raise unittest.SkipTest(f"no Python module {module}: python3-pip, python3-venv")
    subprocess.run(["chmod", "-Rf", "u+w", FOLDER])
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(place("wheels"))
    with open(place("app.py"), "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    pip("wheel", "-q", "--no-deps", "-w", place("wheels"), "--config-settings", f"build={BUILD}", ROOT, cwd="/")
    WHEEL, = glob.glob(place("wheels", "*"))


def unpacked(name, wheel=None):
    with zipfile.ZipFile(wheel or WHEEL) as archive:
        archive.extractall(place(name))
    return place(name)


def elves_in(folder):
    found = []
    for path in (os.path.join(folder, name) for name in sorted(files_of(folder))):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                found += [path] if file.read(4) == b"\x7fELF" else []
    return found


class Content(unittest.TestCase):
    def test_record(self):
        with zipfile.ZipFile(WHEEL) as archive:
            record = {name: (digest, size) for name, digest, size in csv.reader(io.StringIO(archive.read(f"{backend.DIST_INFO}/RECORD").decode()))}
            self.assertEqual(sorted(record), sorted(archive.namelist()))
            for name, (digest, size) in record.items():
                content = archive.read(name)
                right = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
                self.assertEqual((digest, size), ("", "") if name.endswith("/RECORD") else (f"sha256={right}", str(len(content))), name)

    def test_metadata(self):
        with zipfile.ZipFile(WHEEL) as archive:
            said, wheel = (email.message_from_bytes(archive.read(f"{backend.DIST_INFO}/{name}")) for name in ("METADATA", "WHEEL"))
            entries = archive.read(f"{backend.DIST_INFO}/entry_points.txt").decode()
        self.assertEqual((said["Name"], said["Version"], said["Requires-Python"]), ("greenprof", VERSION, ">=3.11"))
        self.assertEqual((wheel["Wheel-Version"], wheel["Root-Is-Purelib"]), ("1.0", "false"))
        self.assertEqual(os.path.basename(WHEEL), f"greenprof-{VERSION}-{wheel['Tag']}.whl")
        self.assertTrue(said.get_payload().startswith("# greenprof"))
        self.assertIn("[paste.filter_factory]\nmain = greenprof.wsgi:filter_factory\n", entries)

    def test_tag(self):
        """What readelf sees: no library but the system's, and no newer glibc than the tag says."""
        bundled, versions = {"libgreenprof.so.0"}, {(0, 0)}
        for path in elves_in(unpacked("tag")):
            needed = set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-dW", path)))
            self.assertLessEqual(needed, bundled | elf.SYSTEM, path)
            told = run("readelf", "-VW", path)
            versions |= {tuple(map(int, one.split("."))) for one in re.findall(r"Name: GLIBC_([0-9.]+) ", told)}
            self.assertNotIn("PRIVATE", told)
        newest = max(versions)
        self.assertEqual(os.path.basename(WHEEL).split("-")[-1], f"manylinux_{newest[0]}_{newest[1]}_{os.uname().machine}.whl")

    def test_extension_is_of_no_version(self):
        told = run("nm", "-D", "--undefined-only", os.path.join(unpacked("extension"), "greenprof/_greenprof.so"))
        symbols = {line.split()[-1] for line in told.splitlines()}
        self.assertEqual({one for one in symbols if one.startswith("_Py")}, {"_Py_NoneStruct", "_Py_TrueStruct", "_Py_FalseStruct"})

    def test_it_is_the_same_again(self):
        os.makedirs(place("again"))
        again = place("again", backend.build_wheel(place("again"), {"build": BUILD}))
        self.assertEqual(*(run("sha256sum", path).split()[0] for path in (WHEEL, again)))

    def test_source_distribution(self):
        for name in ("sdist", "sdist2"):
            os.makedirs(place(name))
            backend.build_sdist(place(name))
        digests = [run("sha256sum", place(name, backend.NAME + ".tar.gz")).split()[0] for name in ("sdist", "sdist2")]
        self.assertEqual(*digests)
        with tarfile.open(place("sdist", backend.NAME + ".tar.gz")) as archive:
            archive.extractall(place("unpacked"))
        root = place("unpacked", backend.NAME)
        run(PYTHON, "-c", "import backend, sys; backend.prepare_metadata_for_build_wheel('.')", cwd=place("sdist"),
            env={**ENVIRONMENT, "PYTHONPATH": os.path.join(root, "tools", "wheel")})
        with open(place("sdist", backend.DIST_INFO, "METADATA"), encoding="utf-8") as made, open(os.path.join(root, "PKG-INFO"), encoding="utf-8") as told:
            self.assertEqual(made.read(), told.read())
        self.assertTrue(os.access(os.path.join(root, "tools", "setup"), os.X_OK))


class Refused(unittest.TestCase):
    """What is no whole wheel is none."""

    def setUp(self):
        self.folder = place("staged")
        shutil.rmtree(self.folder, ignore_errors=True)
        unpacked("staged")
        os.rename(os.path.join(self.folder, f"{backend.NAME}.data", "scripts"), os.path.join(self.folder, "bin"))
        backend.check(self.folder)

    def check_refused(self, part, text):
        with self.assertRaises(SystemExit) as refused:
            backend.check(self.folder)
        self.assertRegex(str(refused.exception), rf"^greenprof: .*{re.escape(part)}.*{text}")

    def test_missing(self):
        for part in backend.PARTS:
            path = os.path.join(self.folder, part)
            os.rename(path, path + ".away")
            self.check_refused(part, "missing")
            os.rename(path + ".away", path)

    def test_cut(self):
        for part in backend.BINARIES:
            path = os.path.join(self.folder, part)
            with open(path, "rb") as file:
                whole = file.read()
            for size in (0, 3, 40, 63, 200, len(whole) // 3, len(whole) - 1):
                with open(path, "wb") as file:
                    file.write(whole[:size])
                self.check_refused(part, "")
            with open(path, "wb") as file:
                file.write(whole)

    def test_another_library(self):
        shutil.copy(os.path.join(self.folder, backend.CORE), os.path.join(self.folder, backend.LIBRARY))
        self.check_refused(backend.LIBRARY, "its name inside is libgreenprof-core")

    def test_build_folders(self):
        for folder, text in ((FOLDER, "no build folder"), (place("nowhere"), "no build folder"), (place("foreign"), "of another tree")):
            os.makedirs(place("foreign"), exist_ok=True)
            with open(place("foreign", "CMakeCache.txt"), "w", encoding="utf-8") as file:
                file.write("CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere\n")
            with self.assertRaisesRegex(SystemExit, text):
                backend.build_wheel(FOLDER, {"build": folder})

    def test_tags(self):
        def tag(*versions, needed=("libc.so.6",), machine="x86_64"):
            one = type("Elf", (), {"path": "x", "machine": machine, "needed": needed, "versions": {("libc.so.6", version) for version in versions}})
            return elf.platform_tag([one], {"libours.so"})
        self.assertEqual(tag("GLIBC_2.2.5"), ("manylinux_2_17_x86_64", []))
        self.assertEqual(tag("GLIBC_2.9", "GLIBC_2.34", "GLIBC_2.4")[0], "manylinux_2_34_x86_64")
        self.assertEqual(tag("GLIBC_ABI_DT_RELR", "GLIBC_2.35", needed=["libours.so"])[0], "manylinux_2_36_x86_64")
        self.assertEqual(tag("GLIBC_PRIVATE"), ("linux_x86_64", ["x: needs GLIBC_PRIVATE of libc.so.6"]))
        self.assertEqual(tag(needed=["libcurl.so.4"], machine="aarch64"), ("linux_aarch64", ["x: needs libcurl.so.4"]))
        self.assertEqual(tag(needed=["libc.musl-x86_64.so.1"])[0], "linux_x86_64")


class Installed(measured.Case):
    def check_profile(self, path):
        stats = {function: row[3] for (_, _, function), row in pstats.Stats(path).stats.items()}
        self.near("of the time in twice()", stats["twice"] / (stats["once"] + stats["twice"]), 2 / 3, 0.1, samples=600)

    def check_run(self, folder, python=None, libraries=None, **options):
        """An unchanged program under the command; libraries are where they belong."""
        python, capture, profile = python or os.path.join(folder, "bin", "python"), place("run.greenprof"), place("run.prof")
        for name in glob.glob(place("run.*")):
            os.unlink(name)
        command = os.path.join(folder, "bin", "greenprof")
        maps = run(command, "run", "-q", "-o", capture, "--", python, place("app.py"), **options).split("\n")
        run(command, "export", "--format", "pstats", capture, "-o", profile, **options)
        self.check_profile(profile)
        self.assertTrue([one for one in maps if one.startswith(libraries or folder)], maps)
        self.assertFalse([one for one in maps if one and not one.startswith((libraries or folder, "/dev", "/memfd", place("run")))], maps)

    def check_import(self, python, **options):
        run(python, place("app.py"), "profile", place("inside.prof"), **options)
        self.check_profile(place("inside.prof"))

    def test_program(self):
        """By the venv's own pip, from the start."""
        folder = place("v")
        run(PYTHON, "-m", "venv", folder)
        before = files_of(folder)
        run(os.path.join(folder, "bin", "pip"), "install", "-q", WHEEL)
        python = os.path.join(folder, "bin", "python")
        self.check_run(folder)
        self.check_import(python)
        run(python, "-m", "greenprof", "-o", place("module.prof"), place("app.py"))
        self.check_profile(place("module.prof"))
        # Inside of what the command profiles, too.
        run(os.path.join(folder, "bin", "greenprof"), "run", "-q", "-o", place("both.greenprof"), "--", python, place("app.py"), "profile", place("both.prof"))
        self.check_profile(place("both.prof"))
        points = run(python, "-c", "import importlib.metadata as m; print(*(p.load().__name__ for p in m.entry_points(group='paste.filter_factory')))")
        self.assertEqual(points, "filter_factory\n")
        run(os.path.join(folder, "bin", "pip"), "uninstall", "-q", "-y", "greenprof")
        self.assertEqual(files_of(folder) - before, set())

    def test_attach(self):
        folder = make_venv("attached")
        with subprocess.Popen([os.path.join(folder, "bin", "python"), "-c", "print(flush=True)\ndef spin():\n  while True: pass\nspin()"],
                              env=ENVIRONMENT, stdout=subprocess.PIPE) as process:
            try:
                process.stdout.readline()
                done = subprocess.run([os.path.join(folder, "bin", "greenprof"), "attach", str(process.pid), "-d", "1", "-o", place("attach.greenprof")],
                                      env=ENVIRONMENT, capture_output=True, text=True)
                helpers.need("ptrace" not in done.stderr or done.returncode == 0, done.stderr)
                self.assertEqual(done.returncode, 0, done.stderr)
            finally:
                process.kill()
        self.assertIn("spin", run(os.path.join(folder, "bin", "greenprof"), "report", place("attach.greenprof")))

    def test_copies_read_only_another_user(self):
        folder = make_venv("copies", "--copies")
        run("chmod", "-R", "a-w,a+rX", folder)
        self.check_run(folder)
        if os.geteuid() == 0:
            os.makedirs(place("theirs"), exist_ok=True)
            os.chown(place("theirs"), 65534, 65534)
            helpers.need(os.access(FOLDER, os.X_OK) and subprocess.run(["setpriv", "--reuid=65534", "ls", FOLDER], capture_output=True).returncode == 0,
                         "another user cannot reach the build folder")
            capture = place("theirs", "c.greenprof")
            run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", os.path.join(folder, "bin", "greenprof"), "run", "-q", "-o", capture, "--",
                os.path.join(folder, "bin", "python"), place("app.py"))
            self.assertIn("twice", run(os.path.join(folder, "bin", "greenprof"), "report", capture))

    def test_spaces(self):
        """Inside all is well; what the loader's list cannot name is said."""
        folder = make_venv("a b [c]")
        self.check_import(os.path.join(folder, "bin", "python"))
        done = helpers.run([os.path.join(folder, "bin", "greenprof"), "run", "--", os.path.join(folder, "bin", "python"), place("app.py")], 1, env=ENVIRONMENT)
        self.assertIn("a colon or a space", done.stderr)

    def test_two_versions(self):
        other = place("wheels", os.path.basename(WHEEL).replace(VERSION, OTHER))
        with zipfile.ZipFile(WHEEL) as archive, pack.Wheel(other, f"greenprof-{OTHER}.dist-info") as wheel:
            for info in archive.infolist():
                if not info.filename.endswith("/RECORD"):
                    wheel.add(info.filename.replace(VERSION, OTHER), archive.read(info).replace(VERSION.encode(), OTHER.encode()),
                              bool(info.external_attr >> 16 & stat.S_IXUSR))
        first, second = make_venv("first"), make_venv("second", wheel=other)
        self.check_run(second)
        self.check_run(first, python=os.path.join(second, "bin", "python"))
        pip("uninstall", "-q", "-y", "greenprof", into=second)
        self.check_run(first)
        # Another version's command takes no library of this version.
        with zipfile.ZipFile(other) as archive, open(os.path.join(first, "bin", "other"), "wb") as command:
            command.write(archive.read(f"greenprof-{OTHER}.data/scripts/greenprof"))
        os.chmod(command.name, 0o755)
        done = helpers.run([os.path.join(first, "bin", "other"), "run", "--", "true"], 1, env=ENVIRONMENT)
        self.assertIn("not found", done.stderr)

    def test_target(self):
        folder = place("target")
        pip("install", "-q", "--no-compile", "--target", folder, WHEEL)
        self.check_run(folder, python=PYTHON)
        self.check_import(PYTHON, env={**ENVIRONMENT, "PYTHONPATH": folder})

    def test_user(self):
        environment = {**ENVIRONMENT, "PYTHONUSERBASE": place("user")}
        pip("install", "-q", "--no-compile", "--user", "--break-system-packages", WHEEL, env=environment)
        self.check_run(place("user"), python=PYTHON, env=environment)
        self.check_import(PYTHON, env=environment)

    def test_editable(self):
        folder = place("editable")
        run(PYTHON, "-m", "venv", "--without-pip", folder)
        pip("install", "-q", "--config-settings", f"build={BUILD}", "-e", ROOT, into=folder, cwd="/")
        self.check_run(folder, libraries=os.path.realpath(BUILD))
        self.check_import(os.path.join(folder, "bin", "python"))


if __name__ == "__main__":
    helpers.main(argv=sys.argv[:1])
