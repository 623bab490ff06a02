# SPDX-License-Identifier: MIT
"""A name means one thing: static functions begin with their module's name, no two functions and no two types have one."""
import collections
import os
import re
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
FOLDERS = ("src", "runtime-hooks", "tools/greenprof")
FUNCTION = re.compile(r"^((?:[A-Za-z_][\w]*[\s*]+)+)([A-Za-z_]\w*)\((?:[^;{}()]|\([^;{}()]*\))*\)\s*(?:__attribute__[^\n]*)?\n\{", re.MULTILINE)
TYPE = re.compile(r"^(?:typedef )?(?:struct|union|enum) (gp_\w+)\s*\{", re.MULTILINE)
MACHINES = ("src", "runtime-hooks", "include", "tools")
MACHINE_TEST = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b.*\b__(?:x86_64|amd64|aarch64|arm|i386)__", re.MULTILINE)
MACHINE_FILE = re.compile(r"(?:^|_)arch(?:_\w+)?$|_(?:x86_64|aarch64)$")
MACHINE = re.compile(r"_(x86_64|aarch64|dlfo|snapshot|openssl|own)$")


def sources(suffixes, folders=FOLDERS):
    for folder in folders:
        for place, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in sorted(names):
                if name.endswith(suffixes):
                    path = os.path.join(place, name)
                    with open(path, encoding="utf-8") as source:
                        yield os.path.relpath(path, ROOT), source.read()


def functions():
    """(file, name, whether it is static) of each function that is defined."""
    for path, text in sources((".c", ".h")):
        for match in FUNCTION.finditer(text):
            if not match[1].startswith(("else", "return")):
                yield path, match[2], "static" in match[1].split()


def modules(path):
    """What the names of a file's own functions may begin with: the file's name, its folder's before it where two files
    have one name."""
    folder, name = os.path.split(os.path.splitext(path)[0])
    name = name.lstrip("_")
    return name + "_", MACHINE.sub("", name) + "_", os.path.basename(folder).replace("-", "_") + "_"


class Names(unittest.TestCase):
    maxDiff = None

    def test_static_functions_begin_with_their_module(self):
        found = [(path, name) for path, name, is_static in functions() if is_static and path.endswith(".c")]
        self.assertGreater(len(found), 3000)
        self.assertEqual([f"{path}: {name}" for path, name in found
                          if not (name + "_").startswith(modules(path)) and name != "main"], [])

    def test_no_two_functions_of_one_name(self):
        places = collections.defaultdict(set)
        for path, name, _ in functions():
            places[name].add(MACHINE.sub("", os.path.splitext(path)[0]))  # the variant of a machine, or of a libc, is the same function
        self.assertEqual({name: sorted(files) for name, files in places.items() if len(files) > 1 and name != "main"}, {})

    def test_no_two_types_of_one_name(self):
        places = collections.defaultdict(set)
        for path, text in sources((".h",)):
            for name in TYPE.findall(text):
                places[name].add(path)
        self.assertEqual({name: sorted(files) for name, files in places.items() if len(files) > 1}, {})

    def test_machines_have_files_of_their_own(self):
        self.assertEqual([path for path, text in sources((".c", ".h", ".S", ".inc", ".cc"), MACHINES) if MACHINE_TEST.search(text)
                          and not MACHINE_FILE.search(os.path.splitext(os.path.basename(path))[0])], [])


if __name__ == "__main__":
    unittest.main()
