# SPDX-License-Identifier: MIT
"""Manual pages of functions: each that the library exports has one, which says what its header says.

usage: test_man3.py PAGES LIBRARY HEADERS GENERATOR
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PAGES, LIBRARY, HEADERS, GENERATOR = (os.path.abspath(path) for path in sys.argv[1:5])
UNDOCUMENTED = {"prof_core_interface", "prof_core_attach"}  # for the Python package and the command, in no header


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def source(name):
    text = read(os.path.join(PAGES, name + ".3"))
    alias = re.fullmatch(r"\.so man3/(\S+)\n", text)
    return read(os.path.join(PAGES, os.path.basename(alias[1]))) if alias else text


def plain(text):
    """Words of a page, without roff's requests and escapes."""
    text = re.sub(r"(?m)^\.(?:[A-Z]+) ?", "", text)
    for escape, meaning in (("\\-", "-"), ("\\(aq", "'"), ("\\fI", ""), ("\\fR", ""), ("\\&", ""), ("\\e", "\\"), ('"', "")):
        text = text.replace(escape, meaning)
    return " ".join(text.split())


class Man3(unittest.TestCase):
    def test_every_function_has_a_page(self):
        listing = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
        exported = set(re.findall(r" [TBDR] (prof_\w+)", listing)) - UNDOCUMENTED
        self.assertGreater(len(exported), 40)
        pages = {name.removesuffix(".3") for name in os.listdir(PAGES)}
        self.assertEqual(exported - pages, set())
        inline = {"prof_coro_switch", "prof_enter", "prof_exit"}
        headers = {"greenprof-" + os.path.basename(path)[:-2] for path in glob.glob(HEADERS + "/*.h")}
        self.assertEqual(pages - exported - headers, inline)

    def check(self, *checker):
        if shutil.which(checker[0]) is None:
            self.skipTest(f"no {checker[0]}")
        for name in sorted(os.listdir(PAGES)):
            if not read(os.path.join(PAGES, name)).startswith(".so "):
                result = subprocess.run([*checker, os.path.join(PAGES, name)], capture_output=True, text=True)
                self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""), name)

    def test_mandoc(self):
        self.check("mandoc", "-Tlint", "-Wwarning")

    def test_groff(self):
        self.check("groff", "-man", "-ww", "-z")

    def test_a_page(self):
        page = source("prof_start")
        text = plain(page)
        for part in ("prof_start - start a profile of the calling request, thread or process", "#include <greenprof/prof.h>",
                     "prof_t *prof_start(const prof_options_t *options);", "RETURN VALUE Returns the running profile",
                     "options NULL = all defaults.", "ENOTSUP", "Signals not safe.", "SEE ALSO greenprof (1), greenprof-prof (3)"):
            self.assertIn(part, text)
        self.assertEqual(source("prof_trace_to_uuid"), source("prof_trace_to_hex"))

    def test_nothing_is_lost(self):
        """Every word of a function's comment is in its page."""
        for path in glob.glob(HEADERS + "/*.h"):
            for comment, name in re.findall(r"(?:^|\n)\n((?://.*\n)+)PROF_API [^(;]*?\b(prof_\w+)[(;]", read(path)):
                words = re.findall(r"\w{3,}", comment)
                page = set(re.findall(r"\w{3,}", plain(source(name))))
                self.assertEqual(sorted(set(words) - page - {"clang", "format"}), [], name)

    def test_a_function_without_a_comment_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            header = os.path.join(folder, "bare.h")
            with open(header, "w", encoding="utf-8") as file:
                file.write("// SPDX-License-Identifier: MIT\n// Bare.\n#ifndef GREENPROF_BARE_H\n#define PROF_VERSION_MAJOR 1\n\n"
                           "PROF_API int prof_bare(void);\n\n#endif\n")
            result = subprocess.run([sys.executable, GENERATOR, folder, header], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (1, "make_man3.py: bare.h: prof_bare has no comment\n"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
