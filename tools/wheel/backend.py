# SPDX-License-Identifier: MIT
"""The backend that pip calls (PEP 517, PEP 660) to make a wheel of this tree: CMake's target greenprof-wheel, packed. Needs the packages of
`tools/setup build`, and nothing of Python but its standard library.

A build folder that is there is used, and not compiled again: `--config-settings build=FOLDER`, or GREENPROF_BUILD. Else it
is build/wheel. The wheel is for every CPython from 3.11 on: nothing in it is of one version.
"""
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

import elf
import pack

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CORE, LIBRARY = "greenprof/lib/libgreenprof-core.so.0", "greenprof/lib/libgreenprof.so.0"
COMMAND, EXTENSION = "bin/greenprof", "greenprof/_greenprof.so"
BINARIES = [COMMAND, EXTENSION, CORE, LIBRARY, *(f"greenprof/lib/libgreenprof-{name}.so.0" for name in ("otel", "ship", "redis"))]
PARTS = BINARIES + ["greenprof/__init__.py", "greenprof/__main__.py"]


def fail(text):
    sys.exit(f"greenprof: {text}")


def _read(*names):
    with open(os.path.join(ROOT, *names), encoding="utf-8") as file:
        return file.read()


def _project():
    return tomllib.loads(_read("pyproject.toml"))["project"]


def _version():
    header = _read("include", "greenprof", "prof.h")
    return ".".join(re.search(rf"^#define PROF_VERSION_{part} (\d+)$", header, re.M)[1] for part in ("MAJOR", "MINOR", "PATCH"))


NAME = f"greenprof-{_version()}"
DIST_INFO = f"{NAME}.dist-info"


# --- what is said of it

def _metadata():
    project = _project()
    lines = ["Metadata-Version: 2.1", "Name: greenprof", f"Version: {_version()}", f"Summary: {project['description']}",
             f"License: {project['license']['text']}", "License-File: LICENSE", f"Requires-Python: {project['requires-python']}",
             *(f"Classifier: {one}" for one in project["classifiers"]), "Description-Content-Type: text/markdown"]
    return "\n".join(lines) + "\n\n" + _read(project["readme"])


def _entry_points():
    groups = _project()["entry-points"]
    return "\n".join(f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items()) for group, entries in groups.items())


def _documents(tag):
    """{name: content} of the folder .dist-info, but for RECORD."""
    return {"METADATA": _metadata(), "entry_points.txt": _entry_points(), "LICENSE": _read("LICENSE"),
            "WHEEL": f"Wheel-Version: 1.0\nGenerator: greenprof {_version()}\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n"}


# --- building

def _run(*command, **options):
    result = subprocess.run(command, stdin=subprocess.DEVNULL, **options)
    if result.returncode != 0:
        fail(f"{' '.join(command[:4])} ...: status {result.returncode}")


def _cached(build, name):
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
        found = re.search(rf"^{name}:\w+=(.*)$", file.read(), re.M)
    return found[1] if found else ""


def _configure(build):
    if shutil.which("cmake") is None:
        fail("no cmake: tools/setup build installs what is needed to build")
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    flags = f"-ffile-prefix-map={ROOT}=."
    _run("cmake", "-S", ROOT, "-B", build, *generator, "-DCMAKE_BUILD_TYPE=RelWithDebInfo", f"-DCMAKE_C_FLAGS={flags}",
         f"-DCMAKE_CXX_FLAGS={flags}", "-DGREENPROF_TESTS=OFF", "-DGREENPROF_BENCH=OFF", "-DGREENPROF_DEMO=OFF")


def _build_folder(settings):
    given = (settings or {}).get("build") or os.environ.get("GREENPROF_BUILD")
    build = os.path.abspath(given) if given else os.path.join(ROOT, "build", "wheel")
    if not given:
        _configure(build)
    elif not os.path.exists(os.path.join(build, "CMakeCache.txt")):
        fail(f"{build}: no build folder of CMake's")
    source = _cached(build, "CMAKE_HOME_DIRECTORY")
    if os.path.realpath(source) != os.path.realpath(ROOT):
        fail(f"{build}: of another tree, {source}")
    return build


def _make(build, *targets):
    lacking = _cached(build, "GREENPROF_WHEEL_LACKS")
    if lacking:
        fail(f"no wheel can be made in {build}: {lacking}")
    _run("cmake", "--build", build, "--target", *targets, stdout=sys.stderr)


def _stage(build, folder):
    with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)  # else another wheel of this folder has files that are being linked anew
        _make(build, "greenprof-wheel")
        _run("cmake", "--install", build, "--component", "wheel", "--prefix", folder, stdout=subprocess.DEVNULL)
    strip = _cached(build, "CMAKE_STRIP") or "strip"
    check(folder)
    _run(strip, "--strip-debug", *(os.path.join(folder, part) for part in BINARIES))


def check(folder):
    """That each part is there, whole, and what the others take it for. Returns the ELF files."""
    for part in PARTS:
        if not os.path.isfile(os.path.join(folder, part)):
            fail(f"{part} is missing in what CMake installed")
    try:
        elves = {part: elf.Elf(os.path.join(folder, part)) for part in BINARIES}
    except elf.Bad as bad:
        fail(bad)
    for part, one in elves.items():
        if part.startswith("greenprof/lib/") and one.soname != os.path.basename(part):
            fail(f"{part}: its name inside is {one.soname}")
    if "$ORIGIN/lib" not in elves[EXTENSION].runpath or os.path.basename(LIBRARY) not in elves[EXTENSION].needed:
        fail(f"{EXTENSION}: it does not find {LIBRARY}")
    return list(elves.values())


def _tag(folder):
    bundled = {os.path.basename(part) for part in BINARIES if part.startswith("greenprof/lib/")}
    try:
        tag, against = elf.platform_tag(check(folder), bundled)
    except elf.Bad as bad:
        fail(bad)
    for reason in against:
        print(f"greenprof: for machines like this one only: {os.path.relpath(reason, folder)}", file=sys.stderr)
    return tag


def _place(path):
    """Where a file of the staged tree is in a wheel."""
    return f"{NAME}.data/scripts/{path.removeprefix('bin/')}" if path.startswith("bin/") else path


def _pack(wheel_directory, tag, files):
    name = f"{NAME}-py3-none-{tag}.whl"
    with pack.Wheel(os.path.join(wheel_directory, name), DIST_INFO) as wheel:
        for place, (content, is_program) in files.items():
            wheel.add(place, content, is_program)
        for document, text in _documents(tag).items():
            wheel.add(f"{DIST_INFO}/{document}", text)
    return name


# --- the hooks

def _requires(config_settings=None):
    return []


get_requires_for_build_wheel = get_requires_for_build_sdist = get_requires_for_build_editable = _requires


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    folder = os.path.join(metadata_directory, DIST_INFO)
    os.makedirs(folder)
    for name, text in _documents("any").items():
        if name != "WHEEL":
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
    return DIST_INFO


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        _stage(_build_folder(config_settings), folder)
        tag = _tag(folder)
        for directory, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(directory, name)
                with open(path, "rb") as file:
                    part = os.path.relpath(path, folder)
                    files[_place(part)] = (file.read(), part in BINARIES)
    return _pack(wheel_directory, tag, files)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """The package and the command as they are in the build folder."""
    build = _build_folder(config_settings)
    _make(build, "greenprof-command", "greenprof-python", "greenprof-ship", "greenprof-redis")
    command = os.path.join(build, "tools", "greenprof", "greenprof").replace("'", "'\\''")
    return _pack(wheel_directory, "any", {
        "greenprof-build.pth": (os.path.join(build, "src", "python") + "\n", False),
        f"{NAME}.data/scripts/greenprof": (f"#!/bin/sh\nexec '{command}' \"$@\"\n", True)})


def _source_files():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True)
    if listed.returncode == 0 and os.path.exists(os.path.join(ROOT, ".git")):
        return [name for name in listed.stdout.split("\0") if name and os.path.lexists(os.path.join(ROOT, name))]
    found = []
    for directory, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in ("build", "dist", ".git", "__pycache__")]
        found += [os.path.relpath(os.path.join(directory, name), ROOT) for name in names]
    return [name for name in found if name != "PKG-INFO"]


def build_sdist(sdist_directory, config_settings=None):
    name = f"{NAME}.tar.gz"
    pack.write_sdist(os.path.join(sdist_directory, name), NAME, ROOT, _source_files(), _metadata())
    return name
