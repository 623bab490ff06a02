# SPDX-License-Identifier: MIT
"""greenprof attach from outside of a container: its process has another root directory, other names of files, other numbers."""
import os
import resource
import shutil
import subprocess
import unittest

from support import GREENPROF, SERVICE, Case, Service, main

CORE = os.environ["CORE"]
CORE_DIRECTORY = os.path.dirname(os.path.realpath(CORE))


STRANGER = 65534


def become_stranger():
    os.setgroups([])
    os.setgid(STRANGER)
    os.setuid(STRANGER)


def works(*command, **more):
    return subprocess.run(command, capture_output=True, **more).returncode == 0


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def innermost(pid):
    """What was started in the end, by what made the container."""
    while children := children_of(pid):
        pid, = children
    return pid


def mappings_of(pid):
    with open(f"/proc/{pid}/maps") as file:
        return {line.split(None, 5)[5].strip() for line in file if len(line.split(None, 5)) > 5}


def descriptors_of(pid):
    return sorted(os.listdir(f"/proc/{pid}/fd"), key=int)


class Contained(Service):
    """A service in a container, without greenprof."""

    def __init__(self, case, *command, **more):
        self.process = subprocess.Popen(command, **{"env": case.env, **more}, cwd="/", text=True, bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        case.addCleanup(self.kill)
        self.expect("ready")
        self.pid = innermost(self.process.pid)

    def kill(self):
        self.process.stdin.close()  # it ends of itself
        self.process.wait()
        self.process.stdout.close()


@unittest.skipIf(os.environ["SANITIZED"], "a sanitizer cannot be loaded into a program that was built without it")
class Containers(Case):
    def check(self, service):
        """Recorded twice, with the capture in this directory, and left without anything but the library."""
        self.assertEqual([path for path in mappings_of(service.pid) if "greenprof" in path.rpartition("/")[2]], [])
        before = descriptors_of(service.pid)
        for i in range(2):
            path = os.path.join(self.dir, f"capture{i}")
            self.assertEqual(self.do("attach", service.pid, "-o", path),
                             f"recording to {path}; 'greenprof detach {service.pid}' ends it\n")
            burned = service.burn(600)
            self.assertEqual(self.status(service.pid)["file"], path)
            self.assertIn("2 coroutines", self.do("top", service.pid, "--once", "--interval", 50))
            self.assertIn(f"samples: greenprof report {path}\n", self.do("detach", service.pid))
            self.check_capture(path, burned)
            self.wait_until(lambda: descriptors_of(service.pid) == before, f"{descriptors_of(service.pid)} as {before}")
            mapped = [path for path in mappings_of(service.pid) if "greenprof-core" in path]
            self.assertEqual(mapped, [f"/memfd:{os.path.basename(os.path.realpath(CORE))} (deleted)"])
        self.refused("'greenprof attach PID'", "status", service.pid)
        service.burn(10)

    def test_directory_that_is_not_there(self):
        """The directory is the command's, not the one of that name in the container."""
        if not works("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"):
            self.skipTest("nothing may be mounted here")
        service = Contained(self, "unshare", "--mount", "sh", "-c",
                            "mount -t tmpfs none /mnt && mkdir /mnt/inside && exec \"$1\"", "sh", *SERVICE)
        self.refused("/mnt/inside/capture: No such file or directory", "attach", service.pid, "-o", "/mnt/inside/capture")
        self.do("attach", service.pid, "-o", "capture")
        self.refused("it is being recorded already", "attach", service.pid, "-o", "other")
        burned = service.burn(600)
        self.do("stop", service.pid)
        self.do("start", service.pid, "-o", "second")
        again = service.burn(600)
        self.do("detach", service.pid)
        self.check_capture("capture", burned)
        self.check_capture("second", again)
        self.assertEqual(sorted(name for name in os.listdir(self.dir) if name != "greenprof"), ["capture", "second"])

    def test_main_thread_that_has_ended(self):
        """What /proc/PID shows of it is empty then; another thread has the same root."""
        if not works("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"):
            self.skipTest("nothing may be mounted here")
        service = Contained(self, "unshare", "--mount", "sh", "-c",
                            "mkdir \"$1/hidden\" && mount --bind \"$1/hidden\" \"$1\" && cd \"$1\" && exec \"$2\"", "sh", self.dir, *SERVICE)
        self.do("attach", service.pid, "-o", "capture")
        service.tell("leave", "left")
        self.wait_until(lambda: not os.path.exists(f"/proc/{service.pid}/root"), "the main thread has ended")
        self.assertEqual(self.status(service.pid)["file"], os.path.join(self.dir, "capture"))
        self.do("stop", service.pid)
        self.do("start", service.pid, "-o", "second")
        burned = service.burn(600)
        self.do("dump", service.pid, "-o", "copy")
        self.do("detach", service.pid)
        for name in ("second", "copy"):
            self.check_capture(name, burned)

    def test_library_is_hidden(self):
        """Another mount namespace, the same root: nothing is where the library lies."""
        if not works("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"):
            self.skipTest("nothing may be mounted here")
        self.check(Contained(self, "unshare", "--mount", "sh", "-c", "mount -t tmpfs none \"$1\" && exec \"$2\"", "sh",
                             CORE_DIRECTORY, *SERVICE))

    def check_other_file(self, command):
        """What is where the library lies is not the library, whatever its size is."""
        if not works("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"):
            self.skipTest("nothing may be mounted here")
        self.check(Contained(self, "unshare", "--mount", "sh", "-c", f"{command} && exec \"$2\"", "sh",
                             os.path.realpath(CORE), *SERVICE, self.dir))

    def test_another_file_of_that_size(self):
        self.check_other_file("truncate -r \"$1\" \"$3/zeros\" && mount --bind \"$3/zeros\" \"$1\"")

    def test_link_to_a_file_of_ours(self):
        """A link there is followed in the container, where it leads nowhere."""
        self.check_other_file("cp \"$1\" \"$3/core\" && mount -t tmpfs none \"${1%/*}\" && ln -s \"$3/core\" \"$1\" && "
                              "mkdir \"$3/hidden\" && mount --bind \"$3/hidden\" \"$3\"")

    def test_same_file(self):
        """A library that is there is taken as it is: a copy, by another inode."""
        if not works("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"):
            self.skipTest("nothing may be mounted here")
        service = Contained(self, "unshare", "--mount", "sh", "-c",
                            "cp \"$1\" \"$3/core\" && mount --bind \"$3/core\" \"$1\" && exec \"$2\"", "sh",
                            os.path.realpath(CORE), *SERVICE, self.dir)
        self.do("attach", service.pid, "-o", "capture")
        self.do("detach", service.pid)
        self.assertEqual([path for path in mappings_of(service.pid) if "greenprof-core" in path], [CORE])

    def test_no_proc(self):
        if not works("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"):
            self.skipTest("nothing may be mounted here")
        service = Contained(self, "unshare", "--mount", "sh", "-c", "mount -t tmpfs none /proc && exec \"$1\"", "sh", *SERVICE)
        before = mappings_of(service.pid)
        self.refused("there is no /proc where it runs", "attach", service.pid, "-o", "capture")
        self.assertEqual(mappings_of(service.pid), before)
        service.burn(10)

    def test_library_that_cannot_be_loaded(self):
        """The loader's message has the library's name, and not the one by which it was carried."""
        if not works("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"):
            self.skipTest("nothing may be mounted here")
        service = Contained(self, "unshare", "--mount", "sh", "-c", "mount -t tmpfs none \"$1\" && exec \"$2\"", "sh",
                            CORE_DIRECTORY, *SERVICE)
        with open(f"/proc/{service.pid}/status") as file:
            kilobytes = next(int(line.split()[1]) for line in file if line.startswith("VmSize:"))
        stack_and_more = 1 << 20 | 1 << 16  # of the borrowed thread; not the library
        resource.prlimit(service.pid, resource.RLIMIT_AS, ((kilobytes << 10) + stack_and_more, resource.RLIM_INFINITY))
        core = os.path.realpath(CORE)
        self.refused(f"{core} cannot be loaded into it: {core}: ", "attach", service.pid, "-o", "capture")
        resource.prlimit(service.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        self.check(service)

    def test_changed_root(self):
        """Below the root of its mount namespace: what is mapped has longer names for us than for the process."""
        if not works("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"):
            self.skipTest("nothing may be mounted here")
        self.check(Contained(self, "unshare", "--mount", "sh", "-c",
                             "mkdir \"$1/root\" && mount --rbind / \"$1/root\" && mount -t tmpfs none \"$1/root$2\" && "
                             "exec chroot \"$1/root\" \"$3\"", "sh", self.dir, CORE_DIRECTORY, *SERVICE))

    def test_directory_of_sockets_behind_a_link(self):
        """As /var/run is one: it is followed in the container."""
        if not works("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"):
            self.skipTest("nothing may be mounted here")
        service = Contained(self, "unshare", "--mount", "sh", "-c", "mount -t tmpfs none /mnt && mkdir /mnt/inside && "
                            "ln -s /mnt/inside /mnt/link && exec \"$1\"", "sh", *SERVICE,
                            env=dict(self.env, XDG_RUNTIME_DIR="/mnt/link"))
        self.do("attach", service.pid, "-o", "capture")
        self.assertEqual(sum(name.startswith("control-") for name in os.listdir(f"/proc/{service.pid}/root/mnt/inside/greenprof")), 1)
        self.do("detach", service.pid)

    def begin_with_other_users(self):
        """Of a stranger, who is root in there; its directory of sockets is that of root."""
        os.chmod(self.dir, 0o777)
        program = shutil.copy(*SERVICE, self.dir)
        hide = ("mount --bind \"$1\" /mnt && mount -t tmpfs none /tmp && mkdir -p \"$1\" && mount --bind /mnt \"$1\" && "
                "mount -t tmpfs none \"$2\" && exec \"$3\"")
        command = ("unshare", "--user", "--map-root-user", "--mount")
        if os.geteuid() != 0 or not works(*command, "mount", "-t", "tmpfs", "none", "/mnt", preexec_fn=become_stranger):
            self.skipTest("needs root, and name spaces of users")
        env = dict(self.env, XDG_RUNTIME_DIR="/nonexistent")
        return Contained(self, *command, "sh", "-c", hide, "sh", self.dir, CORE_DIRECTORY, program, env=env,
                         preexec_fn=become_stranger)

    def test_other_users(self):
        """Asked by root, who has no number there."""
        service = self.begin_with_other_users()
        with open(f"/proc/{service.pid}/uid_map") as file:
            self.assertEqual(file.read().split(), ["0", str(STRANGER), "1"])
        self.check(service)

    def test_other_users_and_the_one_who_made_them(self):
        """Asked by the user who is root there."""
        service = self.begin_with_other_users()
        command = shutil.copy(GREENPROF, self.dir)
        core = shutil.copy(os.path.realpath(CORE), self.dir)
        env = dict(self.env, GREENPROF_CORE=core)
        for words in (["attach", str(service.pid), "-o", "capture"], ["status", str(service.pid)], ["detach", str(service.pid)]):
            done = subprocess.run([command, *words], env=env, cwd=self.dir, capture_output=True, text=True,
                                  preexec_fn=become_stranger)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        service.burn(10)

    def sandbox(self):
        places = [word for name in ("/usr", "/lib", "/lib64", "/bin") if os.path.exists(name)
                  for word in ("--ro-bind", name, name)]
        sandbox = ["bwrap", *places, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--unshare-pid"]
        if not works(*sandbox, "true"):
            self.skipTest("bubblewrap may not make a container here")
        return sandbox

    @unittest.skipUnless(shutil.which("bwrap"), "bubblewrap is not installed")
    def test_files_that_only_it_has(self):
        """Their functions have names where it is said what stands for its root, as long as the builds are the same."""
        service = Contained(self, *self.sandbox(), "--ro-bind", *SERVICE, "/opt/inner/service", "/opt/inner/service")
        capture, image, other = (os.path.join(self.dir, name) for name in ("capture", "image", "other"))
        self.do("attach", service.pid, "-o", capture)
        burned = service.burn(600)
        self.do("detach", service.pid)
        self.assertEqual(self.functions(capture)["burn_a"], 0)
        self.check_capture(capture, burned, "--symfs", f"/proc/{service.pid}/root")
        for directory, program in ((image, SERVICE[0]), (other, GREENPROF)):
            os.makedirs(os.path.join(directory, "opt/inner"))
            shutil.copy(program, os.path.join(directory, "opt/inner/service"))
        self.check_capture(capture, burned, "--symfs", other, "--symfs", image)
        self.assertEqual(self.functions(capture, "--symfs", other)["burn_a"], 0)
        self.refused("Not a directory", "report", capture, "--symfs", SERVICE[0])
        self.refused("No such file or directory", "report", capture, "--symfs", os.path.join(self.dir, "none"))

    @unittest.skipUnless(shutil.which("bwrap"), "bubblewrap is not installed")
    def test_debug_files_that_only_it_has(self):
        """Of a stripped program, by its .gnu_debuglink: in each place of its image that debuggers look in."""
        service = Contained(self, *self.sandbox(), "--ro-bind", *SERVICE, "/opt/inner/service", "/opt/inner/service")
        capture, image, debug = (os.path.join(self.dir, name) for name in ("capture", "image", "service.debug"))
        self.do("attach", service.pid, "-o", capture)
        burned = service.burn(600)
        self.do("detach", service.pid)
        program = os.path.join(image, "opt/inner/service")
        os.makedirs(os.path.dirname(program))
        for command in (["objcopy", "--only-keep-debug", *SERVICE, debug], ["strip", "-o", program, *SERVICE],
                        ["objcopy", "--add-gnu-debuglink=" + debug, program]):
            subprocess.run(command, check=True)
        self.assertEqual(self.functions(capture, "--symfs", image)["burn_a"], 0)
        for place in ("opt/inner", "opt/inner/.debug", "usr/lib/debug/opt/inner"):
            os.makedirs(os.path.join(image, place), exist_ok=True)
            there = shutil.copy(debug, os.path.join(image, place))
            self.check_capture(capture, burned, "--symfs", image)
            subprocess.run(["objcopy", "--only-keep-debug", GREENPROF, there], check=True)  # of another build
            self.assertEqual(self.functions(capture, "--symfs", image)["burn_a"], 0, place)
            os.unlink(there)

    @unittest.skipUnless(shutil.which("bwrap"), "bubblewrap is not installed")
    def test_another_root(self):
        """With numbers of its own, too, and a /tmp."""
        service = Contained(self, *self.sandbox(), "--ro-bind", *SERVICE, *SERVICE, *SERVICE)
        with open(f"/proc/{service.pid}/status") as file:
            numbers = next(line.split()[1:] for line in file if line.startswith("NSpid:"))
        self.assertEqual(int(numbers[0]), service.pid)
        self.assertNotEqual(numbers[-1], numbers[0])
        self.check(service)


if __name__ == "__main__":
    main(partial=0, at_once=3)
