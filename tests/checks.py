#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The checks of tests/, so that none gets lost when they are moved: a line for each.

    tests/checks.py list [BUILD] > FILE     BUILD: a configured build, whose ctest entries are listed as well
    tests/checks.py compare BEFORE AFTER    what AFTER lacks, what it has anew, what asserts something else

A line is KIND, NAME, how many assertions, a hash of their text, and where: a test method of Python, a test function of
cmocka, a helper that asserts, an entry of ctest with its command. Where does not count in a comparison. A measured
comparison is an assertion, its tolerance is a part of the text.
"""
import ast
import collections
import glob
import hashlib
import json
import os
import re
import subprocess
import sys

NOT_BUILT = "(not built)"  # ctest knows no command then
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
ASSERTS = re.compile(r"(assert\w*|fail|near|at_least|at_most|check\w*|expect\w*)$")  # a method, or a helper, by its name


def line(kind, name, texts, where):
    digest = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:8] if texts != [NOT_BUILT] else "-"
    return f"{kind}\t{name}\t{len(texts)}\t{digest}\t{where}"


def python_functions(node, prefix=""):
    """(qualified name, node) of each function that is not within another."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from python_functions(child, prefix + child.name + ".")
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield prefix + child.name, child
        else:
            yield from python_functions(child, prefix)


def python_asserts(function):
    for node in ast.walk(function):
        if isinstance(node, (ast.Assert, ast.Raise)):
            yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if ASSERTS.match(name):
                yield node.lineno, ast.unparse(node)


def python_lines():
    for path in sorted(glob.glob(os.path.join(HERE, "**/*.py"), recursive=True)):
        where = os.path.relpath(path, ROOT)
        with open(path, encoding="utf8") as file:
            for name, function in python_functions(ast.parse(file.read())):
                texts = [text for _, text in sorted(python_asserts(function))]
                is_test = name.split(".")[-1].startswith("test_")
                if is_test or texts:
                    yield line("python" if is_test else "helper", name, texts, where)


def cmocka_lines():
    for path in sorted(glob.glob(os.path.join(HERE, "**/*.c"), recursive=True)):
        where = os.path.relpath(path, ROOT)
        with open(path, encoding="utf8", errors="replace") as file:
            source = file.read()
        tests = set(re.findall(r"cmocka_unit_test\w*\(\s*(\w+)", source))
        for name, body in re.findall(r"(?m)^(?:static )?[\w ]+?[ *](\w+)\([^;{}]*\)\n\{\n(.*?)^\}", source, re.S):
            texts = [" ".join(text.split()) for text in re.findall(r"\b(?:assert_\w+|fail|fail_msg)\([^;]*;", body)]
            if name in tests or texts:
                yield line("cmocka" if name in tests else "helper", name, texts, where)
                tests.discard(name)
        for name in sorted(tests):  # of a macro
            yield line("cmocka", name, [], where)


def ctest_lines(build):
    done = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], check=True, capture_output=True)
    for test in json.loads(done.stdout)["tests"]:
        command = " ".join(test.get("command", [NOT_BUILT]))
        command = command.replace(os.path.abspath(build), "BUILD").replace(ROOT, "ROOT")
        yield line("ctest", test["name"], [command], command)


def read(path):
    """{(kind, name): Counter of (number of assertions, hash)}"""
    checks = collections.defaultdict(collections.Counter)
    with open(path, encoding="utf8") as file:
        for text in file:
            kind, name, count, digest, _ = text.rstrip("\n").split("\t")
            checks[kind, name][count, digest] += 1
    return checks


def compare(before, after):
    """Print what differs. Returns how many checks are gone."""
    gone = 0
    for key in sorted({*before, *after}):
        lost, new = before[key] - after[key], after[key] - before[key]
        count = lambda counter: ", ".join(f"{number} assertions {digest}" for number, digest in sorted(counter.elements()))
        if len(lost) == len(new) == 1 and any(digest == "-" for _, digest in [*lost, *new]):
            continue
        if lost and new and lost.total() <= new.total():
            print("changed", *key, ":", count(lost), "->", count(new))
        elif lost:
            gone += lost.total() - new.total()
            print("gone   ", *key, ":", count(lost), f"-> {count(new)}" if new else "")
        elif new:
            print("new    ", *key, ":", count(new))
    return gone


def main(words):
    if words[:1] == ["compare"] and len(words) == 3:
        return 1 if compare(read(words[1]), read(words[2])) else 0
    if words[:1] != ["list"] or len(words) > 2:
        print(__doc__)
        return 2
    for text in [*python_lines(), *cmocka_lines(), *(ctest_lines(words[1]) if words[1:] else [])]:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
