# SPDX-License-Identifier: MIT
"""What tests share: commands that end well, what comes in its own time, a folder of one's own, folded stacks, skips."""
import collections
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from kept import die_with_parent
from measured import Noise, check_status

SKIPPED = 77         # ctest's SKIP_RETURN_CODE
LIMIT_SECONDS = 120  # nothing takes as long; what hangs fails here


def limit():
    """LIMIT_SECONDS of a machine with nothing else to do."""
    return LIMIT_SECONDS * max(1.0, Noise.load_now())


def skip(reason):
    """End the whole file as skipped."""
    print("SKIP:", reason)
    sys.exit(SKIPPED)


def need(condition, reason):
    if not condition:
        raise unittest.SkipTest(reason)


class _Taken(unittest.TestSuite):
    """Tests that several processes take from one pipe, which has their numbers, until it is empty."""
    _cleanup = False

    def __init__(self, tests, pipe):
        super().__init__(tests)
        self.pipe = pipe

    def __iter__(self):
        while number := os.read(self.pipe, 2):
            yield self._tests[int.from_bytes(number, "little")]


def _single(suite):
    for test in suite:
        yield from _single(test) if isinstance(test, unittest.TestSuite) else (test,)


def _status(result, partial):
    for test, reason in result.skipped:
        print(f"SKIPPED {test}: {reason}")
    return 1 if not result.wasSuccessful() else partial if result.skipped else 0


def _at_once(suite, count, run):
    """Run the tests in so many processes. Returns their exit statuses once all are over; what each said is printed then."""
    tests, (numbers, into), started = list(_single(suite)), os.pipe(), []
    os.write(into, b"".join(number.to_bytes(2, "little") for number in range(len(tests))))
    os.close(into)
    sys.stdout.flush()
    for _ in range(min(count, len(tests))):
        said = tempfile.TemporaryFile()
        pid = os.fork()
        if pid == 0:
            die_with_parent()
            for number in (1, 2):
                os.dup2(said.fileno(), number)
            status = 1
            try:
                status = run(_Taken(tests, numbers))
                sys.stdout.flush()
            finally:
                os._exit(status)
        started.append((pid, said))
    statuses = []
    for pid, said in started:
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        said.seek(0)
        sys.stdout.buffer.write(said.read())
    return statuses


def main(argv=None, partial=SKIPPED, verbosity=2, at_once=1):
    """Run the calling file's tests, of which so many at once: for those that wait. Where some had to be left out and none failed,
    ctest is told `partial`."""
    class Runner(unittest.TextTestRunner):
        def run(self, test):
            statuses = _at_once(test, at_once, lambda tests: _status(super(Runner, self).run(tests), partial))
            sys.exit(1 if not statuses or any(status not in (0, partial) for status in statuses) else max(statuses))

    program = unittest.main(module="__main__", argv=argv, exit=False, verbosity=verbosity, testRunner=Runner if at_once > 1 else None)
    if program.result.testsRun == 0 and not program.result.skipped:
        sys.exit("no test ran")
    sys.exit(_status(program.result, partial))


def run(command, status=0, **options):
    """A command that ends by itself, with this status. Returns what subprocess.run() does; its output is text."""
    options = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": limit(), **options}
    if "input" in options:
        del options["stdin"]
    return check_status(subprocess.run([str(word) for word in command], **options), status)


def make_capture(tool, path, script):
    """A capture out of a text (tests/capture/make_capture.c). Returns its path."""
    run([tool, path], input=script)
    return path


def until(happens, what="what was waited for", process=None, pause=0.01):
    """Wait until `happens` returns something true, while `process` runs; that is returned."""
    start = time.monotonic()
    while not (result := happens()):
        if process is not None and process.poll() is not None:
            raise AssertionError(f"{what}: the process ended with {process.returncode}")
        if time.monotonic() - start > limit():
            raise AssertionError(f"it never came to that: {what}")
        time.sleep(pause)
    return result


def free_ports(count, kind=socket.SOCK_STREAM):
    """Ports of the loopback interface that nothing listens on, all at once."""
    sockets = [socket.socket(socket.AF_INET, kind) for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


class InFolder(unittest.TestCase):
    """Has a folder of its own, `directory`. WORK, where a test names it, is where such folders are made."""
    maxDiff = None
    WORK = None

    def setUp(self):
        if self.WORK:
            os.makedirs(self.WORK, exist_ok=True)
        self.directory = tempfile.mkdtemp(prefix="greenprof-", dir=self.WORK)
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def put(self, name, data):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        return self.path(name)


def bare(frame):
    """A name without arguments of C++ and line."""
    return re.sub(r"[ (@:.].*$", "", frame) if not frame.startswith("[") else frame


class Folded:
    """A folded export: stacks and seconds."""

    def __init__(self, text):
        self.stacks = []
        for line in text.splitlines():
            stack, _, weight = line.rpartition(" ")
            self.stacks.append((stack.split(";"), int(weight) / 1e6))
        self.total = sum(weight for _, weight in self.stacks)

    def sums(self, parts):
        """Seconds by each of `parts(stack)`."""
        sums = collections.Counter()
        for stack, weight in self.stacks:
            for part in parts(stack):
                sums[part] += weight
        return sums

    def inclusive(self):
        """By bare function name, with whatever it calls."""
        return self.sums(lambda stack: {bare(frame) for frame in stack})

    def cumulative(self):
        """The same, by whole frame."""
        return self.sums(set)

    def own(self):
        return self.sums(lambda stack: stack[-1:])

    def roots(self):
        return self.sums(lambda stack: stack[:1])

    def pairs(self):
        """By (caller, callee), as often as it is in a stack."""
        return self.sums(lambda stack: zip(stack, stack[1:]))

    def under(self, root):
        """Only the stacks with an outermost frame that begins with `root`."""
        part = Folded("")
        part.stacks = [(stack, weight) for stack, weight in self.stacks if stack[0].startswith(root)]
        part.total = sum(weight for _, weight in part.stacks)
        return part
