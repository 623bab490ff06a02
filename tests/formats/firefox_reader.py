# SPDX-License-Identifier: MIT
"""Firefox Profiler's own command line as a reader. It keeps a daemon, which is stopped afterwards."""
import contextlib, json, os, re, shutil, signal, subprocess

import npm_package

VERSION = "0.10.0"


class Profiler:
    """One loaded file."""

    def __init__(self, path, directory, home):
        folder = npm_package.fetch(directory, "@firefox-devtools/profiler-cli", VERSION)
        if shutil.which("node") is None:
            raise npm_package.Missing("there is no node")
        self.command = ["node", os.path.join(folder, "dist", "profiler-cli.js")]
        self.environment = dict(os.environ, HOME=home)
        self.load(path)

    def load(self, path):
        """The daemon has half a second to start, which a busy machine does not always give it."""
        for _ in range(8):
            result = self.start("load", path)
            if result.returncode == 0:
                return
            late = re.search(r"may still be running as pid (\d+)", result.stderr)
            if late is None:
                raise AssertionError(result.stdout + result.stderr)
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(late[1]), signal.SIGKILL)
        raise npm_package.Missing("profiler-cli's daemon does not start in time")

    def start(self, *arguments):
        return subprocess.run([*self.command, *arguments], env=self.environment, capture_output=True, text=True,
                              timeout=20, start_new_session=True)

    def run(self, *arguments):
        result = self.start(*arguments)
        if result.returncode != 0:
            raise AssertionError(f"{arguments}: {result.stdout} {result.stderr}")
        return result.stdout

    def threads(self):
        return self.run("thread", "list")

    def self_weights(self, thread):
        """{function: own ms} of a thread, "t-0" and so on."""
        self.run("thread", "select", thread)
        sums = {}

        def visit(node):
            if node["selfSamples"]:
                sums[node["name"]] = sums.get(node["name"], 0) + node["selfSamples"]
            for child in node.get("children", []):
                visit(child)

        visit(json.loads(self.run("thread", "samples-top-down", "--json"))["regularCallTree"])
        return sums

    def stop(self):
        with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
            self.run("stop", "--all")
