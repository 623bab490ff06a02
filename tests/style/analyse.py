# SPDX-License-Identifier: MIT
"""Usage: analyse.py tidy|analyze PART BUILD | analyse.py cppcheck

Fails where clang-tidy (.clang-tidy lists its checks; clang's own warnings count), gcc -fanalyzer or cppcheck finds a fault
in a part of the sources. A finding that is none is answered beside the line:
  tidy       // NOLINT(NAME): REASON
  analyze    // -Wanalyzer-NAME: REASON    in its line, or at most two lines above
  cppcheck   // cppcheck-suppress NAME ; REASON

A file in which nothing was found is not looked at again until it changes, or what it includes, its command, the tool or
this script: below $XDG_CACHE_HOME or ~/.cache, greenprof/analysed has a name for each such state, of the last 30 days, and
a folder in which cppcheck keeps its own. GREENPROF_ANALYSE=all looks at all files.
"""
import concurrent.futures
import fcntl
import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
KNOWN = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "greenprof", "analysed")
KEPT_DAYS = 30
ANALYSE_ALL = os.environ.get("GREENPROF_ANALYSE") == "all"
PROCESSORS = len(os.sched_getaffinity(0))
READ = "(symbol|facts|report|export|page|traces|ship|watch)"
PARTS = {
    "core": "src/core", "read": f"src/{READ}", "tools": "tools", "hooks": "runtime-hooks",
    "capture": "src/(base|model|live|capture|consumer|wire|static|otel/process_context|library)",
    "host": "(src/(core|capture|base|model|live|consumer|wire|otel|static)/|runtime-hooks/)",
    "reader": f"(src/({READ}|library)/|tools/greenprof/)",
}
# Options of a compiler's command useless to both analysers; their own warnings come with their own options.
LEFT_OUT = re.compile("-o$|-c$|-O|-g|-W|-fsanitize|--coverage")


def run(command, folder=ROOT):
    return subprocess.run(command, cwd=folder, text=True, capture_output=True, env={**os.environ, "LC_ALL": "C"})


def arguments_of(entry):
    """A compiler's options for one file: without its name, launcher, output, warnings and optimisation."""
    words = shlex.split(entry["command"])
    while not words[0].startswith("-"):
        words.pop(0)
    output = words.index("-o") + 1
    return [word for number, word in enumerate(words) if number != output and not LEFT_OUT.match(word)]


def analyze(entry, _):
    done = run(["gcc", "-fanalyzer", "-O1", "-c", "-o", "/dev/null", *arguments_of(entry)], entry["directory"])
    found = list(unanswered(done.stderr))
    return "".join(found) if found or done.returncode == 0 else done.stderr


def unanswered(text):
    """Yields findings that no comment answers, each with the path that leads to it."""
    for part in re.split(r"(?m)^(?=\S+:\d+:\d+: (?:warning|error): )", text):
        found = re.match(r"(\S+):(\d+):\d+: (?:warning|error): .*?(?:\[(-Wanalyzer-[\w-]+)\])?$", part, re.M)
        if not found:
            continue
        line = int(found[2])
        with open(found[1], encoding="utf-8") as file:
            near = "".join(file.readlines()[max(line - 3, 0):line])
        if found[3] is None or f"// {found[3]}: " not in near:
            yield part


def tidy(entry, build):
    done = run(["clang-tidy", "--quiet", "--warnings-as-errors=*", "-p", build, entry["file"]])
    return done.stdout + done.stderr if done.returncode != 0 else ""


# Function, program, files besides the source and its headers.
TOOLS = {"tidy": (tidy, "clang-tidy", [".clang-tidy"]), "analyze": (analyze, "gcc", []), "cppcheck": (None, "cppcheck", [])}


@functools.lru_cache(maxsize=None)
def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).digest()


def state_of(entry, name, version):
    """What a finding depends on, as one name; None where the compiler cannot say what the file includes."""
    arguments = arguments_of(entry)
    listed = run(["gcc", "-M", "-MT", "x", *arguments], entry["directory"])
    if listed.returncode != 0:
        return None
    headers = listed.stdout.replace("\\\n", " ").split()[1:]
    state = hashlib.sha256("\0".join([name, version, *arguments]).encode())
    for path in [*sorted(set(headers)), os.path.abspath(__file__), *(os.path.join(ROOT, more) for more in TOOLS[name][2])]:
        state.update(digest(os.path.join(entry["directory"], path)))
    return os.path.join(KNOWN, state.hexdigest())


def remember(state):
    if state is not None:
        os.makedirs(KNOWN, exist_ok=True)
        with open(state, "w", encoding="utf-8"):
            pass


def forget_old():
    oldest = time.time() - KEPT_DAYS * 86400
    for entry in os.scandir(KNOWN) if os.path.isdir(KNOWN) else []:
        if entry.is_file() and entry.stat().st_mtime < oldest:
            os.unlink(entry.path)


def check(entry, name, version, build):
    """Returns (findings, whether it was looked at)."""
    state = state_of(entry, name, version)
    if state is not None and os.path.exists(state) and not ANALYSE_ALL:
        os.utime(state)
        return "", False
    found = TOOLS[name][0](entry, build)
    if not found:
        remember(state)
    return found, True


def cppcheck(version):
    """All at once; cppcheck remembers by itself, for one checkout and one run at a time. What a callee fills (gp_peek) it takes for unset."""
    folder = os.path.join(KNOWN, "cppcheck-" + hashlib.sha256((ROOT + version).encode()).hexdigest()[:16])
    os.makedirs(folder, exist_ok=True)
    with open(folder + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if ANALYSE_ALL:
            shutil.rmtree(folder)
            os.makedirs(folder)
        return subprocess.run(["cppcheck", "--quiet", f"-j{PROCESSORS}", f"--cppcheck-build-dir={folder}", "--enable=warning,performance,portability",
                               "--inline-suppr", "--suppress=ctuuninitvar", "--error-exitcode=1", "--std=c11", "--platform=unix64", "-D_GNU_SOURCE=", "-D__x86_64__",
                               "-DNDEBUG", "--include=tests/style/cppcheck.h", "-Iinclude", "-Isrc", "-Isrc/core",
                               "-Iruntime-hooks", "-Itools/greenprof", "src", "runtime-hooks", "tools/greenprof"], cwd=ROOT).returncode


def main():
    name = sys.argv[1]
    program = TOOLS[name][1]
    if shutil.which(program) is None:
        print(f"SKIP: {program} is not installed")
        return 77
    version = run([program, "--version"]).stdout
    if name == "analyze" and not re.match(r".* 12\.", version):
        print("SKIP: gcc 12 is not installed; other versions find other faults")
        return 77
    if name == "cppcheck":
        return cppcheck(version)
    part, build = sys.argv[2:]
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    wanted = re.compile(re.escape(ROOT) + "/" + PARTS[part])
    entries = {entry["file"]: entry for entry in commands if entry["file"].endswith(".c") and wanted.match(entry["file"])}
    forget_old()
    with concurrent.futures.ThreadPoolExecutor(PROCESSORS) as pool:
        results = list(pool.map(lambda entry: check(entry, name, version, build), (entries[file] for file in sorted(entries))))
    print(*(found for found, _ in results if found), sep="\n", end="")
    bad, new = sum(bool(found) for found, _ in results), sum(is_new for _, is_new in results)
    print(f"{len(entries)} files, {new} of them new or changed, {bad} with findings")
    return 1 if bad or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
