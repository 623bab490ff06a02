#!/bin/sh
# SPDX-License-Identifier: MIT
# Usage: format.sh SOURCES
# Fails where clang-format would change a C or C++ file. Mend it with: clang-format -i FILE...
set -eu
command -v clang-format >/dev/null || {
    echo "SKIP: clang-format is not installed"
    exit 77
}
cd "$1"
find include src runtime-hooks tools tests \( -name '*.[ch]' -o -name '*.cc' -o -name '*.cpp' \) -print0 |
    xargs -0 clang-format --dry-run -Werror
