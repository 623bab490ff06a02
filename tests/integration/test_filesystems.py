# SPDX-License-Identifier: MIT
"""The file system below a capture and its ring file: with and without shared blocks, full, read-only. The program comes to
its end as alone, and where a ring file cannot be safe there is none.

Made in files, mounted in a mount namespace of the test's own; root's.
"""
import os
import shutil
import subprocess
import sys
import time

import check
from capture import Capture

INSIDE = "GREENPROF_TEST_NAMESPACE"
IMAGE_BYTES = 320 << 20  # XFS needs 300 MB
XFS = ("mkfs.xfs", "-q", "-f", "-m")
KINDS = {  # how it is made, mounted, and whether a ring file is safe there
    "tmpfs": (None, ("-t", "tmpfs", "-o", f"size={IMAGE_BYTES}", "none"), True),
    "ext4": (("mkfs.ext4", "-q", "-F"), ("-o", "loop"), True),
    "xfs": ((*XFS, "reflink=0"), ("-o", "loop"), True),
    "xfs-reflink": ((*XFS, "reflink=1"), ("-o", "loop"), False),
    "btrfs": (("mkfs.btrfs", "-q", "-f"), ("-o", "loop"), False),
}


def works(*command):
    return shutil.which(command[0]) and subprocess.run(command, capture_output=True).returncode == 0


class Filesystems(check.Case):
    def mount(self, kind):
        maker, options, _ = KINDS[kind]
        place, image = os.path.join(self.directory, kind), os.path.join(self.directory, kind + ".image")
        os.mkdir(place)
        if maker is not None:
            with open(image, "wb") as file:
                file.truncate(IMAGE_BYTES)
            if not works(*maker, image):
                self.skipTest(f"{maker[0]} is not installed, or does not know {maker[-1]}")
            options = (*options, image)
        if not works("mount", *options, place):
            self.skipTest(f"{kind} cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", place])
        return place

    def start(self, place, *options):
        process = subprocess.Popen([check.GREENPROF, "run", "--flush", "10", *options, "-o",
                                    os.path.join(place, "x.greenprof"), "--", check.program("steps"), "burn", "0.5",
                                    "burn", "0.5"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def finish(self, process):
        out, errors = process.communicate(timeout=check.LIMIT_SECONDS)
        self.assertEqual(process.returncode, 0, errors)
        self.assertGreaterEqual(float(out.split()[1]), 1)
        return errors

    def wait_until(self, process, is_so):
        start = time.monotonic()
        while not is_so():
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic() - start, check.LIMIT_SECONDS)
            time.sleep(0.02)

    def fill(self, place):
        with open(os.path.join(place, "filler"), "wb", buffering=0) as file:
            for size in 1 << 20, 1 << 12, 1:
                try:
                    while file.write(bytes(size)) > 0:
                        pass
                except OSError:
                    pass

    def check_full(self, kind):
        """A copy of the ring file (cp shares the blocks where it can), and then no block is left."""
        place = self.mount(kind)
        rings, capture = (os.path.join(place, name) for name in ("x.greenprof.rings", "x.greenprof"))
        process = self.start(place)
        self.wait_until(process, lambda: os.path.exists(capture) and os.path.getsize(capture) > 1000)
        has_rings = os.path.exists(rings)
        for name in [rings] if has_rings else []:
            subprocess.run(["cp", name, os.path.join(place, "copy")], check=True)
        self.fill(place)
        errors = self.finish(process)
        self.assertEqual(has_rings, KINDS[kind][2])
        self.assertEqual("x.greenprof.rings: Operation not supported" in errors, not has_rings)
        self.assertIn("No space left on device", errors)
        self.assertTrue(Capture(capture).whole)

    def test_tmpfs(self):
        self.check_full("tmpfs")

    def test_ext4(self):
        self.check_full("ext4")

    def test_xfs(self):
        self.check_full("xfs")

    def test_xfs_with_shared_blocks(self):
        self.check_full("xfs-reflink")

    def test_btrfs(self):
        self.check_full("btrfs")

    def test_overlays(self):
        for kind in "ext4", "xfs-reflink":
            with self.subTest(kind):
                place = self.mount(kind)
                for name in "lower", "upper", "work", "all":
                    os.mkdir(os.path.join(place, name))
                if not works("mount", "-t", "overlay", "none", "-o",
                             ",".join(f"{name}dir={place}/{name}" for name in ("lower", "upper", "work")), f"{place}/all"):
                    self.skipTest("overlays cannot be mounted here")
                self.addCleanup(subprocess.run, ["umount", "-l", f"{place}/all"])
                errors = self.finish(self.start(os.path.join(place, "all")))
                self.assertEqual("x.greenprof.rings: Operation not supported" in errors, not KINDS[kind][2])

    def test_read_only(self):
        """From a moment on; and from the start, where nothing is begun."""
        place = self.mount("ext4")
        process = self.start(place, "--rotate", "1s")
        capture = os.path.join(place, "x.greenprof")
        self.wait_until(process, lambda: os.path.exists(capture) and os.path.getsize(capture) > 1000)
        subprocess.run(["mount", "-o", "remount,ro", place], capture_output=True)  # busy: it is written to
        self.finish(process)
        if not works("mount", "-o", "remount,ro", place):
            self.skipTest("it stays writable")
        done = check.greenprof("run", "-o", os.path.join(place, "y.greenprof"), "--", "true")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Read-only file system", done.stderr.decode())


if __name__ == "__main__":
    if INSIDE not in os.environ:
        if os.geteuid() != 0 or not works("unshare", "--mount", "true"):
            print("SKIP: mounting is root's")
            sys.exit(check.SKIPPED)
        os.execvpe("unshare", ["unshare", "--mount", sys.executable, "-B", *sys.argv], {**os.environ, INSIDE: "1"})
    check.main()
