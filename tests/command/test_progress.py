# SPDX-License-Identifier: MIT
"""The progress bar: only on a terminal, only for long work, gone at the end.

usage: test_progress.py GREENPROF MAKE_CAPTURE RECORDER.so WORK-DIRECTORY DRIVER
"""
import os, pty, re, select, subprocess, sys, time

from support import GREENPROF, SCRIPT, Command, main

DRIVER = os.path.abspath(sys.argv[5])


class Terminal:
    """A terminal as standard error of a command."""

    def __init__(self, test, command, **variables):
        self.master, slave = pty.openpty()
        environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"} | variables
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=slave, env=environment, text=True)
        os.close(slave)
        self.seen = ""
        test.addCleanup(os.close, self.master)
        test.addCleanup(self.process.stdin.close)
        test.addCleanup(self.process.stdout.close)
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)

    def read(self, seconds=0.0):
        end = time.monotonic() + seconds
        while select.select([self.master], [], [], max(0, end - time.monotonic()))[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:  # the other side is closed
                break
            self.seen += data.decode()
        return self.seen

    def wait_for(self, test, pattern):
        end = time.monotonic() + 30
        while not re.search(pattern, self.read(0.05)) and time.monotonic() < end:
            pass
        test.assertTrue(re.search(pattern, self.seen), f"{pattern} is not in {self.seen[-300:]!r}")

    def say(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()


def screen(text):
    """The lines that remain on a terminal, as far as carriage returns and erasing are concerned."""
    lines = [""]
    for part in re.findall(r"\r\n|\r|\n|\x1b\[K|\x1b\[\d+m|[^\r\n\x1b]+", text):
        if part == "\r\n":
            lines.append("")
        elif part == "\r":
            lines[-1] = "\r" + lines[-1].lstrip("\r")
        elif part == "\x1b[K":
            lines[-1] = lines[-1] if not lines[-1].startswith("\r") else ""
        elif not part.startswith("\x1b"):
            lines[-1] = (part if lines[-1].startswith("\r") else lines[-1] + part)
    return lines


class Progress(Command):
    def setUp(self):
        super().setUp()
        self.file = self.path("file")
        with open(self.file, "wb") as file:
            file.write(bytes(1000))

    def test_how_far_it_is(self):
        for offset, percent, cells in ((0, 0, 0), (330, 33, 7), (999, 99, 23), (1000, 100, 24)):
            terminal = Terminal(self, [DRIVER, self.file, str(offset)])
            terminal.wait_for(self, rf"\[#{{{cells}}} {{{24 - cells}}}\] +{percent} % reading .*file")
            terminal.say("e")
            terminal.wait_for(self, "the end")
            self.assertEqual(screen(terminal.seen), ["the end", ""])

    def test_steps_and_messages(self):
        terminal = Terminal(self, [DRIVER, self.file, "500"])
        terminal.wait_for(self, "50 %")
        terminal.say("m")
        terminal.wait_for(self, r"(?s)a message.*50 %")
        terminal.say("n")
        terminal.wait_for(self, r"\[ *# *\] writing out\?\[2J")
        terminal.say("e")
        terminal.wait_for(self, "the end")
        self.assertEqual(screen(terminal.seen), ["a message", "the end", ""])

    def test_colour(self):
        for variables, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)):
            terminal = Terminal(self, [DRIVER, self.file, "500"], **variables)
            terminal.wait_for(self, "50 %")
            self.assertEqual("\x1b[36m" in terminal.seen, coloured)

    def test_nothing_on_a_dumb_terminal(self):
        for term in ("dumb", ""):
            terminal = Terminal(self, [DRIVER, self.file, "500"], TERM=term)
            terminal.read(1.0)
            terminal.say("e")
            terminal.wait_for(self, "the end")
            self.assertEqual(terminal.seen, "the end\r\n")

    def test_nothing_where_it_is_no_terminal(self):
        with subprocess.Popen([DRIVER, self.file, "500"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "TERM": "xterm"}) as process:
            time.sleep(1.0)
            self.assertEqual(process.communicate("e\n")[1], "the end\n")

    def test_short_work_shows_nothing(self):
        capture = self.make("test.greenprof", SCRIPT)
        terminal = Terminal(self, [GREENPROF, "export", capture, "-f", "folded", "-o", self.path("out")])
        self.assertEqual(terminal.process.wait(timeout=30), 0)
        self.assertEqual(terminal.read(), "")

    def test_command(self):
        """A command that waits for its input shows what it is doing, and leaves a clean terminal."""
        capture, pipe = self.make("test.greenprof", SCRIPT), self.path("pipe.greenprof")
        os.mkfifo(pipe)
        terminal = Terminal(self, [GREENPROF, "export", pipe, "-f", "folded"])
        with open(pipe, "wb") as file, open(capture, "rb") as whole:
            terminal.wait_for(self, r"\[ *# *\] reading .*pipe.greenprof")
            file.write(whole.read())
        self.assertEqual(terminal.process.stdout.read(), self.succeed("export", capture, "-f", "folded"))
        self.assertEqual(terminal.process.wait(timeout=30), 0)
        self.assertEqual("".join(screen(terminal.read())), "")


if __name__ == "__main__":
    main()
