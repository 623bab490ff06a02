#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# usage: test_install.sh BUILD_FOLDER SOURCE_FOLDER LIBDIR
set -euo pipefail
build=$1 source=$2 libdir=$3
command -v pkg-config >/dev/null || { echo "SKIP: pkg-config is not installed"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

cmake --install "$build" --prefix "$tmp/usr" >"$tmp/log" || { cat "$tmp/log"; exit 1; }
cp "$source/user.cpp" "$source/hooked.c" "$tmp"
cp "$source/package.cmake.in" "$tmp/CMakeLists.txt"
cd "$tmp"

export PKG_CONFIG_PATH=$tmp/usr/$libdir/pkgconfig LD_LIBRARY_PATH=$tmp/usr/$libdir
read -ra flags <<<"$(pkg-config --cflags --libs greenprof)"
linked=("${flags[@]}")
g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror user.cpp "${flags[@]}" -o by_pkg_config
./by_pkg_config
test -s user.prof

# Headers are those of any C++.
for header in "$tmp"/usr/include/greenprof/*.h; do
    printf '#include <greenprof/%s>\n' "${header##*/}"
done >headers.cpp
read -ra flags <<<"$(pkg-config --cflags greenprof)"
g++ -std=c++98 -pedantic-errors -Wall -Wextra -Werror "${flags[@]}" -fsyntax-only headers.cpp

# Within another project: the same names, and no tests.
mkdir within
cp "$source/user.cpp" within
sed "s|@GREENPROF@|$source/../..|" "$source/within.cmake.in" >within/CMakeLists.txt
cmake -S within -B within-build -G Ninja >log 2>&1 || { cat log; exit 1; }
ninja -C within-build CMakeFiles/user.dir/user.cpp.o >log 2>&1 || { cat log; exit 1; }
ninja -C within-build -t targets all >targets
grep -q '/libgreenprof\.so' targets
if grep -q 'test_reader\|demo-service[.]' targets; then
    echo "tests or the demo are built within another project"
    exit 1
fi

cmake -S . -B cmake-build -G Ninja -DCMAKE_PREFIX_PATH="$tmp/usr" >log 2>&1 || { cat log; exit 1; }
cmake --build cmake-build >log 2>&1 || { cat log; exit 1; }
cmake-build/user

# Hooks without `greenprof run`: a runtime in a shared library is hooked where the core is found before it.
if test -x cmake-build/hooked; then
    read -ra flags <<<"$(pkg-config --cflags --libs greenprof-hooks)"
    gcc -Wall -Wextra -Werror hooked.c "${flags[@]}" -lboost_context -o hooked
    ./hooked
    cmake-build/hooked
    "$tmp/usr/bin/greenprof" runtimes ./hooked | grep -q 'Boost.Context.*; without greenprof run, too'
    # Not so with libgreenprof alone: its coroutines are found by their stacks.
    read -ra flags <<<"$(pkg-config --cflags --libs greenprof)"
    gcc -Wall -Wextra -Werror hooked.c -Wl,--no-as-needed "${flags[@]}" -lboost_context -o unhooked
    status=0
    ./unhooked || status=$?
    test "$status" = 3
    "$tmp/usr/bin/greenprof" runtimes ./unhooked | grep -q 'Boost.Context.*; under greenprof run only'
else
    echo "no libboost_context: hooks at link time are not tested"
fi

# The installed command finds the installed library, and the program it runs need not know of either.
unset LD_LIBRARY_PATH
"$tmp/usr/bin/greenprof" run -o run.greenprof -- gzip -9 -k -c "$tmp/usr/bin/greenprof" >/dev/null
"$tmp/usr/bin/greenprof" report run.greenprof -n 3 | grep -q 'CPU time'
# Manual pages and completions are where shells and man look for them.
for file in man/man1/greenprof.1 man/man1/greenprof-report.1 bash-completion/completions/greenprof \
    zsh/site-functions/_greenprof fish/vendor_completions.d/greenprof.fish; do
    test -s "$tmp/usr/share/$file" || { echo "share/$file is not installed"; exit 1; }
done
# The core needs nothing but libc, and exports no name of its internals.
core=$tmp/usr/$libdir/libgreenprof-core.so.0
if readelf -d "$core" | grep NEEDED | grep -vE 'libc\.so|ld-linux|ld-musl'; then
    echo "libgreenprof-core needs more than libc"
    exit 1
fi
if nm -D --defined-only "$core" | awk '{print $3}' | grep -E '^gp_'; then
    echo "internal names are exported"
    exit 1
fi
# libgreenprof's own names have versions, and what it interposes, libc's names, has none; there is nothing else.
names() {
    nm -D --defined-only --with-symbol-versions "$1" | awk '$2 ~ /[TDBRVWi]/ { print $3 }' | sort
}
library=$tmp/usr/$libdir/libgreenprof.so.0
names "$core" >core.names
if names "$library" | grep -vE '^prof_[a-z_]+@@GREENPROF_0\.[0-9]+$' | comm -23 - core.names | grep .; then
    echo "libgreenprof exports these, which libgreenprof-core does not, without a version"
    exit 1
fi
names "$library" | grep -q '^prof_version@@GREENPROF_0\.1$'
names "$library" | grep -q '^swapcontext$'
if nm -D --undefined-only by_pkg_config | grep ' prof_' | grep -v '@GREENPROF_0'; then
    echo "what is linked needs no version"
    exit 1
fi

# The loader takes them for glibc's, which have versions, all the same.
gcc -O1 "$source/static_host.c" "${linked[@]}" -o shared_host
LD_LIBRARY_PATH=$tmp/usr/$libdir LD_DEBUG=bindings LD_DEBUG_OUTPUT=$tmp/bindings ./shared_host
for name in swapcontext pthread_create fork; do
    grep -qE "shared_host .* to .*/libgreenprof.so.0 .*symbol .$name'" bindings.* || { echo "$name is libc's"; exit 1; }
done

# The symbol for readers outside of the process is in a library of its own, which the core finds beside itself.
names "$tmp/usr/$libdir/libgreenprof-otel.so.0" | grep -qx otel_thread_ctx_v1
if names "$core" | grep -q '^otel'; then
    echo "the core exports a name of OpenTelemetry's"
    exit 1
fi
GREENPROF_OTEL_CONTEXT=1 "$tmp/usr/bin/greenprof" run -q -o run.greenprof -- cat /proc/self/maps >maps
grep -q 'libgreenprof-otel' maps && grep -q 'OTEL_CTX' maps || { echo "no contexts"; exit 1; }
"$tmp/usr/bin/greenprof" run -q -o run.greenprof -- cat /proc/self/maps >maps
if grep -qE 'libgreenprof-otel|OTEL_CTX' maps; then
    echo "contexts that were not asked for"
    exit 1
fi
echo "installed, found by pkg-config and CMake, run"
