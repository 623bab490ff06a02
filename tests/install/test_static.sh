#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# libgreenprof.a in programs without a dynamic loader, by pkg-config and by CMake.
# usage: test_static.sh BUILD_FOLDER SOURCE_FOLDER LIBDIR DOCUMENT
set -euo pipefail
build=$1 source=$2 libdir=$3 document=$4
command -v pkg-config >/dev/null || { echo "SKIP: pkg-config is not installed"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cmake --install "$build" --prefix "$tmp/usr" --component dev >"$tmp/log" || { cat "$tmp/log"; exit 1; }
cmake --install "$build" --prefix "$tmp/usr" --component runtime >"$tmp/log" || { cat "$tmp/log"; exit 1; }
cd "$tmp"
export PKG_CONFIG_PATH=$tmp/usr/$libdir/pkgconfig

# Names that the library adds to a program linked with it.
if nm --extern-only --defined-only "$tmp/usr/$libdir/libgreenprof.a" |
    awk 'NF == 3 { print $3 }' | grep -vE '^(prof_|gp_static_|__cyg_profile_func_(enter|exit)$)'; then
    echo "names that are not its own"
    exit 1
fi

check() { # PROGRAM: runs it, and looks for the outcome
    if readelf -lW "$1" | grep INTERP; then
        echo "$1 is not linked statically"
        exit 1
    fi
    rm -f -- *.folded *.prof
    env -i "./$1" || { echo "$1: status $?"; exit 1; }
    for path in 'child main;in_child;spin' 'static start_thread;in_thread;spin' 'static in_coroutine;spin'; do
        grep -qE "(^|;)${path#* }" "${path%% *}.folded" && continue
        echo "$1: no $path in:"
        cat static.folded child.folded
        exit 1
    done
    if grep -E '(^|;)(prof|gp)_' static.folded child.folded; then
        echo "$1: frames of greenprof's own"
        exit 1
    fi
    /usr/bin/python3 -c 'import pstats, sys; assert any(name == "spin" for _, _, name in pstats.Stats(sys.argv[1]).stats)' static.prof
}

read -ra flags <<<"$(pkg-config --static --cflags --libs greenprof)"
for kind in -static -static-pie; do
    gcc $kind -O1 -Wall -Wextra "$source/static_host.c" "${flags[@]}" -o "host$kind" 2>log || { cat log; exit 1; }
    check "host$kind"
done

# The line of the document.
line=$(sed -n 's/^    \(cc -static .*\)/\1/p' "$document")
cp "$source/static_host.c" service.c
sh -c "${line:?no example}" 2>log || { cat log; exit 1; }
check service

# A capture of all that it does.
env -i GREENPROF_OUTPUT="$tmp/%p.greenprof" ./host-static
"$tmp/usr/bin/greenprof" report -- *.greenprof >report
grep -q 'spin' report

cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(user C)
find_package(greenprof REQUIRED)
add_executable(by_cmake ${SOURCE})
target_link_options(by_cmake PRIVATE -static)
target_link_libraries(by_cmake greenprof::static)
END
cmake -S . -B cmake-build -G Ninja -DCMAKE_PREFIX_PATH="$tmp/usr" -DSOURCE="$source/static_host.c" >log 2>&1 || { cat log; exit 1; }
cmake --build cmake-build >log 2>&1 || { cat log; exit 1; }
cp cmake-build/by_cmake .
check by_cmake
echo "linked statically, run, profiled"
