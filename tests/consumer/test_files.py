# SPDX-License-Identifier: MIT
"""The file consumer, and what all consumers have in common: fork, exit, options, plug-ins."""
import os
import pstats
import re
import resource
import shutil
import stat
import subprocess
import tempfile
import unittest

from support import HOST, Case, Host, balanced, until


class Files(Case):
    def test_layout(self):
        with Host(GREENPROF_SERVICE="../api v2") as host:
            host.do(f"open file://{self.path('d')}", "requests 2", "failed", "flush 20000")
            spans = self.spans("d", host.trace(3))
            self.assertEqual(host.status()["sent"], 9)
        self.assertEqual([span["kind"] for span in spans], ["cache", "database", "rest_dispatch"])
        cache, database, root = spans
        self.assertEqual((cache["parent"], database["parent"], root["parent"]), (database["span"], root["span"], None))
        self.assertEqual(list(root), ["v", "trace", "span", "parent", "remote_parent", "kind", "name", "service", "host", "pid",
                                      "coroutine", "start_unix_ns", "end_unix_ns", "cpu_ns", "ready_ns", "parked_ns", "blocked_ns",
                                      "preempted_ns", "waiting_ns", "switches", "flags", "fields"])
        self.assertEqual((root["v"], root["trace"], root["pid"]), (1, host.trace(3), host.pid))
        self.assertEqual((root["service"], root["flags"]), (".._api_v2".replace(".", "_", 1), ["failed"]))
        self.assertEqual(root["fields"], {"http.method": "GET", "quote": "say \"hi\"\n\ufffd", "error.type": "NotFound",
                                          "error.message": "it did not work"})
        for inner, outer in ((cache, database), (database, root)):
            self.assertLessEqual(outer["start_unix_ns"], inner["start_unix_ns"])
            self.assertLessEqual(inner["end_unix_ns"], outer["end_unix_ns"])
        self.assertEqual(sorted(os.listdir(self.path("d"))), sorted(host.trace(i) for i in (1, 2, 3)))
        for folder, _, names in os.walk(self.path("d")):
            self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)
            for name in names:
                self.assertEqual(stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode), 0o600)
                self.assertRegex(name, rf"^spans-_\._api_v2-[\w.-]+-{host.pid}\.jsonl$")

    def test_all_is_there_after_the_end(self):
        """More than a batch. Not on a disk: one that is busy takes longer than a program waits as it ends (3 s)."""
        if os.access("/dev/shm", os.W_OK):
            self.folder = tempfile.mkdtemp(prefix="greenprof-consumer-", dir="/dev/shm")
            self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        for leave in ("", "_exit"):
            directory = self.path("d" + leave)
            with Host(GREENPROF_CONSUMER=f" file://{directory}  null: ") as host:
                host.do("requests 45")
                if leave:
                    host.process.stdin.write("_exit\n")
                self.assertEqual(host.end(), "")
            self.assertEqual(len(self.spans("d" + leave)), 135)

    def test_children(self):
        with Host() as host:
            host.do(f"open file://{self.path('d')}", "requests 1")
            children = [int(host.say(word).split()[0]) for word in ("fork 2", "_fork 3")]
            host.do("requests 1", "flush 20000")
            self.assertEqual(len(self.spans("d", name=f"*-{host.pid}")), 6)
            self.assertEqual([len(self.spans("d", name=f"*-{child}")) for child in children], [6, 9])
            self.assertEqual(len(self.spans("d")), 21)

    def test_links_are_not_followed(self):
        os.mkdir(self.path("d"))
        os.mkdir(self.path("elsewhere"))
        with Host() as host:
            os.symlink(self.path("elsewhere"), os.path.join(self.path("d"), host.trace(1)))
            os.symlink(self.path("elsewhere"), self.path("link"))
            host.do(f"open file://{self.path('d')}", "requests 2", "flush 20000")
            status = host.status()
            self.assertEqual((status["refused"], status["sent"], status["failures"]), (3, 3, 0))
            host.do("close", f"open file://{self.path('link')}", "requests 1")
            until(lambda: host.status()["failures"], "a link for a directory")
            self.assertEqual(host.status()["sent"], 0)
        self.assertEqual(os.listdir(self.path("elsewhere")), [])

    def test_files_that_may_not_grow(self):
        def limits():
            resource.setrlimit(resource.RLIMIT_FSIZE, (700, 700))  # of three lines, the first two fit in

        with Host(limits) as host:
            host.do(f"open file://{self.path('d')}", "requests 20", "flush 20000")
            status = host.status()
            self.assertEqual(host.say("requests 1"), "21")
        self.assertTrue(balanced(status), status)
        self.assertGreater(status["refused"], 0)
        self.assertEqual(len(self.spans("d")), status["sent"])

    def test_what_cannot_be_written_waits(self):
        with Host() as host:
            host.do(f"open file://{self.path('no/such')}", "requests 3")
            until(lambda: host.status()["failures"] >= 2, "an attempt, and another one")
            self.assertEqual(host.status()["queued"], 9)
            os.mkdir(self.path("no"))
            until(lambda: host.status()["sent"] == 9, "it is written")
            self.assertEqual(len(self.spans("no/such")), 9)

    def test_queue_is_bounded(self):
        with Host() as host:
            host.do(f"open file://{self.path('no/such')}?queue=32K")
            spans = host.overfill()
            status = host.balance(lambda status: status["given"] + status["unheard"] == spans, "all are given")
            self.assertGreater(status["queued"], 20)
            self.assertEqual(host.say("close"), "-110")

    def test_slower(self):
        with Host() as host:
            host.do(f"open file://{self.path('d')}?slower=10s", f"open file://{self.path('e')}?slower=5ms", "slow 10")
            host.do("flush 20000")
            self.assertEqual(host.status(f"file://{self.path('d')}?slower=10s")["fast"], 3)
            self.assertEqual((len(self.spans("d")), len(self.spans("e"))), (0, 3))

    def profiles(self, directory, suffix):
        """{trace: text of its profile}, each under the name that readers know."""
        found = {}
        for folder, _, names in os.walk(self.path(directory)):
            for name in names:
                self.assertFalse(name.startswith("."), "half a file")
                if name.endswith(suffix):
                    trace = os.path.basename(folder)
                    self.assertNotIn(trace, found)
                    with open(os.path.join(folder, name), "rb") as file:
                        found[trace] = name, file.read()
        return found

    def test_profiles_of_requests(self):
        with Host() as host:
            host.do(f"open file://{self.path('d')}?profile=prof,folded", "busy 300", "requests 1", "flush 60000")
            status = host.status()
            self.assertEqual((status["profiles"], status["profiles_lost"]), (2, 0))
        root = self.spans("d", host.trace(1))[-1]
        name, folded = self.profiles("d", ".folded")[host.trace(1)]
        self.assertEqual(name, f"profile-{root['service']}-{host.pid}-{root['span']}.folded")
        lines = [line.rsplit(" ", 1) for line in folded.decode().splitlines()]
        computed = sum(int(weight) for stack, weight in lines if "compute_request" in stack)
        self.assertGreaterEqual(computed, 0.6 * 300000, folded)
        name, _ = self.profiles("d", ".prof")[host.trace(1)]
        stats = pstats.Stats(os.path.join(self.path("d"), host.trace(1), name))
        self.assertTrue(any(function == "compute_request" for _, _, function in stats.stats), stats.stats)
        self.assertEqual(len(self.profiles("d", ".prof")), 2)
        for trace, (name, _) in self.profiles("d", ".folded").items():
            self.assertEqual(stat.S_IMODE(os.stat(os.path.join(self.path("d"), trace, name)).st_mode), 0o600)

    def test_profiles_that_trace_show_reads(self):
        with Host() as host:
            host.do(f"open file://{self.path('d')}?profile=prof,folded", "busy 100", "flush 60000")
        page = subprocess.run([os.environ["GREENPROF"], "trace", "show", host.trace(1), self.path("d"), "--html", "-o", "-"],
                              capture_output=True, text=True, timeout=60, check=True).stdout
        self.assertIn("compute_request", page)

    def test_profiles_are_bounded(self):
        """Each request has a profile or is counted, however fast they come; and none waits for a file."""
        with Host() as host:
            host.do(f"open file://{self.path('d')}?profile=folded", "requests 2000", "flush 60000")
            status = host.status()
            self.assertEqual(status["profiles"] + status["profiles_lost"], 2000)
            self.assertGreater(status["profiles"], 0)
            self.assertEqual(len(self.profiles("d", ".folded")), status["profiles"])
            host.do("close", "requests 5", f"open file://{self.path('e')}", "requests 5", "flush 60000")
            self.assertEqual(len(self.spans("e")), 15)
        self.assertEqual(self.profiles("e", ".folded"), {})

    def test_profiles_of_slow_requests_only(self):
        with Host() as host:
            host.do(f"open file://{self.path('d')}?profile=folded&slower=1s", "requests 3", "slow 1100", "flush 60000")
            self.assertEqual(list(self.profiles("d", ".folded")), [host.trace(4)])
            self.assertEqual((host.status()["profiles"], host.status()["profiles_lost"]), (1, 0))

    def test_profiles_of_children_and_at_the_end(self):
        for leave in ("fork 2", "_fork 2"):
            directory = self.path("d" + leave[0])
            with Host(GREENPROF_CONSUMER=f"file://{directory}?profile=folded") as host:
                host.do("requests 1")
                child = int(host.say(leave).split()[0])
                host.do("requests 1")
                host.end()
            names = [name for name, _ in self.profiles("d" + leave[0], ".folded").values()]
            self.assertEqual([sum(f"-{pid}-" in name for name in names) for pid in (host.pid, child)], [2, 2], names)

    def test_profiles_that_cannot_be_written(self):
        with Host() as host:
            host.do(f"open file://{self.path('no/such')}?profile=folded", "requests 2")
            status = until(lambda: (lambda s: s if s["profiles_lost"] == 2 else None)(host.status()), "both were tried")
            self.assertEqual((status["profiles"], status["queued"]), (0, 6))

    def test_descriptors_are_the_programs(self):
        """A daemon closes all that it does not know: the spool goes on in its own file, and in no other."""
        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))  # no number is out of reach

        url = f"redis://127.0.0.1:1?spool={self.path('spool')}"
        with Host(limits=few) as host:
            host.do(f"open {url}", "requests 20")
            host.balance(lambda status: status["spooled"] == 60, "all are spooled")
            size = os.path.getsize(self.spool_file())
            self.assertGreater(int(host.say("take")), 32)
            host.do("requests 20")
            host.balance(lambda status: status["spooled"] == 120, "all are spooled")
            self.assertEqual(host.say("changed"), "0")
            self.assertGreater(os.path.getsize(self.spool_file()), size)

    def spool_file(self):
        name, = os.listdir(self.path("spool"))
        return os.path.join(self.path("spool"), name)

    def test_losses_are_in_the_capture(self):
        """In the line that `greenprof run` ends with, and in `report` and `info`."""
        def greenprof(*arguments, **options):
            return subprocess.run([os.environ["GREENPROF"], *arguments], capture_output=True, text=True, timeout=60, check=True, **options)

        capture = self.path("x.greenprof")
        run = greenprof("run", "-o", capture, "--", HOST,
                        input=f"open file://{self.path('no/such')}?queue=16K\nrequests 400\nclose\nopen null:\nrequests 1\n")
        self.assertIn(", 1200 spans lost; next: ", run.stderr)
        for command in ("report", "info"):
            shown = greenprof(command, capture).stdout
            lost = re.findall(r"^ +(\d+) spans lost( by consumers)?: ", shown, re.MULTILINE)  # on a busy machine, before, too
            self.assertEqual(sum(int(number) for number, _ in lost), 1200, shown)
            self.assertIn(" by consumers", [where for _, where in lost])
            self.assertRegex(shown, r"\n +\d+ times that a consumer did not take any spans\n")

    def test_wrong_urls(self):
        with Host(GREENPROF_CONSUMER="file:relative nothing://x null:") as host:
            for url in ("", "x", "file:", "file:d", "file://d", "file:///d?unknown=1", "file:///d?queue=1", "file:///d?queue",
                        "file:///d?profile=", "file:///d?profile=chrome", "file:///d?profile=prof,none", "null:?profile=prof", "file:///%zz", "file:///%00", "null:x", "null:?slower=fast", "redis:", "redis://", "redis://h:x",
                        "redis://h:99999", "redis://h/x", "redis://h?timeout=0", "redis://[::1", "redis+sentinel://h",
                        "redis+sentinel://h/", "plugin:x", "redis://h?spool=relative", "redis://" + "h" * 1500):
                self.assertEqual(host.say("open " + url), "-22", url)
            self.assertEqual(host.say("open nosuch://x"), "-95")
            self.assertEqual(host.say("open plugin:/no/such.so"), "-2")
            self.assertEqual(host.say("open null:"), "-114")
            self.assertEqual(host.say("close nosuch://x"), "-2")
            error = host.end()
        self.assertEqual(error, "greenprof: GREENPROF_CONSUMER: file: this URL, or an option of it, is wrong\n"
                                "greenprof: GREENPROF_CONSUMER: nothing: there is no such consumer\n")

    def lines_of_plugin(self, *commands):
        """[(niceness of the thread, name)]"""
        with Host() as host:
            host.do(f"open plugin:{os.environ['CONSUMER_PLUGIN']}?to={self.path('names')}", *commands)
        with open(self.path("names"), encoding="utf-8") as names:
            return [(int(nice), name) for nice, name in (line.rstrip("\n").split(" ", 1) for line in names)]

    def test_plug_in(self):
        lines = self.lines_of_plugin("requests 2", "close", "requests 1")
        self.assertEqual([name for _, name in lines],
                         ["get key", "SELECT 1", "GET /servers/all-of-them?limit=3"] * 2 + ["the end"])

    @unittest.skipIf(os.geteuid() != 0, "only root may raise a priority")
    def test_who_waits_for_the_end_is_not_kept_waiting(self):
        """The thread gives way to the program as long as the program does not wait for it."""
        own = os.getpriority(os.PRIO_PROCESS, 0)
        lines = self.lines_of_plugin("requests 1", "flush 60000", "close")
        self.assertEqual({nice for nice, _ in lines[:-1]}, {min(own + 10, 19)})
        self.assertEqual(lines[-1], (own, "the end"))


if __name__ == "__main__":
    unittest.main()
