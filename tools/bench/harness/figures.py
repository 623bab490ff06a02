# SPDX-License-Identifier: MIT
"""Figures out of what the benchmarks print, and whether those of two builds differ by more than noise.

A figure is (label, unit, value). An indented label follows the one it belongs to; one that comes several times in an
output is told apart by its number.
"""
import collections
import functools
import math
import re
import statistics

UNITS = ("ns of CPU a sample", "ns", "us", "ms", "s of CPU", "s", "% of its time", "%", "times", "MiB",
         "bytes a sample", "bytes", "MB per CPU second")
UNIT = "|".join(map(re.escape, UNITS))
NUMBER = re.compile(rf"(?<![\w.<>=-])([-+]?\d+(?:\.\d+)?)(?: ±\d+(?:\.\d+)?)? ({UNIT})(?![\w/])")
BOUND = re.compile(r"[<>]= \S+ \S+")
LABEL_COLUMNS = 50  # padding of labels by table.py
HIGHER_IS_BETTER = re.compile(r"faster than|of its time")
TURNS_TO_TELL = 5
CHANCE = 1 / 200  # of a figure that is called worse though nothing changed
LEAST = 0.02  # of the value: two builds of one source differ by as much, wherever their code happens to lie

Verdict = collections.namedtuple("Verdict", "before after low middle high word")


def of_table(text):
    """Figures that harness/table.py printed: a label, a number with its unit, and more of them in notes."""
    found, parent = [], ""
    for line in text.splitlines():
        line = BOUND.sub(lambda match: " " * len(match[0]), line)
        numbers = list(NUMBER.finditer(line))
        # A label may have numbers with units, too: the first figure stands apart, or beyond the label's columns.
        firsts = [match for match in numbers
                  if match.start() > LABEL_COLUMNS or line[:match.start()].endswith(("  ", ": "))]
        if not numbers or line.startswith(("=", "machine:")):
            continue
        first = (firsts or numbers)[0]
        label = line[:first.start()].strip(" :")
        if line.startswith("    "):
            label = f"{parent}: {label}"
        else:
            parent = label
        for match in numbers[numbers.index(first):]:
            words = [re.split(r"[,(;]", line[first.end():match.start()])[-1],
                     re.match(r"[^,();]*", line[match.end():])[0]]
            note = next((word.strip() for word in words if word.strip() and match is not first), "")
            found.append((f"{label}, {note}" if note else label, match[2], float(match[1])))
    return numbered(found)


def of_python(text):
    """tools/bench/python/run: how many times the CPU of the program alone, and ns of greenlet switches."""
    found = []
    for line in text.splitlines():
        switches = re.match(r"  (GREENPROF_GREENLETS=\S+) +(bare .*)", line)
        if switches:
            found += [(f"{switches[1]}, {what}", "ns", float(ns))
                      for what, ns in re.findall(r"(\w+) ([-+]?\d+)", switches[2])]
            continue
        cost = re.match(r"  (\S+) +(\S.*?)  +([\d.]+) \([\d.-]+\)(?: +([\d.]+) of (.*))?", line)
        if cost:
            found.append((f"{cost[1]}, {cost[2]}", "times", float(cost[3])))
            found += [(f"{cost[1]}, {cost[2]} beside {cost[5]}", "times", float(cost[4]))] if cost[4] else []
    return numbered(found)


def of_symbols(text):
    """tools/bench/symbols: greenprof's us of CPU an address, by binary."""
    rows = re.findall(r"^(/.*?): .*\n +us of CPU an address: greenprof ([\d.]+)", text, re.M)
    return [(path, "us", float(us)) for path, us in rows]


def of_dumps(text):
    """bench_dump_cost: us of wall time and of CPU a dump, one a line."""
    rows = [list(map(float, line.split())) for line in text.splitlines() if re.fullmatch(r"[\d.]+( [\d.]+){2}", line)]
    return [(label, "us", statistics.median(column)) for label, column in
            zip(("warm dump, wall time", "warm dump, CPU", "the same file written plainly"), zip(*rows))]


def of_walkers(text):
    """bench_unwind: ns a walk, by depth and walker."""
    rows = re.findall(r"^ *(\d+)  (\S.*?) +\d+ +(\d+) +[\d.]+ +[\d.]+x", text, re.M)
    return numbered([(f"depth {depth}, {walker}", "ns", float(ns)) for depth, walker, ns in rows])


def numbered(figures):
    """The same, each label with its unit once."""
    seen = collections.Counter()
    for label, unit, value in figures:
        seen[label, unit] += 1
        yield (label if seen[label, unit] == 1 else f"{label} ({seen[label, unit]})"), unit, value


@functools.lru_cache(maxsize=None)
def arrangements(before, after, exceeding):
    """In how many orders of so many values of each, no two equal, exactly so many pairs have `after` above `before`."""
    if exceeding < 0 or exceeding > before * after:
        return 0
    if before == 0 or after == 0:
        return int(exceeding == 0)
    return arrangements(before, after - 1, exceeding - before) + arrangements(before - 1, after, exceeding)


def chance_of_being_higher(before, after):
    """Mann-Whitney's exact test, one-sided: how probable it is that `after` exceeds `before` so often by chance."""
    pairs = sum((b > a) + (b == a) / 2 for a in before for b in after)
    counts = [arrangements(len(before), len(after), u) for u in range(len(before) * len(after) + 1)]
    return sum(counts[math.floor(pairs):]) / sum(counts)


def judge(label, before, after):
    """Judge the change of a figure: lists of values, one a turn. The ratio's quartiles are over the turns."""
    a, b = statistics.median(before), statistics.median(after)
    ratios = [mine / other for other, mine in zip(before, after)] if min(before + after) > 0 else []
    spread = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else [None] * 3
    lower, higher = ("WORSE", "better") if HIGHER_IS_BETTER.search(label) else ("better", "WORSE")
    word = ""
    if abs(b - a) > LEAST * abs(a):
        if b > a and chance_of_being_higher(before, after) < CHANCE:
            word = higher
        if b < a and chance_of_being_higher(after, before) < CHANCE:
            word = lower
    return Verdict(a, b, *spread, word)
