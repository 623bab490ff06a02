# SPDX-License-Identifier: MIT
"""Reads .prof files as pstats does, and compares their counts with what the program kept itself (truth.h)."""
import json
import pstats

NO_CALLER = 24


def counts(stats):
    """{function: (primitive calls, calls, {caller: (calls, primitive calls)})} of the functions that were called."""
    found = {}
    for (_, _, name), (primitive, calls, _, _, callers) in stats.items():
        if not name.startswith("["):
            edges = {key[2]: edge[:2] for key, edge in callers.items()}
            found[base_name(name)] = (primitive, calls, {base_name(caller): edge for caller, edge in edges.items()})
    return found


def base_name(name):
    return name.split("(", 1)[0]  # C++ names have their parameters


def expected(edges):
    """The same from rows of [caller, callee, calls, nested, same edge]."""
    result = {}
    for caller, callee, calls, nested, same_edge in edges:
        primitive, total, callers = result.get(f"f{callee}", (0, 0, {}))
        if caller != NO_CALLER:
            callers[f"f{caller}"] = (calls, calls - same_edge)
        result[f"f{callee}"] = (primitive + calls - nested, total + calls, callers)
    return result


def load(path):
    return pstats.Stats(path).stats


def truth(path="truth.json"):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]
