# SPDX-License-Identifier: MIT
"""Whose a file is decides, not what it is called: captures, their parts and ring files, beside those of other users, of
other programs, and of the user who names things as he likes."""
import glob
import os
import shutil
import stat
import struct
import subprocess
import time
import unittest

import check
from capture import Capture

OTHER_USER = 65534
LIBRARY = os.path.join(check.LIBRARIES, "libgreenprof-core.so.0")
AS_ROOT = unittest.skipUnless(os.geteuid() == 0, "only root can be another user")
RINGS_LATEST = 72  # capture/ring_file.h: offsets in the header
RINGS_OWNER_BYTES, RINGS_STORE_BYTES = 24, 80
RINGS_BEGIN = 24 * 1024


class Files(check.Case):
    def path(self, name):
        return os.path.join(self.directory, name)

    def put(self, name, text=b""):
        with open(self.path(name), "wb") as file:
            file.write(text)
        return self.path(name)

    def content(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def wait_for(self, is_so):
        start = time.monotonic()
        while not is_so():
            self.assertLess(time.monotonic() - start, check.LIMIT_SECONDS)
            time.sleep(0.02)

    def preload(self, output, *steps, **options):
        """A program that the environment alone says it to, as in a container. Returns its CPU time."""
        done = subprocess.run([*options.pop("before", ()), check.program("steps"), *map(str, steps)], cwd=self.directory,
                              capture_output=True, timeout=check.LIMIT_SECONDS, env={
                                  **os.environ, "LD_PRELOAD": LIBRARY, "GREENPROF_OUTPUT": self.path(output),
                                  "GREENPROF_FREQUENCY": "1000", **options})
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return float(done.stdout.split()[-1])

    def parts(self, name="api"):
        return [os.path.basename(path) for path in sorted(glob.glob(self.path(f"{name}-[0-9]*.greenprof")))]


class Others(Files):
    """Files that are there before, in a directory where everybody may write."""

    def make(self, kind, name):
        path = self.path(name)
        if kind == "link":
            os.symlink(self.put("victim", b"secret"), path)
            os.lchown(path, OTHER_USER, OTHER_USER)
            return self.path("victim"), b"secret"
        if kind == "names":
            os.link(self.put("victim", b"secret"), path)
            return self.path("victim"), b"secret"
        if kind == "pipe":
            os.mkfifo(path, 0o666)
            self.addCleanup(os.close, os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        else:
            self.put(name, b"secret" if kind == "full" else b"")
        os.chown(path, OTHER_USER, OTHER_USER)
        os.chmod(path, 0o666)
        return path, b"" if kind == "pipe" else self.content(name)

    def check_refused(self, kind, output, name):
        os.chmod(self.directory, 0o1777)
        path, before = self.make(kind, name)
        self.preload(output, "burn", 0.05)
        if kind == "pipe":
            reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            after = os.read(reader, 100)
            os.close(reader)
        else:
            with open(path, "rb") as file:
                after = file.read()
        self.assertEqual(after, before)

    @AS_ROOT
    def test_refused(self):
        for kind in "empty", "full", "link", "names", "pipe":
            with self.subTest(kind):
                self.check_refused(kind, f"{kind}.greenprof", f"{kind}.greenprof")
                for name in glob.glob(self.path("*")):
                    os.unlink(name)

    @AS_ROOT
    def test_refused_with_a_made_name(self):
        for kind in "empty", "link":
            os.chmod(self.directory, 0o1777)
            with self.subTest(kind):
                script = f"echo $$ > {self.path('pid')}; read go; exec \"$@\""
                process = subprocess.Popen(
                    ["sh", "-c", script, "sh", "env", f"LD_PRELOAD={LIBRARY}", check.program("steps"), "burn", "0.05"],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    env={**os.environ, "GREENPROF_OUTPUT": self.path("%p.greenprof")})
                path, before = self.make(kind, f"{process.pid}.greenprof")
                process.communicate(b"\n")
                self.assertEqual(process.returncode, 0)
                with open(path, "rb") as file:
                    self.assertEqual(file.read(), before)
                for name in glob.glob(self.path("*")):
                    os.unlink(name)

    @AS_ROOT
    def test_run_says_so(self):
        self.put("x.greenprof")
        os.chown(self.path("x.greenprof"), OTHER_USER, OTHER_USER)
        done = check.greenprof("run", "-o", self.path("x.greenprof"), "--", "true")
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn("x.greenprof: is there already, and is another user's\n", done.stderr.decode())

    def test_own_becomes_private(self):
        os.chmod(self.put("x.greenprof", b"before"), 0o666)
        self.preload("x.greenprof", "burn", 0.05)
        self.assertEqual(stat.S_IMODE(os.stat(self.path("x.greenprof")).st_mode), 0o600)
        self.check_health(Capture(self.path("x.greenprof")))

    def test_own_link_is_followed(self):
        os.mkdir(self.path("there"))
        os.symlink("there/y.greenprof", self.path("x.greenprof"))
        self.preload("x.greenprof", "burn", 0.05)
        self.check_health(Capture(self.path("there/y.greenprof")))


class Beside(Files):
    """Several programs, and one name."""

    def test_each_has_a_file(self):
        self.preload("x.greenprof", "burn", 0.2, "child", "burn", 0.1)
        (own, other), = ((Capture(path) for path in sorted(glob.glob(self.path("x.greenprof*")))),)
        self.assertNotEqual(own.pid, other.pid)
        self.near("CPU time of the parent", own.process_cpu_ns / 1e9, 0.2, 0.1, 0.05)
        self.near("CPU time of the child", other.process_cpu_ns / 1e9, 0.1, 0.1, 0.05)
        self.check_health(own)
        self.check_health(other)

    def test_launchers_have_none(self):
        self.preload("x.greenprof", "burn", 0.05, before=("timeout", "60"))
        self.assertEqual(os.listdir(self.directory), ["x.greenprof"])
        self.assertIn(b"steps", Capture(self.path("x.greenprof")).meta["exe"])

    def test_what_scripts_ask_has_none(self):
        """A script in place of the program, as pyenv's python is: what it asks of small programs leaves no captures."""
        script = 'p=$(readlink -f "$0"); d=$(dirname "$p"); exec "$d/$(basename "$p")" "$@"'
        self.preload("x.greenprof", "burn", 0.05, before=("sh", "-c", script))
        self.assertEqual(os.listdir(self.directory), ["x.greenprof"])

    def test_rings_of_the_next_one(self):
        """A service is begun again while the one before still works: it does not remove what is another one's."""
        def begin():
            process = subprocess.Popen([check.GREENPROF, "run", "--quiet", "--flush", "10", "-o", self.path("x.greenprof"),
                                        "--", "cat"], stdin=subprocess.PIPE)
            self.addCleanup(process.kill)
            return process

        def inode():
            return os.stat(rings).st_ino if os.path.exists(rings) else None

        rings = self.path("x.greenprof.rings")
        former = begin()
        self.wait_for(inode)
        first = inode()
        latter = begin()
        self.wait_for(lambda: inode() not in (None, first))
        former.communicate(timeout=check.LIMIT_SECONDS)
        self.assertTrue(inode())
        latter.communicate(timeout=check.LIMIT_SECONDS)
        self.assertFalse(inode())


class Kept(Files):
    """--keep and --keep-size remove parts, and nothing that is called like one."""

    def turn(self, *options, seconds=0.6):
        self.profile(["steps", "tell", seconds], output="api.greenprof", options=("--rotate", "64K", *options),
                     healthy=False)

    def test_keep(self):
        self.turn(seconds=1.5)
        first, = self.parts()[:1]
        shutil.copy2(self.path(first), self.path("api-20261124.greenprof"))
        shutil.copy2(self.path(first), self.path("api-0000.greenprof"))
        os.rename(self.path(first), self.path("api-20251124.greenprof"))
        os.link(self.path(self.parts()[1]), self.path("api-20241124.greenprof"))
        theirs = {"api-20261124.greenprof", "api-0000.greenprof", "api-20251124.greenprof", "api-20241124.greenprof"}
        self.turn("--keep", "2", seconds=1.5)
        self.assertLessEqual(theirs, set(self.parts()))
        parts = [name for name in self.parts() if name not in theirs]
        self.assertLessEqual(len(parts), 2)
        self.assertRegex(parts[-1], r"^api-\d{4}\.greenprof$")

    def test_keep_size(self):
        self.put("other-0001.greenprof", bytes(100 << 10))
        self.preload("api-12001.greenprof", "burn", 0.05)
        self.profile(["steps", "tell", 1.5], output="more.greenprof", options=("--rotate", "64K"), healthy=False)
        more = self.parts("more")
        self.turn("--keep-size", "64K", seconds=1.5)
        self.assertTrue({"other-0001.greenprof", "api-12001.greenprof"} <= set(os.listdir(self.directory)))
        self.assertLess(len(self.parts("more")), len(more))  # of another recording, but a part

    @AS_ROOT
    def test_another_root(self):
        os.mkdir(self.path("jail"))
        steps = ["tell", 0.3, "root", self.path("jail"), "tell", 2.5]
        run = self.profile(["steps", *steps], output="api.greenprof", options=("--rotate", "64K"), healthy=False)
        captures = [Capture(self.path(name)) for name in [*self.parts(), "api.greenprof"]]
        self.assertGreater(len(captures), 2)
        self.near("CPU time", sum(capture.process_cpu_ns for capture in captures) / 1e9, run.truth.total, 0.1, 0.1)

    @AS_ROOT
    def test_fewer_rights(self):
        """The directory is root's: what the program may no longer put aside goes on."""
        os.chmod(self.directory, 0o755)
        done = check.greenprof("run", "-o", self.path("api.greenprof"), "--rotate", "64K", "--",
                               check.program("steps"), "user", OTHER_USER, "tell", 2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.parts(), [])
        self.assertIn("not in parts any more, as the program gave up its right to the directory", done.stderr.decode())
        self.near("CPU time", Capture(self.path("api.greenprof")).process_cpu_ns / 1e9, 2, 0.05, 0.05)


class Hostile(Files):
    """Ring files that were made to mislead: read, or left out, in bounded time and memory."""

    def recover(self, rings):
        with open(self.path("y.greenprof.rings"), "wb") as file:
            file.write(rings)
        self.measure("y.greenprof")

    def measure(self, name):
        done = subprocess.run(["sh", "-c", 'ulimit -t 20 -v 1000000; exec "$0" recover "$1"', check.GREENPROF, self.path(name)],
                              capture_output=True, timeout=check.LIMIT_SECONDS)
        self.assertIn(done.returncode, (0, 1), done.stderr)

    def test_rings(self):
        process = subprocess.Popen([check.GREENPROF, "run", "--quiet", "--flush", "10", "-o", self.path("x.greenprof"), "--",
                                    check.program("steps"), "burn", "100"], stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_for(lambda: os.path.exists(self.path("x.greenprof")) and os.path.getsize(self.path("x.greenprof")) > 4000)
        process.kill()
        process.wait()
        if not os.path.exists(self.path("x.greenprof.rings")):
            self.skipTest("the file system of temporary files is none for ring files")
        shutil.copy(self.path("x.greenprof"), self.path("y.greenprof"))
        whole = self.content("x.greenprof.rings")
        self.assertEqual(whole[:8], b"GRNRING\n")
        latest, = struct.unpack_from("<Q", whole, RINGS_LATEST)
        for number in 2 ** 64 - 1, 2 ** 64 - 2, 2 ** 64 - 3, 2 ** 63, 0, 1, 2, latest - 1, latest + 1:
            self.recover(whole[:RINGS_LATEST] + struct.pack("<Q", number) + whole[RINGS_LATEST + 8:])
        for slots in range(RINGS_BEGIN, len(whole), len(whole) // 7):  # what the rings say
            self.recover(whole[:slots] + b"\xff" * 8192 + whole[slots + 8192:])
            self.recover(whole[:slots])
        for sizes in (1 << 24, 1 << 24), (1 << 31, 1 << 31), (1 << 22, 1 << 22):
            with open(self.path("y.greenprof.rings"), "wb") as file:  # nearly all of it is a hole
                file.write(whole[:RINGS_OWNER_BYTES] + struct.pack("<II", *sizes) + whole[RINGS_OWNER_BYTES + 8:8192])
                file.truncate(64 * sum(sizes) + (64 << 20))
            self.measure("y.greenprof")


if __name__ == "__main__":
    check.main()
