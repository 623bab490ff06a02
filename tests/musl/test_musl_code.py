# SPDX-License-Identifier: MIT
"""prof_start() and prof_stop() in programs of musl: by the shared library, and linked statically."""
import os
import pstats
import subprocess

import check
import musl


class Code(musl.Case):
    def check_program(self, *words, **variables):
        program, output = self.build("code", "-DCODE", *words), self.path("x.prof")
        done = subprocess.run([program, output], capture_output=True, timeout=check.limit(), env={**os.environ, **variables})
        self.assertEqual(done.returncode, 0, done.stderr)
        truth = check.Truth(done.stdout.decode()).functions
        times = {name: row[3] for (_, _, name), row in pstats.Stats(output).stats.items()}
        total = sum(truth.values())
        for function, seconds in truth.items():
            self.near(function, times[function] / total, seconds / total, 0.03, slack=0.005)

    def test_shared(self):
        self.check_program("-L", musl.LIBRARIES, "-lgreenprof", LD_LIBRARY_PATH=musl.LIBRARIES)

    def test_static(self):
        archive = os.path.join(musl.LIBRARIES, "libgreenprof.a")
        self.assertTrue(os.path.exists(archive), archive)
        for kind in ("-static", "-static-pie"):
            self.check_program(kind, archive, "-Wl,--eh-frame-hdr")


if __name__ == "__main__":
    check.main()
