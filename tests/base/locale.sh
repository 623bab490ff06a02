#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Nothing that may run in a program reads or writes numbers with the decimal sign of its locale (base/number.h).
# Usage: locale.sh SOURCES
set -euo pipefail
cd "$1"
reads='\b(strtod|strtof|strtold|atof|sscanf\([^;]*%[0-9]*l?[fge])\b'
writes='"[^"]*%[-+ #0]*[0-9*]*(\.[1-9*][0-9]*)?[fgeFGE]\b'
found=$(grep -rnE "$reads" src runtime-hooks --include=*.c --include=*.h | grep -v '^src/base/number\.' || true)
# The command alone prints text of trees, and never sets a locale for numbers.
found+=$(grep -rnE "$writes" src runtime-hooks --include=*.c --include=*.h | grep -vE '%\.0f [^%]*"|^src/traces/write_text\.c' || true)
[[ -z $found ]] || { echo "$found"; exit 1; }
