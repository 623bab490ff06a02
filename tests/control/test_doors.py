# SPDX-License-Identifier: MIT
"""What root's command gives to a container, and takes from it: nothing there leads out, and nothing of it is trusted."""
import os
import re
import shutil
import stat
import subprocess
import unittest

from support import GREENPROF, SERVICE, Attaching
from test_containers import CORE_DIRECTORY, STRANGER, Contained, become_stranger, works

HELD = os.environ["HELD"]
O_PATH = 0o10000000


def descriptors(pid):
    """Path, mode and flags of each."""
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            with open(f"/proc/{pid}/fdinfo/{number}") as file:
                flags = int(re.search(r"flags:\s+(\d+)", file.read())[1], 8)
            found = os.readlink(f"/proc/{pid}/fd/{number}"), os.stat(f"/proc/{pid}/fd/{number}").st_mode, flags
        except FileNotFoundError: # read of a file of /proc, and closed
            continue
        yield found


@unittest.skipIf(os.environ["SANITIZED"], "a sanitizer cannot be loaded into a program that was built without it")
@unittest.skipUnless(os.geteuid() == 0, "needs root")
class Doors(Attaching):
    def begin(self, script, *arguments, name_spaces=("--mount",), **more):
        if not works("unshare", *name_spaces, "mount", "-t", "tmpfs", "none", "/mnt"):
            self.skipTest("nothing may be mounted here")
        return Contained(self, "unshare", *name_spaces, "sh", "-c", f"{script} && exec \"$1\"", "sh", *SERVICE, *arguments,
                         **more)

    def check_lent(self, pid, path):
        # For a moment the process has the folder of its own socket.
        self.wait_until(lambda: not any(stat.S_ISDIR(mode) for _, mode, _ in descriptors(pid)), "none is of a directory")
        seen = list(descriptors(pid))
        flags = [flags for name, _, flags in seen if name == path]
        self.assertGreater(len(flags), 0, seen)
        for one in flags:
            self.assertEqual(one & (os.O_ACCMODE | os.O_APPEND | O_PATH), os.O_WRONLY | os.O_APPEND)

    def test_what_is_lent(self):
        """By attach and start: the file alone, to be written only; its children and a ring file get none."""
        service = self.begin("mount -t tmpfs none /mnt")
        first, second = (os.path.join(self.dir, name) for name in ("first", "second"))
        self.do("attach", service.pid, "-o", first)
        self.check_lent(service.pid, first)
        self.do("dump", service.pid, "-o", "copy")
        self.do("stop", service.pid)
        done = self.command("start", service.pid, "-o", second, "--flush", "10")
        self.assertEqual(done.returncode, 0)
        self.assertIn("a kill may take more than --flush says", done.stderr)
        self.check_lent(service.pid, second)
        child, = service.tell("fork", "child")
        burned = service.burn(300)
        self.assertEqual([path for path, _, _ in descriptors(child) if path == second], [])
        service.tell("reap", "reaped")
        self.do("detach", service.pid)
        self.check_capture(second, burned)
        self.assertEqual(sorted(name for name in os.listdir(self.dir) if name != "greenprof" and name != "tried"),
                         ["copy", "first", "second"])

    def test_files_that_are_there(self):
        """Another user's, one with another name, a link, a pipe: none is lent, and none is changed."""
        service = self.begin("mount -t tmpfs none /mnt")
        for name, make in (("others", lambda path: os.chown(path, STRANGER, STRANGER)),
                           ("named", lambda path: os.link(path, path + ".too")),
                           ("linked", lambda path: os.replace(os.symlink("x", path + ".x") or path + ".x", path)),
                           ("pipe", lambda path: os.replace(os.mkfifo(path + ".x") or path + ".x", path))):
            path = os.path.join(self.dir, name)
            with open(path, "w") as file:
                file.write("what was there")
            before = os.lstat(path).st_size
            make(path)
            self.refused("no file of this user's alone", "attach", service.pid, "-o", path)
            if name in ("others", "named"):
                self.assertEqual(os.lstat(path).st_size, before)
            self.refused("cannot be switched", "status", service.pid)  # it was left again

    def test_directory_of_sockets_that_another_made(self):
        """There is another one then, by a name that nobody foresees."""
        env = {name: value for name, value in self.env.items() if name != "XDG_RUNTIME_DIR"}
        service = self.begin(f"mount -t tmpfs -o mode=1777 none /tmp && mkdir /tmp/greenprof-0 && "
                             f"chown {STRANGER} /tmp/greenprof-0", env=env)
        self.env = env
        self.do("attach", service.pid, "-o", os.path.join(self.dir, "capture"))
        self.assertEqual(os.listdir(f"/proc/{service.pid}/root/tmp/greenprof-0"), [])
        self.assertIn(f"{service.pid}: recording", self.do("status", service.pid))
        self.do("coroutines", service.pid)
        self.do("detach", service.pid)

    def test_time_name_space(self):
        service = self.begin("true", name_spaces=("--mount", "--time", "--boottime", "100000", "--fork"))
        self.do("attach", service.pid, "-o", "capture")
        self.assertIn("recording", self.do("status", service.pid))
        self.do("coroutines", service.pid)
        self.do("detach", service.pid)

    def test_descriptor_that_is_replaced(self):
        """The library is carried there by the process' own hands: what another thread of its puts in its place is not written to."""
        os.chmod(self.dir, 0o755)
        victim, program = os.path.join(self.dir, "victim"), shutil.copy(HELD, self.dir)
        with open(victim, "w") as file:
            file.write("root's own text")
        os.chmod(victim, 0o600)
        user = ("unshare", "--user", "--map-root-user", "--mount")
        if not works(*user, "mount", "-t", "tmpfs", "none", "/mnt", preexec_fn=become_stranger):
            self.skipTest("needs name spaces of users")
        held = Contained(self, *user, "sh", "-c", "mount -t tmpfs none \"$1\" && exec \"$2\" swap \"$3\"", "sh", CORE_DIRECTORY,
                         program, victim, preexec_fn=become_stranger)
        for _ in range(3):
            subprocess.run([GREENPROF, "attach", str(held.pid), "-o", os.path.join(self.dir, "capture")], env=self.env,
                           cwd=self.dir, capture_output=True, timeout=100)
        with open(victim) as file:
            self.assertEqual(file.read(), "root's own text")

    def test_sockets_that_are_none(self):
        """A link to another socket, a pipe, a file, by the name of its socket: nothing of them is opened."""
        service = self.begin("true")
        other = self.begin("true")
        self.do("attach", other.pid, "-o", "other")
        os.makedirs(self.place, exist_ok=True)
        name = os.path.join(self.place, f"control-{service.pid}-1")
        theirs, = (os.path.join(self.place, entry) for entry in self.socket_of(other.pid))
        for make in (lambda: os.symlink(theirs, name), lambda: os.mkfifo(name), lambda: os.link(theirs, name),
                     lambda: open(name, "w").close()):
            make()
            self.refused("cannot be switched", "status", service.pid)
            os.unlink(name)
        self.do("detach", other.pid)


if __name__ == "__main__":
    unittest.main()
