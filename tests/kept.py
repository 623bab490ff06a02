# SPDX-License-Identifier: MIT
"""A server that the tests of a run share: the first that wants it starts it, and nothing of it is left after the run.

    told = kept("browser", "Chromium")   # what told() of a Chromium() says, which runs then

Model: a run is the ctest that started this process, else this process. A file of the run has what the server told. Whoever uses
the server holds that file's lock, shared, to the end of his life. The server is the child of a keeper, which closes it and removes
the file when the run ends, be it by SIGKILL, when the server ends, or when nobody has held the lock for IDLE_S. A keeper that is
killed takes the server with it (die_with_parent).
"""
import ctypes
import fcntl
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile

IDLE_S = 20
PR_SET_PDEATHSIG = 1
held = {}  # module of a server: the file whose lock this process holds, and what is told there


def die_with_parent():
    """For preexec_fn: a process that is killed when its parent ends, however that ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def process(pid):
    """(name, start time) of a process that runs, else None."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            name, _, fields = file.read().partition("(")[2].rpartition(") ")
    except OSError:
        return None
    return (name, fields.split()[19]) if fields[0] != "Z" else None


RUN = os.getppid() if (process(os.getppid()) or [""])[0] == "ctest" else os.getpid()  # also of what is forked later


def kept(module, name):
    """What the server that name() of a module makes told; one a module."""
    path = os.path.join(tempfile.gettempdir(), f"greenprof-{module}-{RUN}-{process(RUN)[1]}")
    while module not in held or process(held[module][1]["keeper"]) is None:
        file = open(path, "a+", encoding="utf-8")
        fcntl.lockf(file, fcntl.LOCK_EX)  # one test starts it, beside others at work
        fcntl.flock(file, fcntl.LOCK_SH)
        if os.fstat(file.fileno()).st_nlink == 0:  # its keeper was just ending
            file.close()
            continue
        told = read(file)
        if told is None or process(told["keeper"]) is None:
            start(path, str(RUN), module, name)
        held[module] = file, read(file)
        fcntl.lockf(file, fcntl.LOCK_UN)
    return held[module][1]


def start(*arguments):
    keeper = subprocess.Popen([sys.executable, "-B", __file__, *arguments, *sys.path], start_new_session=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE)
    keeper.returncode = 0  # its end is not waited for
    with keeper.stdout as ready:
        if ready.read() != b"ready":
            os.unlink(arguments[0])
            raise AssertionError(f"{arguments[2:]} does not start")


def read(file):
    file.seek(0)
    text = file.read()
    return json.loads(text) if text else None


def wait(file, ends):
    """Until one of these processes ends, or nobody has used the server for long. No one can begin to then."""
    idle = 0
    while idle < IDLE_S and not select.select(ends, [], [], 1)[0]:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            idle = 0
            continue
        idle += 1
        if idle < IDLE_S:
            fcntl.flock(file, fcntl.LOCK_UN)


def keep(path, run, module, name):
    server = getattr(importlib.import_module(module), name)()
    try:
        with open(path, "r+", encoding="utf-8") as file:
            file.truncate(0)
            json.dump({"keeper": os.getpid(), **server.told()}, file)
            file.flush()
            os.write(1, b"ready")
            for number in (1, 2):
                os.dup2(0, number)  # ctest waits for those
            wait(file, [os.pidfd_open(int(run)), os.pidfd_open(server.process.pid)])
            os.unlink(path)
    finally:
        server.close()


if __name__ == "__main__":
    sys.path[:] = sys.argv[5:]
    keep(*sys.argv[1:5])
