# SPDX-License-Identifier: MIT
"""greenprof symbolize: names of a program that was stripped, from Debian's server of debuginfod, when they are asked for."""
import os, shutil, signal, socket, subprocess, sys, tempfile, time, unittest, urllib.request

import clickhouse_server

GREENPROF = os.environ["GREENPROF"]
PROGRAM = r"""
#include <stdlib.h>
static volatile unsigned long sum;
__attribute__((noinline)) static void spin_in_a_loop(unsigned long n) { while (n-- > 0) sum += n; }
int main(int argc, char **argv) { (void)argc; spin_in_a_loop(strtoul(argv[1], NULL, 10)); return 0; }
"""


class Symbolize(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="greenprof-symbolize-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = {"PATH": os.environ["PATH"], "HOME": self.folder, "no_proxy": "*", "LC_ALL": "C.UTF-8",
                            "DEBUGINFOD_TIMEOUT": "30"}
        self.program, self.capture = self.path("program"), self.path("c.greenprof")
        with open(self.path("program.c"), "w", encoding="ascii") as file:
            file.write(PROGRAM)
        subprocess.run(["gcc", "-O1", "-g", "-Wl,--build-id", "-o", self.program, self.path("program.c")], check=True)
        os.mkdir(self.path("debug"))
        subprocess.run(["objcopy", "--only-keep-debug", self.program, self.path("debug", "program.debug")], check=True)
        subprocess.run(["strip", self.program], check=True)
        subprocess.run([GREENPROF, "run", "-q", "-o", self.capture, self.program, "300000000"], check=True,
                       env=self.environment, stdin=subprocess.DEVNULL, timeout=300)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def greenprof(self, *arguments, status=0):
        result = subprocess.run([GREENPROF, *arguments], env=self.environment, capture_output=True, text=True, timeout=300,
                                stdin=subprocess.DEVNULL)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stdout + result.stderr

    def serve(self):
        """The server's URL, when it has read the debug file. Another program may take its port first."""
        for _ in range(10):
            url = self.start_server()
            if url:
                return url
        self.fail("debuginfod has no debug file: " + open(self.path("log"), encoding="utf-8").read())

    def start_server(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        log = open(self.path("log"), "wb")
        self.addCleanup(log.close)
        server = subprocess.Popen(["debuginfod", "-F", "-p", str(port), "-d", self.path("index.sqlite"), "-t", "1",
                                   self.path("debug")], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                  env=self.environment)
        self.addCleanup(self.stop, server)
        url, build = f"http://127.0.0.1:{port}", self.build_id()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        for _ in range(600):
            try:
                with opener.open(f"{url}/buildid/{build}/debuginfo", timeout=10) as answer:
                    answer.read()
                return url
            except OSError:
                if server.poll() is not None:
                    return None
                time.sleep(0.1)
        return None

    @staticmethod
    def stop(server):
        server.send_signal(signal.SIGKILL)
        server.wait()

    def build_id(self):
        notes = subprocess.run(["readelf", "-n", self.program], capture_output=True, text=True, check=True).stdout
        return notes.partition("Build ID: ")[2].split()[0]

    def row(self, text):
        """(addresses, without a name, without a name now, build-id, what happened) of the program"""
        line, = [line for line in text.splitlines() if self.program in line and "greenprof:" not in line]
        places, nameless, now, _, build, *outcome = line.split()
        return int(places), int(nameless), int(now), build, " ".join(outcome)

    def test_names_later(self):
        places, nameless, now, build, outcome = self.row(self.greenprof("symbolize", self.capture))
        self.assertEqual((nameless, now, build, outcome), (places, places, self.build_id(), ""))
        self.assertNotIn("spin_in_a_loop", self.greenprof("report", self.capture))
        self.assertFalse(os.path.exists(self.path(".cache")), "nothing is fetched unless it is asked for")

        url = self.serve()
        nameless, now, _, outcome = self.row(self.greenprof("symbolize", "--debuginfod", url, self.capture))[1:]
        self.assertEqual((nameless, now, outcome), (places, 0, "fetched"))
        self.assertIn("spin_in_a_loop", self.greenprof("report", self.capture))
        self.assertIn("spin_in_a_loop", self.greenprof("export", "-f", "folded", self.capture))
        os.unlink(self.program)
        self.assertIn("spin_in_a_loop", self.greenprof("report", self.capture), "without the program as well")

        shutil.rmtree(self.path(".cache"))
        self.environment.update(DEBUGINFOD_CACHE_PATH=self.path("elsewhere"), DEBUGINFOD_URLS=url)
        self.greenprof("symbolize", "--debuginfod", "env", self.capture)
        self.assertIn("spin_in_a_loop", self.greenprof("report", self.capture))

    def test_store(self):
        """Stacks of a store get their names; what they weigh stays."""
        named = ("SELECT sum(weight_ns) FROM greenprof_samples ANY INNER JOIN (SELECT stack, argMin(names, "
                 "arrayCount(x -> x != '', builds)) AS names FROM greenprof_stacks GROUP BY stack) USING stack "
                 "WHERE has(names, 'spin_in_a_loop')")
        store = clickhouse_server.Database()
        self.addCleanup(store.close)
        store.make()
        self.greenprof("ship", "--once", "--state", self.path("state"), "--to", store.url("?tenant=it's"), self.capture)
        weight, = store.query("SELECT sum(weight_ns) FROM greenprof_samples")
        self.assertEqual(store.query(named), [["0"]])
        self.assertRegex(self.greenprof("symbolize", store.url("?tenant=other")), "^0 stacks without some names, 0 of")
        self.assertRegex(self.greenprof("symbolize", store.url()), r"^[1-9]\d* stacks without some names, 0 of them")
        # More than goes in one statement: names are put in before all stacks have been taken.
        store.query("INSERT INTO greenprof_stacks SELECT tenant, stack + number + 1, names, files, lines, modules, addresses, builds, inlined "
                    "FROM greenprof_stacks CROSS JOIN (SELECT number FROM numbers(20000)) WHERE tenant = 'it\\'s' AND "
                    f"stack = (SELECT any(stack) FROM greenprof_stacks WHERE has(builds, '{self.build_id()}'))")
        said = self.greenprof("symbolize", "--debuginfod", self.serve(), store.url("?tenant=it's"))
        self.assertRegex(said, r"^[1-9]\d* stacks without some names, 2\d{4} of them have more now; 1 debug files fetched")
        self.assertEqual(store.query("SELECT sum(weight_ns) FROM greenprof_samples"), [weight])
        self.assertGreater(int(store.query(named)[0][0]) * 2, int(weight[0]))
        row, = store.query("SELECT any(files[indexOf(names, 'spin_in_a_loop')]), any(lines[indexOf(names, 'main')]) "
                           "FROM greenprof_stacks WHERE has(names, 'spin_in_a_loop')")
        self.assertEqual((row[0], row[1] != "0"), (self.path("program.c"), True))
        self.assertIn("colour: unknown option", self.greenprof("symbolize", store.url("?colour=red"), status=1))
        self.greenprof("symbolize", store.url(port=1), status=1)

    def test_failures(self):
        said = self.greenprof("symbolize", "--debuginfod", "env", self.capture, status=1)
        self.assertIn("DEBUGINFOD_URLS is not set", said)
        with socket.socket() as closed:  # bound, and nobody listens
            closed.bind(("127.0.0.1", 0))
            said = self.greenprof("symbolize", "--debuginfod", f"http://127.0.0.1:{closed.getsockname()[1]}", self.capture,
                                  status=1)
        self.assertIn("cannot be asked for at http://127.0.0.1", said)
        self.assertEqual(self.row(said)[4], "not fetched")
        shutil.rmtree(self.path(".cache"), ignore_errors=True)
        with open(self.path("text"), "w", encoding="ascii") as file:
            file.write("no capture\n")
        self.assertIn("text:", self.greenprof("symbolize", self.path("text"), status=1))
        self.assertIn("missing FILE", self.greenprof("symbolize", status=2))


if __name__ == "__main__":
    if b"--debuginfod" not in subprocess.run([GREENPROF, "symbolize", "--help"], capture_output=True, check=True).stdout:
        print("SKIP: there is no --debuginfod")
        sys.exit(77)
    for tool in ("debuginfod", "gcc", "objcopy", "strip", "readelf"):
        if shutil.which(tool) is None:
            print(f"SKIP: {tool} is not installed")
            sys.exit(77)
    unittest.main()
