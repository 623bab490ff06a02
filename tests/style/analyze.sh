#!/bin/sh
# SPDX-License-Identifier: MIT
# Usage: analyze.sh BUILD PART
# Fails where gcc -fanalyzer finds a fault on a path through a part of the sources: a leak, a null, a double free.
# PART is host (what runs in the profiled process) or reader (what reads captures). A finding that is none has a comment
# in its line, or at most two lines above: // -Wanalyzer-NAME: REASON
set -eu
case $(gcc -dumpversion 2>&1) in
12 | 12.*) ;;
*)
    echo "SKIP: gcc 12 is not installed; other versions find other faults"
    exit 77
    ;;
esac
case $2 in
host) folders='src/(core|capture|base|model|wire|otel|static)/|runtime-hooks/' ;;
reader) folders='src/(read/|fleet/|[^/]*[.]c)|tools/greenprof/' ;;
*) echo "unknown part '$2'" >&2 && exit 2 ;;
esac
sources=$(cd "$(dirname "$0")/../.." && pwd)
exec python3 - "$1/compile_commands.json" "^$sources/($folders)" <<'PYTHON'
import concurrent.futures, json, os, re, shlex, subprocess, sys
LEFT_OUT = re.compile("-o$|-c$|-O|-g|-W|-fsanitize|--coverage")


def analyze(entry):
    words = shlex.split(entry["command"])
    while not words[0].startswith("-"): # the compiler, and what launches it
        words.pop(0)
    output = words.index("-o") + 1
    kept = [word for number, word in enumerate(words) if number != output and not LEFT_OUT.match(word)]
    command = ["gcc", "-fanalyzer", "-O1", "-c", "-o", "/dev/null", *kept]
    return subprocess.run(command, cwd=entry["directory"], text=True, capture_output=True, env={**os.environ, "LC_ALL": "C"})


def findings(text):
    """Yields those that no comment answers, each with the path that leads to it."""
    for part in re.split(r"(?m)^(?=\S+:\d+:\d+: (?:warning|error): )", text):
        found = re.match(r"(\S+):(\d+):\d+: (?:warning|error): .*?(?:\[(-Wanalyzer-[\w-]+)\])?$", part, re.M)
        if not found:
            continue
        line = int(found[2])
        with open(found[1]) as file:
            near = "".join(file.readlines()[max(line - 3, 0):line])
        if found[3] is None or f"// {found[3]}: " not in near:
            yield part


entries = {entry["file"]: entry for entry in json.load(open(sys.argv[1]))
           if entry["file"].endswith(".c") and re.match(sys.argv[2], entry["file"])}
count = 0
with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
    for done in pool.map(analyze, [entries[file] for file in sorted(entries)]):
        found = list(findings(done.stderr))
        if done.returncode != 0 and not found:
            found = [done.stderr]
        count += len(found)
        print("".join(found), end="")
print(f"{len(entries)} files, {count} findings")
sys.exit(1 if count or not entries else 0)
PYTHON
