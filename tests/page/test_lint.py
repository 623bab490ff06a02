# SPDX-License-Identifier: MIT
"""The checks of the page's scripts find what they are there for, and nothing else."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

LINT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lint")
HEAD = '// SPDX-License-Identifier: MIT\n// A made-up file.\n"use strict";\n\n'
BAD = {  # code: what the check says
    "document.body.innerHTML = 1;": "innerHTML is forbidden",
    'document.body["outerHTML"] = 1;': "outerHTML is forbidden",
    "document.write(1);": "write is forbidden",
    'eval("1");': "eval is forbidden",
    'fetch("x");': "fetch is forbidden",
    "console.log(1);": "console is forbidden",
    "if (1 == 2);": "== and != convert",
    "if (1 != 2);": "== and != convert",
    "var x = 1;": "var is forbidden",
    'import("x");': "no import",
    "export const x = 1;": "no import and no export",
    "debugger;": "a leftover",
    "let x; if (x = 1) x = 2;": "an assignment is the condition",
    "const x = 'y';": "double quotes",
    "const x = 1": "semicolon",
    "const x = 1;\t": "a tab",
    "const x = 1; ": "space at the end",
    "const x = 1;\n": "one newline",
    "const x = " + "1" * 150 + ";": "a line of",
    "function f() {" + "\n" * 40 + "}": "a function of 41 lines",
    "\n" * 450: "a file of",
    "function unused() {}": "nothing uses unused",
    "class X { idle() {} }\nnew X();": "nothing uses idle",
    "function f(g) { return g; }\nfunction g() { f(1); }": "g hides",
}
GOOD = """/** @type {Record<string, number>} */
const written = { write: 1, eval: 2 };
const text = 'a "word"' + "var x == 1; console.log(innerHTML)"; // fetch(eval) != var

if (!(written.x !== 1 && text === ""))
    document.title = `${text} == ${written.x}`;
"""
TWICE = "/** Twice. @param {number} x */\nfunction twice(x) {\n    return 2 * x;\n}\n\ntwice(%s);"


class Lint(unittest.TestCase):
    def check(self, script, *codes, heads=(), order=None):
        """Output for files with these codes; the files are 0.js, 1.js, ..., and begin with HEAD, or the first ones with `heads`."""
        with tempfile.TemporaryDirectory() as folder:
            files = {f"{i}.js": f"{[*heads, *[HEAD] * len(codes)][i]}{code}\n" for i, code in enumerate(codes)}
            for name, text in {**files, "order.txt": "\n".join(files) if order is None else order}.items():
                with open(os.path.join(folder, name), "w") as file:
                    file.write(text)
            done = subprocess.run(["node", os.path.join(LINT, script), folder], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
        if done.returncode == 77:
            self.skipTest(done.stdout)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode, 0 if done.stdout == "0 problems\n" else 1, done.stdout)
        return done.stdout

    def test_each_rule(self):
        found = self.check("check_lint.js", *BAD)
        for i, (code, said) in enumerate(BAD.items()):
            with self.subTest(code[:60]):
                self.assertRegex(found, rf"(?m)^{i}\.js:\d+: .*{re.escape(said)}")

    def test_head_and_order(self):
        found = self.check("check_lint.js", *["document.title = \"\";"] * 3, heads=(HEAD.replace("MIT", "BSD"), HEAD.replace("strict", "lax")))
        self.assertRegex(found, r"(?m)^0\.js:\d+: .*licence")
        self.assertRegex(found, r"(?m)^1\.js:\d+: .*use strict")
        self.assertNotIn("2.js", found)
        self.assertIn("order.txt does not have 0.js", self.check("check_lint.js", GOOD.rstrip(), order=""))

    def test_good(self):
        self.assertEqual(self.check("check_lint.js", GOOD.rstrip()), "0 problems\n")
        self.assertEqual(self.check("check_types.js", GOOD.rstrip(), TWICE % "1"), "0 problems\n")

    def test_types(self):
        """A tag behind a comment's text counts; what is not used, or of another type, is found."""
        found = self.check("check_types.js", TWICE % '"1"', "/** @param {number} x */\nfunction f(x) {}\nf(1);")
        self.assertIn("0.js:10:7: Argument of type 'string'", found)
        self.assertRegex(found, r"(?m)^1\.js:\d+:\d+: .*never read")


if __name__ == "__main__":
    if shutil.which("node") is None:
        print("SKIP: there is no node")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
