#!/bin/sh
# SPDX-License-Identifier: MIT
# Usage: format.sh SOURCES
# Fails where clang-format would change a C or C++ file. Mend it with: clang-format -i FILE...
set -eu
case $(clang-format --version 2>&1) in
*"version 14."*) ;;
*)
    echo "SKIP: clang-format 14 is not installed; other versions indent some things in other ways"
    exit 77
    ;;
esac
cd "$1"
find include src runtime-hooks tools tests \( -name '*.[ch]' -o -name '*.cc' -o -name '*.cpp' \) -print0 |
    xargs -0 clang-format --dry-run -Werror
