# SPDX-License-Identifier: MIT
"""Processes that come of one another: each calls a function of its own, and each may have a profile of its own.

Arguments: how they are made (fork, multiprocessing, spawn, subprocess), a directory for profiles. Prints of each process its id, its
function, and the CPU seconds that it burnt.
"""
import os
import subprocess
import sys
import time
import types

HOW = ("fork", "multiprocessing", "spawn", "subprocess")
MS = 150


def work(seconds):
    begin = time.thread_time()
    while time.thread_time() < begin + seconds:
        for _ in range(100):
            pass
    return time.thread_time() - begin


def named(name):
    return types.FunctionType(work.__code__.replace(co_name=name, co_qualname=name), globals())


def tell(name, seconds):
    os.write(1, f"{os.getpid()} {name} {seconds}\n".encode())  # in one piece: several may write at once


def child(name, directory=None):
    """With a profile of its own, where the package is."""
    function = named(name)
    if directory is None:
        tell(name, function(MS / 1000))
        return
    import greenprof
    with greenprof.Profile() as profile:
        spent = function(MS / 1000)
    profile.dump_stats(os.path.join(directory, f"{name}.prof"))
    tell(name, spent)


def forked(names, directory):
    children = []
    for name in names:
        pid = os.fork()
        if pid == 0:
            child(name, directory)
            os._exit(0)
        children.append(pid)
    return [os.waitpid(pid, 0)[1] for pid in children]


def by_multiprocessing(method, names, directory):
    import multiprocessing
    context = multiprocessing.get_context(method)
    children = [context.Process(target=child, args=(name, directory)) for name in names]
    for process in children:
        process.start()
    for process in children:
        process.join()
    return [process.exitcode for process in children]


def by_subprocess(names, directory):
    children = [subprocess.Popen([sys.executable, "-B", __file__, "child", directory or "-", name]) for name in names]
    return [process.wait() for process in children]


def main(how, directory):
    names = ["first_child", "second_child"]
    parent = named("parent")
    if directory is not None:
        import greenprof
        profile = greenprof.Profile()
        profile.start()
    spent = parent(MS / 1000)
    if how == "fork":
        ends = forked(names, directory)
    elif how == "subprocess":
        ends = by_subprocess(names, directory)
    else:
        ends = by_multiprocessing("fork" if how == "multiprocessing" else how, names, directory)
    assert ends == [0, 0], ends
    spent += parent(MS / 1000)
    if directory is not None:
        profile.stop()
        profile.dump_stats(os.path.join(directory, "parent.prof"))
        assert 0.97 * spent < profile.total <= time.process_time(), (profile.total, spent)
    tell("parent", spent)


if __name__ == "__main__":
    given = None if sys.argv[2] == "-" else sys.argv[2]
    if sys.argv[1] == "child":
        child(sys.argv[3], given)
    else:
        main(sys.argv[1], given)
