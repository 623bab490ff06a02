# SPDX-License-Identifier: MIT
"""PHP's functions by name, on each stack that they run on; requests of its servers."""
import collections
import glob
import http.client
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import threading
import time

from shares import check
from helpers import free_ports
import fastcgi
import shares

HERE = os.path.dirname(os.path.abspath(__file__))
JIT = ("-d", "opcache.enable_cli=1", "-d", "opcache.jit_buffer_size=32M", "-d")
MODES = {"plain": ("-d", "opcache.enable_cli=0"), "opcache": ("-d", "opcache.enable_cli=1", "-d", "opcache.jit=off"),
         "tracing": (*JIT, "opcache.jit=tracing"), "function": (*JIT, "opcache.jit=function")}


class Case(shares.Shares):
    def php(self, mode="plain"):
        """A PHP whose frames are known."""
        path = self.installed("php")
        version = subprocess.run([path, "-r", "echo PHP_VERSION;"], capture_output=True, text=True).stdout
        check.need(version.startswith("8.2."), f"the frames of PHP {version} are not known")
        cached = subprocess.run([path, "-m"], capture_output=True, text=True).stdout
        check.need(mode == "plain" or "OPcache" in cached, "there is no opcache")
        return [path, *MODES[mode]]

    def write(self, name, text):
        with open(os.path.join(self.directory, name), "w") as file:
            file.write(text)
        return os.path.join(self.directory, name)

    def changed(self, find, code, program=None):
        """The interpreter, or another program, with other bytes somewhere."""
        real = os.path.realpath(program or self.php()[0])
        with open(real, "rb") as file:
            whole = bytearray(file.read())
        at = find(whole, subprocess.run(["nm", "-D", real], capture_output=True, text=True).stdout)
        whole[at:at + len(code)] = code
        path = os.path.join(self.directory, "php")
        with open(path, "wb") as file:
            file.write(whole)
        os.chmod(path, 0o755)
        return path


class Functions(Case):
    def check_mode(self, mode):
        run = self.profile([*self.php(mode), os.path.join(HERE, "functions.php"), 2.0], status=7)
        self.without_own(run)
        found, whole = run.folded().cumulative(), sum(run.truth.functions.values())
        for name, seconds in run.truth.functions.items():
            self.near(name, found[name], seconds, check.SHARE_TOLERANCE, samples=len(run.capture().samples), whole=whole)
        self.assertEqual(run.stderr, "")
        self.check_reach(run, whole)
        self.check_places(run)

    def check_reach(self, run, whole):
        """What runs in the program names its functions, from the leaf to where its stack begins."""
        stacks = run.folded("--by", "coroutine").stacks
        reach = sum(seconds for stack, seconds in stacks if stack[1] == "{main}" or
                    stack[0].startswith("[coroutine") and re.match(r"{closure:functions.php:\d+}", stack[1]))
        self.at_least("seconds that reach the script's root", reach, 0.99 * whole)
        for stack, _ in stacks:
            own = [frame for frame in stack if re.search("_fiber$", frame)]
            self.assertFalse(own != [] and not stack[0].startswith("[coroutine"), stack)
            self.assertLessEqual(len(own), 1, stack)

    def check_places(self, run):
        """Each function is said to begin where it does; what it is called, in which class, and by which generators."""
        with open(os.path.join(HERE, "functions.php")) as file:
            lines = file.read().splitlines()
        seen = {frame["name"]: (os.path.basename(frame.get("file", "")), frame.get("line")) for frame in self.frames(run)}
        for name in ("App\\plain", "App\\spin", "App\\Work::step", "App\\Work::shared", "App\\Work::sorts", "App\\Work::__call",
                     "App\\numbers", "App\\delegates", "App\\first_fiber"):
            first = next(at for at, text in enumerate(lines, 1) if re.search(rf"function {re.split(r'::|' + chr(92) * 2, name)[-1]}\(", text))
            self.assertEqual(seen[name], ("functions.php", first), seen)
        self.assertEqual(seen["sort"][0], "[C]")
        stacks = [stack for stack, _ in run.folded().stacks]
        inside = [stack for stack in stacks if "App\\numbers" in stack and stack[0] != "[incomplete]"]
        for stack in inside:
            self.assertEqual(stack[:3], ["{main}", "App\\generated", "App\\booked"])
            self.assertRegex(stack[3], r"^{closure:functions.php:\d+}$")
        self.at_least("stacks of the generator that delegates",
                      sum(stack[4:6] == ["App\\delegates", "App\\numbers"] for stack in inside), 0.5 * len(inside))

    def test_plain(self):
        self.check_mode("plain")

    def test_opcache(self):
        self.check_mode("opcache")

    def test_tracing(self):
        self.check_mode("tracing")

    def test_function(self):
        self.check_mode("function")


class Stacks(Case):
    CODE = "function work() { for ($i = 0, $x = 0; $i < 5000000; $i++) $x += $i; return $x; }\n"

    def test_names(self):
        """Code outside of functions, of files and of texts; methods of classes without a name, and closures."""
        self.write("inner.php", "<?php\nwork();\n")
        path = self.write("names.php", "<?php\n" + self.CODE + "include 'inner.php';\neval(\"\\nwork();\");\n"
                          "(new class { function named() { work(); } })->named();\n(function () {\n  work(); })();\n")
        stacks = {tuple(stack) for stack, _ in self.profile([*self.php(), path]).folded().stacks if stack[-1] == "work"}
        self.assertEqual(stacks, {("{main}", "include inner.php", "work"), ("{main}", "eval names.php(4) : eval()'d code", "work"),
                                  ("{main}", "class@anonymous::named", "work"), ("{main}", "{closure:names.php:6}", "work")})

    def test_deep(self):
        """Of a stack that is too deep, the leaf and the root are kept."""
        for depth in (700, 8000, 60000):
            path = self.write("deep.php", "<?php\n" + self.CODE +
                              f"function deep($n) {{ return $n == 0 ? work() + work() : 1 + deep($n - 1); }}\ndeep({depth});\n")
            run = self.profile([*self.php(), path], healthy=False)
            stack = max((row for row in run.folded().stacks if row[0][-1] == "work"), key=lambda row: row[1])[0]
            self.assertGreater(stack.count("deep"), 400)
            self.assertEqual("{main}" in stack[:3], depth <= 8000, stack[:3])  # beyond, the root is not looked for

    def test_waits(self):
        """A Fiber that waits shows where, once it goes on; and so does who waits for it."""
        path = self.write("waits.php", "<?php\n" + self.CODE + "function waits() { Fiber::suspend(); }\n"
                          "$fiber = new Fiber(function () { for ($i = 0; $i < 8; $i++) { waits(); work(); } });\n"
                          "$fiber->start();\nwhile (!$fiber->isTerminated()) { work(); $fiber->resume(); }\n")
        run = self.profile([*self.php(), path], options=["--clock", "wall"])
        waits = [stack[1:-1] for stack, _ in run.folded("--clock", "wall", "--by", "coroutine").stacks
                 if stack[-1] in ("[parked]", "[waiting]") and (stack[0].startswith("[coroutine") or "{main}" in stack)]
        self.assertIn(["{closure:waits.php:4}", "waits", "Fiber::suspend"], waits)
        for stack in waits:
            self.assertIn(stack, (["{closure:waits.php:4}", "waits", "Fiber::suspend"], ["{main}", "Fiber::resume"]))

    def test_native(self):
        """C libraries' frames stand where they were called, the engine's own do not."""
        path = self.write("packs.php", "<?php\nfunction packs($text) { return gzcompress($text, 9); }\n"
                          "$text = implode(range(0, 200000));\nfor ($i = 0; $i < 8; $i++) packs($text);\n")
        run = self.profile([*self.php(), path], options=["--native"])
        deep = [stack for stack, _ in run.folded().stacks if "packs" in stack and any("libz" in f or "deflate" in f for f in stack)]
        self.assertTrue(deep)
        for stack in deep:
            at = stack.index("{main}")
            self.assertEqual(stack[at:at + 3], ["{main}", "packs", "gzcompress"])
            self.assertFalse(any("php" in frame or frame == "execute_ex" for frame in stack), stack)

    def test_other_threads(self):
        """A signal on a thread that is not the engine's, which has none here but greenprof's: a child's is."""
        path = self.write("forks.php", "<?php\n" + self.CODE + "function child() { work(); }\n"
                          "$pid = pcntl_fork();\nif ($pid == 0) { child(); exit(0); }\npcntl_waitpid($pid, $status);\nwork();\n")
        php = self.php()
        check.need("pcntl" in subprocess.run([php[0], "-m"], capture_output=True, text=True).stdout, "there is no pcntl")
        self.profile([*php, path])
        paths = [os.path.join(self.directory, name) for name in os.listdir(self.directory) if ".greenprof" in name]
        texts = [check.greenprof("export", path, "--format", "folded").stdout.decode() for path in paths]
        self.assertTrue(any("{main};child;work" in text for text in texts), texts)


class Refused(Case):
    """What is not known, or is not as it should be, is not read: native frames, and one sentence."""

    def check_refused(self, path, *sentences):
        script = self.write("work.php", "<?php\n" + Stacks.CODE + "echo work();\n")
        run = self.profile([path, script])
        self.assertEqual((run.stdout, run.stderr), ("12499997500000", ""))
        for sentence in sentences:
            self.assertIn(sentence, check.greenprof("report", run.output).stdout.decode())
        stacks = [stack for stack, _ in run.folded().stacks]
        self.assertFalse(any("work" in stack or "{main}" in stack for stack in stacks), stacks)
        self.assertTrue(any("execute_ex" in stack for stack in stacks))

    def test_another_line(self):
        """The engine says something else of a frame than what is read there."""
        self.check_refused(self.changed(lambda _, symbols: int(re.search("(?m)^([0-9a-f]+) T zend_get_executed_lineno$", symbols)[1], 16),
                                        b"\x31\xc0\xc3"), "PHP 8.2: does not keep its frames where it says, native frames only")

    def test_another_version(self):
        path = self.changed(lambda whole, _: whole.index(b"Zend Engine v4.2."), b"Zend Engine v4.9.")
        self.check_refused(path, "PHP: Zend Engine v4.9.")

    def test_runtimes(self):
        said = check.greenprof("runtimes", self.php()[0]).stdout.decode()
        self.assertRegex(said, r"(?m)^PHP's functions +php: entry patch of php_request_startup, by 'greenprof run'$")


class Served(Case):
    """Servers, each of whose processes has a capture."""
    CLIENTS, WORKERS = 2, 2
    SCRIPT = r"""<?php
        function burns($n) { for ($i = 0, $x = 0; $i < $n; $i++) $x += $i; return $x; }
        function behind() { burns(3000000); }
        function in_fiber() { $x = burns(100000); Fiber::suspend(); return $x + burns(100000); }
        function fibers() { $all = [new Fiber('in_fiber'), new Fiber('in_fiber')];
            foreach ($all as $each) $each->start(); foreach ($all as $each) $each->resume(); }
        class Last { function __destruct() { usleep(15000); } }
        $what = $_GET['what'] ?? 'none';
        if ($what == 'computes') burns(400000);
        if ($what == 'sleeps') usleep(20000);
        if ($what == 'fibers') fibers();
        if ($what == 'destructs') $last = new Last;
        if ($what == 'exits') { usleep(10000); exit(3); }
        if ($what == 'status') http_response_code((int)$_GET['code']);
        if ($what == 'fatal') no_such_function();
        if ($what == 'throws') (function () { $f = new Fiber(fn () => throw new Exception('thrown')); $f->start(); })();
        if ($what == 'endless') { set_time_limit(1); while (true); }
        if ($what == 'finishes') { echo 'early'; fastcgi_finish_request(); behind(); http_response_code(500); }
        echo $what;
        """
    WHAT = ("computes", "sleeps", "fibers", "destructs", "exits")

    def setUp(self):
        super().setUp()
        self.php()
        self.fpm = shutil.which("php-fpm8.2", path="/usr/sbin:/usr/bin")
        self.script = self.write("served.php", self.SCRIPT)

    def start(self, *command):
        with open(self.path("said"), "w") as said:
            server = subprocess.Popen([check.GREENPROF, "run", "-o", self.path("out"), "-F", "1000", "--", *command], cwd=self.directory,
                                      stdout=said, stderr=said)
        self.addCleanup(lambda: (server.poll() is None and server.terminate(), server.wait(check.LIMIT_SECONDS)))
        return server

    def start_fpm(self, fpm=None):
        check.need(self.fpm is not None, "php-fpm8.2 is not installed")
        user = "user = root\ngroup = root\n" if os.geteuid() == 0 else ""
        conf = self.write("fpm.conf", f"[global]\nprocess_control_timeout = 60\nerror_log = {self.path('log')}\npid = {self.path('pid')}\n"
                                      f"[www]\nlisten = {self.path('socket')}\n{user}pm = static\npm.max_children = {self.WORKERS}\n")
        server = self.start(fpm or self.fpm, "-n", "-F", "-R", "-O", "-y", conf, "-d", "display_errors=0")
        check.until(lambda: os.path.exists(self.path("pid")) and os.path.getsize(self.path("pid")) > 0, process=server)
        return server

    def stop(self, server, number=signal.SIGQUIT):
        server.send_signal(number)
        server.wait(check.LIMIT_SECONDS)
        with open(self.path("said")) as said:
            return said.read()

    def ask(self, uri, script=None, **variables):
        """Status and seconds."""
        begin = time.monotonic()
        answer = fastcgi.ask(self.path("socket"), script or self.script, REQUEST_URI=uri, QUERY_STRING=uri.partition("?")[2], **variables)
        seconds = time.monotonic() - begin
        status = re.match(rb"Status: (\d+)", answer)
        return int(status[1]) if status else 200, seconds

    def captures(self):
        return {path: check.Capture(path) for path in glob.glob(self.path("out*")) if not path.endswith(".old")}

    def spans(self):
        """By their URI, which is another one for each."""
        all_of = [span for capture in self.captures().values() for span in capture.spans]
        found = {span.fields["http.target"]: span for span in all_of}
        self.assertEqual(len(found), len(all_of))
        return found

    def roots(self):
        """For each function: the traces, or their absence, in which it was seen."""
        seen = collections.defaultdict(set)
        for path in self.captures():
            text = check.greenprof("export", path, "--format", "folded", "--by", "trace", check=True).stdout.decode()
            for line in text.splitlines():
                root, *stack = line.rpartition(" ")[0].split(";")
                for frame in stack:
                    seen[frame].add(root)
        return seen

    def check_latencies(self, spans, seen):
        """As the client has them, but for its way to the worker and back."""
        differences, longer = collections.defaultdict(list), 0
        for uri, span in spans.items():
            seconds = (span.end_ns - span.start_ns) / 1e9
            longer += seconds > 1.02 * seen[uri] + 0.001
            differences[uri.split("/")[1]].append(abs(seconds - seen[uri]) - 0.02 * seen[uri])
        self.at_most("requests that take longer than for the client", longer, 0.02 * len(spans))
        for kind, each in differences.items():
            self.at_most(f"seconds beyond 2 % of the client's, {kind}, in the middle", statistics.median(each), 0, slack=0.001)

    def load(self, rounds):
        seen, failed = {}, []

        def client(number):
            for i in range(rounds):
                what = self.WHAT[i % len(self.WHAT)]
                status, seen[f"/{what}/{number}.{i}"] = self.ask(f"/{what}/{number}.{i}?what={what}")
                if status != 200:
                    failed.append((what, status))
        clients = [threading.Thread(target=client, args=(number,)) for number in range(self.CLIENTS)]
        for each in clients:
            each.start()
        for each in clients:
            each.join()
        self.assertEqual(failed, [])
        self.assertEqual(len(seen), rounds * self.CLIENTS)
        return seen

    def test_requests(self):
        """Of two workers, each of which has many."""
        server = self.start_fpm()
        seen = self.load(250)
        self.assertNotIn("could not be patched", self.stop(server))
        spans, roots = self.spans(), self.roots()
        self.assertEqual({uri: (span.name, span.fields) for uri, span in spans.items()},
                         {uri: (f"GET {uri}", {"http.method": "GET", "http.target": uri, "http.status_code": "200",
                                               "php.script": self.script}) for uri in seen})
        workers = sorted(len(capture.spans) for capture in self.captures().values())
        self.assertEqual((len(workers), workers[0]), (1 + self.WORKERS, 0), workers)  # the master has none
        self.assertGreater(workers[1], 1)
        self.check_latencies(spans, seen)
        for function in ("burns", "in_fiber"):
            self.assertGreater(len(roots[function]), 10)
            self.assertNotIn("[no trace]", roots[function])
        report = check.greenprof("report", *self.captures(), "--by", "request", check=True).stdout.decode()
        self.assertIn(f" {len(seen)} requests, milliseconds", report)

    def test_ends(self):
        """However a script ends, the status is the client's; 5xx are failed."""
        server = self.start_fpm()
        expected = {"/unknown": 404, "/teapot": 418, "/broken": 500, "/unable": 503, "/fatal": 500, "/thrown": 500, "/endless": 500,
                    "/exits": 200, "/none": 404, "/finishes": 200, "/plain": 200}
        asked = {uri: self.ask(f"{uri}?what=status&code={status}")[0] for uri, status in list(expected.items())[:4]}
        for uri, what in (("/fatal", "fatal"), ("/thrown", "throws"), ("/endless", "endless"), ("/exits", "exits"), ("/plain", "plain")):
            asked[uri] = self.ask(f"{uri}?what={what}")[0]
        asked["/none"] = self.ask("/none", script=self.path("none.php"))[0]
        asked["/finishes"] = self.ask("/finishes?what=finishes")[0]  # its worker goes on, in no request
        self.assertEqual(asked, expected)
        self.stop(server)
        spans = self.spans()
        self.assertEqual({uri: int(span.fields["http.status_code"]) for uri, span in spans.items()}, expected)
        self.assertEqual({uri for uri, span in spans.items() if "error.type" in span.fields},
                         {uri for uri, status in expected.items() if status >= 500})
        self.assertEqual(self.roots()["behind"], {"[no trace]"})

    def test_callers(self):
        """Below the span of the caller, in its trace; what is no header of W3C's is none."""
        trace, server = "0af7651916cd43dd8448eb211c80319c", self.start_fpm()
        for uri, header in (("/good", f"00-{trace}-b7ad6b7169203331-01"), ("/bad", f"00-{trace}-b7ad6b7169203331"), ("/id", trace),
                            ("/zero", f"00-{trace}-0000000000000000-01"), ("/long", "x" * 5000)):
            self.assertEqual(self.ask(uri + "?what=computes", HTTP_TRACEPARENT=header)[0], 200)
        self.assertEqual(self.ask("/" + "u" * 3000, REQUEST_METHOD="PURGE" + "E" * 900)[0], 200)
        self.stop(server)
        spans = self.spans()
        self.assertEqual({uri: span.parent for uri, span in spans.items() if span.parent}, {"/good": 0xb7ad6b7169203331})
        self.assertEqual(len(spans), 6)
        longest = max(spans, key=len)
        fields = spans[longest].fields
        self.assertEqual((longest[:200], fields["http.method"], fields["http.status_code"]), ("/" + "u" * 199, "PURGE" + "E" * 58, "200"))
        self.assertTrue({root for root in self.roots()["burns"] if trace in root})

    def test_own_server(self):
        """`php -S`, whose requests have no variables: words of them are read, and proved by the first."""
        port, = free_ports(1)
        server = self.start(*self.php(), "-d", "display_errors=0", "-S", f"127.0.0.1:{port}", "-t", self.directory)
        seen, expected = {}, {"/served.php/none": 404, "/served.php/unable": 503, "/served.php/sleeps": 200, "/served.php/fatal": 500}
        queries = ("status&code=404", "status&code=503", "sleeps", "fatal")

        def listens():
            with socket.socket() as link:
                return link.connect_ex(("127.0.0.1", port)) == 0
        check.until(listens, process=server)
        for uri, query in zip(expected, queries):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", f"{uri}?what={query}")
            seen[uri] = connection.getresponse().status
            connection.close()
        self.assertEqual(seen, expected)
        self.stop(server, signal.SIGINT)
        self.assertEqual({uri: (span.name, int(span.fields["http.status_code"]), span.fields["php.script"], "error.type" in span.fields)
                          for uri, span in self.spans().items()},
                         {uri: (f"GET {uri}", status, self.script, status >= 500) for uri, status in expected.items()})

    def check_refused(self, find, code, sentence):
        server = self.start_fpm(self.changed(find, code, self.fpm))
        self.assertEqual([self.ask(f"/some?what=status&code={status}")[0] for status in (200, 404)], [200, 404])
        self.stop(server)
        captures = self.captures()
        self.assertEqual([span.name for capture in captures.values() for span in capture.spans], [])
        told = "".join(check.greenprof("report", path).stdout.decode() for path in captures)
        self.assertIn(sentence + ", its requests are not told apart", told)

    def test_another_status(self):
        """A status that is set by the engine's function is not where it should be."""
        def store(whole, symbols):
            return whole.index(b"\x45\x89\xa5\xd8\0\0\0", int(re.search("(?m)^([0-9a-f]+) T sapi_header_op$", symbols)[1], 16))
        self.check_refused(store, b"\x0f\x1f\x80\0\0\0\0", "PHP: does not keep a status where it says")

    def test_another_version(self):
        self.check_refused(lambda whole, _: whole.index(b"Zend Engine v4.2."), b"Zend Engine v4.9.",
                           "PHP: is of another version than 8.2")


class Storm(Case):
    def check_storm(self, mode):
        run = self.profile([*self.php(mode), os.path.join(HERE, "functions_storm.php"), 0.8], hz=10000, healthy=False)
        self.assertEqual(run.stderr, "")
        made, seen = int(run.stdout), 0
        for frame in self.frames(run):
            match = re.fullmatch(r"(?:class@anonymous::)?storm_(\d+)", frame["name"])
            closure = re.fullmatch(r"{closure:functions_storm.php(.*):(\d+)}", frame["name"])
            if closure is not None:
                self.assertIn(int(closure[2]), range(1, 8) if closure[1] else (3,), frame)
            if match is None:
                self.assertNotIn("storm_", frame["name"].split("{")[0], frame)
                continue
            n, seen = int(match[1]), seen + 1
            self.assertTrue(1 <= n <= made, frame)
            self.assertRegex(frame["file"], r"functions_storm\.php\(\d+\) : eval\(\)'d code$")
            self.assertEqual(frame["line"], n % 7 + 1, frame)
        self.assertGreater(seen, 0)
        self.assertGreater(self.check_lines(run, made, lambda n: (n % 7 + 1, n % 7 + n % 5 + 6), r"(?:class@anonymous::)?storm_(\d+)"), 0)
        unnamed, samples = run.capture().counters["unnamed_frames"], len(run.capture().samples)
        self.at_most("frames without a name", unnamed, 0.01 * samples + 5)

    def test_plain(self):
        self.check_storm("plain")

    def test_tracing(self):
        self.check_storm("tracing")


if __name__ == "__main__":
    check.main()
