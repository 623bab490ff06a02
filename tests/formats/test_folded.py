# SPDX-License-Identifier: MIT
"""Folded stacks, as flamegraph.pl reads them."""
import re

import support


class Folded(support.Files):
    form = "folded"

    def test_golden(self):
        self.check_golden("example.folded", self.written("example").decode("utf8"))

    def test_reads_back(self):
        text = self.written("example").decode("utf8")
        self.assertTrue(text.endswith("\n"))
        total = 0
        for line in text.splitlines():
            stack, weight = line.rsplit(" ", 1)
            self.assertRegex(weight, r"^[1-9][0-9]*$")
            self.assertNotRegex(line, r"[\x00-\x1f\x7f]")
            self.assertTrue(all(stack.split(";")))
            total += int(weight)
        self.assertEqual(total, 1000000)  # 1.0000003 s

    def test_lines_are_distinct(self):
        stacks = [line.rsplit(" ", 1)[0] for line in self.written("example").decode().splitlines()]
        self.assertEqual(len(stacks), len(set(stacks)))

    def test_readers_of_two_columns(self):
        """flamegraph.pl takes a second number at the end of the stack for the weight of another program."""
        lines = self.written("odd").decode().splitlines()
        self.assertEqual(len(lines), 7)
        for line in lines:
            stack = re.match(r"^(.*)\s+?(\d+(?:\.\d*)?)$", line)[1]
            self.assertIsNone(re.match(r"^(.*)\s+?(\d+(?:\.\d*)?)$", stack), line)
        self.assertIn("main;ends in_12 1000", lines)

    def test_empty(self):
        self.assertEqual(self.written("empty"), b"")

    def test_huge(self):
        self.assertEqual(self.written("huge"), b"main;fib 9100000000000000\n")


support.main()
