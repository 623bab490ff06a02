# SPDX-License-Identifier: MIT
"""The documents: links that resolve, names of commands and formats that exist, and a README that stays one page."""
import glob
import os
import re
import subprocess
import unittest

GREENPROF = os.environ["GREENPROF"]
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
FOLDERS = ("doc", "include", "runtime-hooks", "src", "tests", "tools")
SOURCES = (".c", ".h", ".cc", ".cpp", ".S", ".inc", ".py", ".sh", ".cmake", "CMakeLists.txt")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def files(*suffixes):
    """Paths below the root, without builds."""
    found = [name for name in os.listdir(ROOT) if os.path.isfile(os.path.join(ROOT, name))]
    for folder in FOLDERS:
        found += glob.glob(f"{folder}/**/*", root_dir=ROOT, recursive=True)
    return sorted(name for name in found if name.endswith(suffixes) and os.path.isfile(os.path.join(ROOT, name)))


def help_of(command):
    return subprocess.run([GREENPROF, *command, "--help"], capture_output=True, text=True, check=True).stdout


def formats():
    """{name: ...} of `greenprof export --help`, which lists one format a line after -f."""
    text = help_of(["export"]).split("--format", 1)[1].split("--output", 1)[0]
    return set(re.findall(r"^\s+([a-z]+)\s", text, re.MULTILINE))


class Docs(unittest.TestCase):
    def test_links(self):
        pages = files(".md")
        self.assertGreater(len(pages), 12)
        for page in pages:
            text = re.sub(r"^```.*?^```", "", read(page), flags=re.DOTALL | re.MULTILINE)
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if not re.match(r"[a-z]+:|#", target):
                    path = os.path.join(ROOT, os.path.dirname(page), target.split("#")[0])
                    self.assertTrue(os.path.exists(path), f"{page}: {target}")

    def test_readme_is_one_page(self):
        lines = read("README.md").splitlines()
        self.assertLessEqual(len(lines), 140)
        self.assertLessEqual(max(map(len, lines)), 120)
        self.assertIn("![", "\n".join(lines[:30]), "the first flame graph")

    def test_commands_exist(self):
        known = set(re.findall(r"^  ([a-z]+)", help_of([]), re.MULTILINE))
        self.assertIn("report", known)
        for page in ["README.md", *files(".md")]:
            for line in read(page).splitlines():
                if line.startswith("    greenprof "):
                    self.assertIn(line.split()[1], known, f"{page}: {line}")
            for script in re.findall(r"(?<![\w/])tools/[a-z-]+(?:/[a-z_-]+)*", read(page)):
                if not page.startswith("tools/"):
                    self.assertTrue(os.path.exists(os.path.join(ROOT, script)) or "/greenprof/" in script, f"{page}: {script}")

    def test_formats_are_listed(self):
        known = formats()
        self.assertIn("pstats", known)
        self.assertEqual(set(re.findall(r"^\| `([a-z]+)` \|", read("doc/formats.md"), re.MULTILINE)), known)
        declaration = re.search(r"//   format: (.*?)//   path:", read("include/greenprof/prof.h"), re.DOTALL)[1]
        self.assertEqual(set(re.findall(r'"([a-z]+)"', declaration)), known - {"chrome"})

    def test_licence_lines(self):
        sources = files(*SOURCES)
        self.assertGreater(len(sources), 600)
        missing = [path for path in sources if "SPDX-License-Identifier: MIT" not in "".join(read(path).splitlines(True)[:3])]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main()
