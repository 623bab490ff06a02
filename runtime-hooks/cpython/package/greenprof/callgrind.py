# SPDX-License-Identifier: MIT
"""What an exact profile counted, as KCachegrind and callgrind_annotate read it.

Readers take a function's inclusive cost to be the sum of the calls into it, so a function "[root]" makes those that nobody was
seen to make, and a function that calls itself is charged nothing for it. Source: callgrind's cl-format.html.
"""
import collections

_ROOT = ("~", 0, "[root]")


class _Numbered:
    """Names are written in full where they stand first, and by their numbers after that."""

    def __init__(self):
        self._numbers = {}

    def __call__(self, name):
        if name in self._numbers:
            return f"({self._numbers[name]})"
        self._numbers[name] = len(self._numbers) + 1
        return f"({self._numbers[name]}) " + name.replace("\n", " ")


def _ns(seconds):
    return max(round(seconds * 1e9), 0)


def _calls(stats):
    """{caller: [(callee, calls, seconds)]}"""
    calls = collections.defaultdict(list)
    for function, (_, count, _, total, callers) in stats.items():
        for caller, (made, _, _, cost) in callers.items():
            calls[caller].append((function, made, 0 if caller == function else cost))
            count, total = count - made, total - (0 if caller == function else cost)
        if count > 0:
            calls[_ROOT].append((function, count, total))
    return calls


def write(stats, file):
    """stats: as pstats has them; file: open for text."""
    calls = _calls(stats)
    path_of, name_of = _Numbered(), _Numbered()
    alike = collections.Counter((path, name) for path, _, name in stats)

    def name(function):  # two functions of a file that have one name would be one
        path, line, text = function
        return name_of(f"{text}:{line}" if alike[path, text] > 1 else text)

    file.write("# callgrind format\nversion: 1\ncreator: greenprof\npositions: line\nevents: ns\n")
    file.write(f"summary: {sum(_ns(row[2]) for row in stats.values())}\n")
    for function, own in [(_ROOT, 0), *((function, row[2]) for function, row in stats.items())]:
        path, line, _ = function
        file.write(f"\nfl={path_of(path)}\nfn={name(function)}\n{line} {_ns(own)}\n")
        for callee, count, cost in calls[function]:
            file.write(f"cfi={path_of(callee[0])}\ncfn={name(callee)}\ncalls={count} {callee[1]}\n{line} {_ns(cost)}\n")
