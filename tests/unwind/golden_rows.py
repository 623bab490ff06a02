#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Compare greenprof's unwind rows with those of readelf, for every row of real binaries.

usage: golden_rows.py ROWS_DUMP FILE...     exit status 77 when nothing could be compared
"""
import os
import re
import subprocess
import sys

REGS = {n: i for i, n in enumerate(
    "rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 ra".split())}
FDE = re.compile(r"^([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ FDE cie=[0-9a-f]+ pc=([0-9a-f]+)\.\.([0-9a-f]+)")
CFA = re.compile(r"^(\w+)([+-]\d+)$")


def expected_row(columns, words):
    """readelf's row as rows_dump prints it; 'u' is also what readelf says where no rule was given."""
    if words[0] in ("exp", "vexp"):
        cfa = "exp"
    else:
        reg, offset = CFA.match(words[0]).groups()
        cfa = "%d%+d" % (REGS[reg], int(offset))
    rules = {}
    for column, word in zip(columns[1:], words[1:]):
        if column in REGS and word not in ("u", "s"):
            rules[REGS[column]] = word
    return cfa, rules


def readelf_rows(path):
    text = subprocess.run(["readelf", "-W", "--debug-dump=frames-interp", path],
                          capture_output=True, text=True, check=False).stdout
    fde = columns = section = None
    for line in text.splitlines():
        if line.startswith("Contents of the"):
            section = line.split()[3]
        if section is not None and section != ".eh_frame":
            continue
        match = FDE.match(line)
        if match:
            fde, columns = match.groups(), None
        elif " CIE " in line:
            fde = None
        elif fde and line.lstrip().startswith("LOC"):
            columns = line.split()[1:]
        elif fde and columns and line.strip():
            words = re.sub(r" \(\w+\)", "", line).split()  # "r10 (r10)": a number and its name
            if not fde[1] <= words[0] < fde[2]:
                continue  # after an advance to the function's end: governs nothing
            yield fde[0], words[0], expected_row(columns, words[1:])


def our_row(line):
    words = line.split()
    rules = dict(word.split("=", 1) for word in words[1:])
    return words[0], {int(reg): rule for reg, rule in rules.items() if rule not in ("u",)}


def compare(rows_dump, path):
    rows = list(readelf_rows(path))
    query = "".join("%s %s\n" % (fde, loc) for fde, loc, _ in rows)
    done = subprocess.run([rows_dump, path], input=query, capture_output=True, text=True, check=True)
    answer = done.stdout.splitlines()
    # Two rows at one location: only the last one is in force.
    last = {(fde, loc): i for i, (fde, loc, _) in enumerate(rows)}
    bad = 0
    for i, ((fde, loc, want), line) in enumerate(zip(rows, answer)):
        if last[fde, loc] != i:
            continue
        if line == "none" or our_row(line) != want:
            bad += 1
            if bad <= 5:
                print("%s FDE %s at %s: readelf %s, ours %s" % (path, fde, loc, want, line))
    print("%s: %d rows, %d differ (%s)" % (path, len(last), bad, done.stderr.strip()))
    if len(answer) != len(rows):
        bad += 1
    return len(last), bad


def main():
    total = wrong = 0
    for path in sys.argv[2:]:
        if os.path.exists(path):
            rows, bad = compare(sys.argv[1], os.path.realpath(path))
            total, wrong = total + rows, wrong + bad
    if total == 0:
        print("SKIP: none of the binaries is installed, or readelf is missing")
        return 77
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
