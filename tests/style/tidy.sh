#!/bin/sh
# SPDX-License-Identifier: MIT
# Usage: tidy.sh BUILD PART
# Fails where clang-tidy finds one of the faults that .clang-tidy lists, or clang one of its own, in a part of the sources.
set -eu
command -v clang-tidy >/dev/null || {
    echo "SKIP: clang-tidy is not installed"
    exit 77
}
case $2 in
core) folders='src/core' ;;
read) folders='src/(read|fleet)' ;;
capture) folders='src/(base|model|capture|consumer|wire|static|otel/process_context|[^/]*[.]c)' ;;
tools) folders='tools' ;;
hooks) folders='runtime-hooks' ;;
*) echo "unknown part '$2'" >&2 && exit 2 ;;
esac
sources=$(cd "$(dirname "$0")/../.." && pwd)
python3 - "$1/compile_commands.json" "^$sources/$folders" <<'PYTHON' |
import json, re, sys
files = {entry["file"] for entry in json.load(open(sys.argv[1]))}
print(*sorted(file for file in files if re.match(sys.argv[2], file) and file.endswith(".c")), sep="\n")
PYTHON
    xargs clang-tidy --quiet --warnings-as-errors='*' -p "$1"
