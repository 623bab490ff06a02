#!/bin/sh
# SPDX-License-Identifier: MIT
# Fail when objects need a symbol that is neither theirs nor on an allow-list.
#
# usage: nm_allowlist.sh ALLOW_FILE OBJECT...     ALLOW_FILE: one symbol a line, '#' starts a comment
set -eu
allow=$1
shift
command -v nm >/dev/null || { echo "SKIP: nm is not installed"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
nm -u "$@" | awk 'NF == 2 && $1 == "U" { print $2 } NF == 1 && !/:$/ { print $1 }' | sort -u >"$tmp/needed"
nm --defined-only "$@" | awk 'NF >= 3 { print $3 }' | sort -u >"$tmp/own"
sed 's/#.*//; s/[[:space:]]//g; /^$/d' "$allow" | sort -u >"$tmp/allowed"
if grep -qE '^__(asan|ubsan|tsan|sanitizer|gcov|llvm_gcov)' "$tmp/needed"; then
    echo "SKIP: instrumented build"
    exit 77
fi
# An empty list would mean that nothing was looked at.
[ -s "$tmp/needed" ] || { echo "no undefined symbol at all: wrong objects?"; exit 1; }
comm -23 "$tmp/needed" "$tmp/own" | comm -23 - "$tmp/allowed" >"$tmp/bad"
if [ -s "$tmp/bad" ]; then
    echo "not on the allow-list $allow:"
    sed 's/^/    /' "$tmp/bad"
    nm -uA "$@" | grep -wFf "$tmp/bad" || true
    exit 1
fi
echo "$# objects, $(wc -l <"$tmp/needed") symbols, all allowed"
