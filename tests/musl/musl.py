# SPDX-License-Identifier: MIT
"""Programs of musl, beside the libraries that were built for it."""
import os
import shutil
import subprocess

import check

LIBRARIES = os.path.join(os.environ["MUSL"], "src")
ROOT = os.path.join(os.environ["PROGRAMS"], "..", "..")


class Case(check.Case):
    def setUp(self):
        super().setUp()
        if shutil.which("musl-gcc") is None:
            self.skipTest("musl-gcc is not installed")
        self.assertTrue(os.path.exists(os.path.join(LIBRARIES, "libgreenprof.so.0")), LIBRARIES)

    def build(self, name, *words):
        program = self.path(name)
        subprocess.run(["musl-gcc", "-g", "-O2", "-I", os.path.join(ROOT, "include"), check.program("shares.c"),
                        *words, "-o", program], check=True)
        return program
