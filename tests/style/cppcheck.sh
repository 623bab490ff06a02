#!/bin/sh
# SPDX-License-Identifier: MIT
# Usage: cppcheck.sh SOURCES
# Fails where cppcheck finds a fault. One that is none is left out beside the line, with the reason:
#   // cppcheck-suppress NAME ; REASON
set -eu
command -v cppcheck >/dev/null || {
    echo "SKIP: cppcheck is not installed"
    exit 77
}
cd "$1"
exec cppcheck --quiet --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
    --std=c11 --platform=unix64 -D_GNU_SOURCE= -D__x86_64__ -DNDEBUG --include=tests/style/cppcheck.h \
    -Iinclude -Isrc -Isrc/core -Isrc/read -Iruntime-hooks src runtime-hooks tools/greenprof
