# SPDX-License-Identifier: MIT
"""What the tests of doc/production.md share: the document's examples, and a folder for the captures.

usage: test_NAME.py DOCUMENT GREENPROF CORE_LIBRARY
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

DOCUMENT, GREENPROF, CORE = (os.path.abspath(path) for path in sys.argv[1:4])

# A program for the examples; it takes a while, for samples.
BURN = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done"


def example(heading, word):
    """The first indented block below a heading that has this word, with continued lines joined."""
    with open(DOCUMENT, encoding="utf-8") as file:
        section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", file.read(), re.MULTILINE | re.DOTALL)[1]
    for block in re.findall(r"(?:^    .*\n)+", section, re.MULTILINE):
        if word in block:
            return re.sub(r"\\\n *", "", re.sub(r"(?m)^    ", "", block))
    raise AssertionError(f"{DOCUMENT}: no example below '{heading}' has '{word}'")


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="greenprof.")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.chmod(self.folder, 0o755)
        self.captures = self.path("captures")
        os.mkdir(self.captures)
        os.chmod(self.captures, 0o1777)

    def path(self, name):
        return os.path.join(self.folder, name)

    def fill(self, text, **places):
        """An example with the paths of this test."""
        text = text.replace("/var/tmp/captures", self.captures).replace("/usr/local/lib/libgreenprof-core.so.0", CORE)
        text = text.replace("LD_PRELOAD=libgreenprof-core.so.0", "LD_PRELOAD=" + CORE)
        for name, value in places.items():
            text = re.sub(rf"\b{name}\b", lambda _, value=value: value, text)
        return text

    def run_shell(self, script, **options):
        result = subprocess.run(["sh", "-c", script], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, cwd=self.folder, **options)
        self.assertEqual(result.returncode, 0, f"{script}\n{result.stdout}\n{result.stderr}")
        return result.stdout

    def recorded(self):
        return sorted(glob.glob(os.path.join(self.captures, "*.greenprof")))

    def report(self, *files):
        result = subprocess.run([GREENPROF, "report", *files], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout
