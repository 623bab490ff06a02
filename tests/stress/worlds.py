# SPDX-License-Identifier: MIT
"""Where a program runs: in a container with a clock of its own, in a control group that is throttled."""
import contextlib
import os
import shutil
import subprocess
import time

CLOCK = ["unshare", "--user", "--map-current-user", "--time", "--fork", "--boottime", "100000", "--monotonic", "5000"]
SEALED = ["bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
          "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
PERIOD_US, QUOTA_US = 20000, 6000
GROUPS = ["/sys/fs/cgroup", "/sys/fs/cgroup/cpu"]  # version 2, version 1


class Absent(Exception):
    """There is none on this machine, with the reason."""


@contextlib.contextmanager
def plain(directory, shown):
    yield []


@contextlib.contextmanager
def container(directory, shown):
    """User, pid, mount, time and all other namespaces: nothing is seen but programs, `shown` and, writable, `directory`."""
    for tool in CLOCK[0], SEALED[0]:
        if shutil.which(tool) is None:
            raise Absent(f"{tool} is not installed")
    words = [*CLOCK, *SEALED]
    for path in shown:
        words += ["--ro-bind", path, path]
    words += ["--bind", directory, directory, "--chdir", directory, "--"]
    tried = subprocess.run([*words, "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        raise Absent(f"no container: {tried.stderr.strip()}")
    yield words


def write(path, text):
    with open(path, "r+", encoding="utf-8") as file:  # which the kernel has made
        file.write(text)


def limit(group):
    """By the interface that is there: version 2, or version 1."""
    if os.path.exists(os.path.join(group, "cpu.max")):
        write(os.path.join(group, "cpu.max"), f"{QUOTA_US} {PERIOD_US}")
    else:
        write(os.path.join(group, "cpu.cfs_period_us"), str(PERIOD_US))
        write(os.path.join(group, "cpu.cfs_quota_us"), str(QUOTA_US))


def remove(group):
    """The kernel takes out what has ended a moment later."""
    for _ in range(200):
        with contextlib.suppress(OSError):
            return os.rmdir(group)
        time.sleep(0.05)
    return os.rmdir(group)


@contextlib.contextmanager
def throttled(directory, shown):
    """A third of a processor, in pieces of 6 ms."""
    name, reasons = f"greenprof-{os.path.basename(directory)}", []
    for root in GROUPS:
        group = os.path.join(root, name)
        try:
            os.mkdir(group)
            limit(group)
        except OSError as error:
            reasons.append(f"{error.filename}: {error.strerror}")
            with contextlib.suppress(OSError):
                os.rmdir(group)
            continue
        try:
            yield ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', os.path.join(group, "cgroup.procs")]
        finally:
            remove(group)
        return
    raise Absent(f"no limit of CPU time: {'; '.join(reasons)}")


WORLDS = {"container": container, "throttled": throttled}  # by feature
