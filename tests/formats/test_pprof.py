# SPDX-License-Identifier: MIT
"""pprof files, read by `go tool pprof`, which refuses what is not right."""
import gzip, os, re, shutil, subprocess, unittest

import support

GO = shutil.which("go")


def pprof(path, *options):
    environment = dict(os.environ, HOME=os.path.dirname(path), PPROF_TMPDIR=os.path.dirname(path), GOFLAGS="")
    return support.run(GO, "tool", "pprof", *options, path, env=environment).decode("utf8")


class Pprof(support.Files):
    form = "pprof"

    def rows(self, path):
        """(samples, ns, location numbers) of each sample, as -raw lists them."""
        text = pprof(path, "-raw").split("Samples:\n", 1)[1].split("\nLocations", 1)[0]
        return [(int(a), int(b), [int(i) for i in c.split()])
                for a, b, c in re.findall(r"^ *(\d+) +(\d+): ([\d ]+)$", text, re.M)]

    def total_ns(self, path):
        return sum(ns for _, ns, _ in self.rows(path))

    def test_labelled_golden(self):
        text = pprof(self.report("labelled"), "-raw")
        self.check_golden("labelled.pprof.txt", text)

    def test_example(self):
        path = self.report("example")
        self.assertEqual(self.total_ns(path), 1000000300)
        self.assertEqual(sum(count for count, _, _ in self.rows(path)), 1000)
        top = pprof(path, "-top", "-nodecount=50", "-nodefraction=0")
        self.assertIn("Type: cpu", top)
        self.assertLess(top.splitlines().index(next(line for line in top.splitlines() if "flat%" in line)), 7, "the table begins at once")
        self.assertRegex(top, r"800ms 80.00% 80.00% +800ms 80.00%  fib")  # recursion counts once
        self.assertIn("parse<std::map<int, char const*> >(a; b)", top)     # a C++ name as it is
        self.assertRegex(pprof(path, "-top", "-sample_index=samples"), r"800 80.00% .* fib")

    def test_inlined(self):
        path = self.report("labelled")
        raw = pprof(path, "-raw")
        where = raw.index("0x400400")
        self.assertRegex(raw[where:], r"^0x400400 M=1 inner /src/in.h:3 s=1\(\)\n +middle /src/in.h:9 s=8\(\)\n"
                                      r" +outer /src/in.c:50 s=40\(\)\n")
        self.assertIn((200, 200000000), [(count, ns) for count, ns, places in self.rows(path) if len(places) == 2])
        self.assertRegex(pprof(path, "-top", "-cum"), r"(?m) 0 +0% .* 200000000ns 22.25%  outer$")

    def test_labels(self):
        path = self.report("labelled")
        tags = pprof(path, "-tags")
        self.assertRegex(tags, r"500\.0ms .*: " + support.TRACE)
        self.assertIn('700.0ms', tags.split("coroutine_id:")[1])
        self.assertIn("coroutine_id:[9007199254740993]", pprof(path, "-raw"))
        focused = pprof(path, "-raw", "-tagfocus=trace_id=" + support.TRACE)
        self.assertEqual(sum(map(int, re.findall(r"^ *\d+ +(\d+): ", focused, re.M))), 500000001)
        self.assertRegex(pprof(path, "-top", "-tagfocus=coroutine_id=1:1"), r"140ms")
        self.assertRegex(pprof(path, "-tree", "-tagroot=thread"), "main")

    def test_capture(self):
        path = self.export()
        self.assertEqual(sum(count for count, _, _ in self.rows(path)), 5)
        self.assertEqual(self.total_ns(path), 4600000)
        self.assertEqual(round(self.total_ns(path) / 1000), self.folded_total_us())
        raw = pprof(path, "-raw")
        self.assertIn("0x401010 M=1 server+0x1010", raw)  # bias 0x400000
        self.assertIn("1: 0x401000/0x409000/0x0 /opt/app/server 0102 [FN][FL][LN][IN]", raw)
        self.assertIn('coroutine:[wor"k;er] thread:[pool-1] trace_id:[' + support.TRACE, raw)
        self.assertIn("coroutine:[[thread main]] thread:[main]\n", raw)
        self.assertIn("drop_ring_full=3", raw)

    def test_filters(self):
        path = self.export("--trace", support.TRACE)
        self.assertEqual(sum(count for count, _, _ in self.rows(path)), 3)
        self.assertIn("[coroutine 2 server+0x40]", pprof(self.export("--by", "coroutine"), "-raw"))

    def test_empty(self):
        for path in (self.report("empty"), self.export(script=support.NO_SAMPLES)):
            self.assertEqual(self.rows(path), [])
            self.assertIn("0 total", pprof(path, "-top"))

    def test_huge(self):
        self.assertEqual(self.total_ns(self.report("huge")), 9100000000000000007)

    def test_is_reproducible_gzip(self):
        with open(self.report("labelled"), "rb") as first, open(self.report("labelled"), "rb") as second:
            data = first.read()
            self.assertEqual(data, second.read())
        self.assertEqual(data[4:8], b"\0\0\0\0")  # no time
        gzip.decompress(data)

    def test_in_process(self):
        total_ns, path = self.dumps()
        self.assertEqual(self.total_ns(path), total_ns)
        self.assertRegex(pprof(path, "-top", "-cum"), r"(?m) main$")
        self.assertNotIn("coroutine:", pprof(path, "-raw"))
        self.assertRegex(pprof(path, "-raw"), r"M=1 burn\S* .*dump_all\.c:\d+ s=\d+")

    def test_full_disk(self):
        self.expect_no_partial_output()


if GO is None or subprocess.run([GO, "tool", "pprof", "-h"], capture_output=True).returncode not in (0, 2):
    support.skip("there is no 'go tool pprof'")
support.main()
