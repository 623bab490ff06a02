#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# greenprof inside another project: nothing of it but the libraries is built, and nothing leaks out.
# usage: test_subproject.sh SOURCE_ROOT PROJECT
set -euo pipefail
root=$1 project=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"

run() {
    "$@" >log 2>&1 || { cat log; exit 1; }
}

# Configured in both ways, built in one.
run cmake -S "$project" -B added -G Ninja -DGREENPROF_SOURCE="$root" -DHOW=add_subdirectory
run cmake -S "$project" -B fetched -G Ninja -DGREENPROF_SOURCE="$root" -DHOW=FetchContent
[[ $(ctest --test-dir fetched -N | grep -c 'Test *#') == 1 ]] || { echo "tests of its own"; exit 1; }
run cmake --build added --target app
added/app
run cmake --install added --prefix "$tmp/usr"
[[ $(find usr -type f) == usr/bin/app ]] || { echo "installed:"; find usr -type f; exit 1; }
echo "built inside another project"
