#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# greenprof inside another project: nothing of it but the libraries is built, and nothing leaks out.
# usage: test_subproject.sh SOURCE_ROOT PROJECT
set -euo pipefail
root=$1 project=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cp "$project"/* "$tmp"
mkdir "$tmp/third_party"
ln -s "$root" "$tmp/third_party/greenprof"
sed -n '/^## In another CMake project/,/^or/s/^    //p' "$root/doc/production.md" >"$tmp/example.cmake"
cd "$tmp"

run() {
    "$@" >log 2>&1 || { cat log; exit 1; }
}

# Configured in both ways, built in one.
run cmake -S . -B added -G Ninja
run cmake -S . -B fetched -G Ninja -DEXAMPLE="$tmp/example.cmake"
grep -q 'FetchContent_MakeAvailable(greenprof)' example.cmake
[[ $(ctest --test-dir fetched -N | grep -c 'Test *#') == 1 ]] || { echo "tests of its own"; exit 1; }
run cmake --build added --target service
added/service
run cmake --install added --prefix "$tmp/usr"
[[ $(find usr -type f) == usr/bin/service ]] || { echo "installed:"; find usr -type f; exit 1; }
echo "built inside another project"
