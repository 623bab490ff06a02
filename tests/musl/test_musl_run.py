# SPDX-License-Identifier: MIT
"""`greenprof run`, of glibc, on programs of musl."""
import os
import shutil
import subprocess

import check
import musl

# A command beside the library for musl, as both are installed.
CORE = os.path.join(musl.LIBRARIES, "libgreenprof-core.so.0")


class Run(musl.Case):
    def command(self, with_library):
        folder = self.path("lib/greenprof/musl")
        os.makedirs(folder)
        os.mkdir(self.path("bin"))
        shutil.copy(check.GREENPROF, self.path("bin/greenprof"))
        if with_library:
            shutil.copy(CORE, folder)
        return self.path("bin/greenprof")

    def test_shares(self):
        program, output = self.build("shares"), self.path("x.greenprof")
        script = self.path("script")
        with open(script, "w") as file:
            file.write(f"#!{program}\n")
        os.chmod(script, 0o755)
        command = self.command(True)
        done = subprocess.run([command, "run", "-F", "1000", "-o", output, "--", program], capture_output=True,
                              timeout=check.limit())
        self.assertEqual(done.returncode, 0, done.stderr)
        truth = check.Truth(done.stdout.decode())
        folded = [line.rsplit(" ", 1) for name in os.listdir(self.directory) if name.startswith("x.greenprof")
                  for line in check.greenprof("export", self.path(name), "--format", "folded").stdout.decode().splitlines()]
        total = sum(truth.functions.values())
        self.assertEqual(len(truth.functions), 4)
        for function, seconds in truth.functions.items():
            got = sum(int(weight) for stack, weight in folded if function in stack.split(";")) / 1e6
            self.near(function, got / total, seconds / total, 0.03, slack=0.005)
        lost = sum(int(weight) for stack, weight in folded if "[incomplete]" in stack) / 1e6
        self.at_most("incomplete", lost / total, 0.03)
        done = subprocess.run([command, "run", "--quiet", "-o", self.path("y"), "--", script], capture_output=True,
                              timeout=check.limit())
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_without_library(self):
        """Refused before the program starts."""
        program = self.build("shares")
        done = subprocess.run([self.command(False), "run", "-o", self.path("x"), "--", program], capture_output=True,
                              timeout=check.limit())
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(b"is a musl program, and greenprof's library for musl is not installed", done.stderr)

    def test_children_of_glibc(self):
        """A child of glibc gets nothing preloaded, as it could not load it."""
        source = self.path("call.c")
        with open(source, "w") as file:
            file.write('#include <unistd.h>\nint main(void) { return execl("/bin/sh", "sh", "-c", '
                       '"echo ${LD_PRELOAD-alone}", (char *)0); }\n')
        subprocess.run(["musl-gcc", source, "-o", self.path("call")], check=True)
        done = subprocess.run([self.command(True), "run", "--quiet", "-o", self.path("x"), "--", self.path("call")],
                              capture_output=True, timeout=check.limit())
        self.assertEqual((done.returncode, done.stdout), (0, b"alone\n"), done.stderr)


if __name__ == "__main__":
    check.main()
