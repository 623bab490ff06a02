# SPDX-License-Identifier: MIT
"""The exporters' output: against golden files, and through the programs that read it.

usage: test_formats.py WRITE_EXAMPLE GOLDEN-DIRECTORY
With UPDATE_GOLDEN=1 in the environment the golden files are written anew: look at the difference before it is committed.
"""
import contextlib, io, marshal, os, pstats, re, shutil, subprocess, sys, tempfile, unittest
import xml.etree.ElementTree as ElementTree

WRITE_EXAMPLE, GOLDEN = sys.argv[1], sys.argv[2]
SVG = "{http://www.w3.org/2000/svg}"


def write(report, form):
    return subprocess.run([WRITE_EXAMPLE, report, form], check=True, capture_output=True).stdout


def printed(stats, method, *arguments):
    out = io.StringIO()
    stats.stream = out
    getattr(stats, method)(*arguments)
    return out.getvalue()


class Golden(unittest.TestCase):
    maxDiff = None

    def check(self, report, form, name, cut=lambda text: text):
        path = os.path.join(GOLDEN, name)
        got = cut(write(report, form))
        if os.environ.get("UPDATE_GOLDEN"):
            with open(path, "wb") as file:
                file.write(got)
        with open(path, "rb") as file:
            self.assertEqual(got.decode("utf8"), file.read().decode("utf8"))

    def test_folded(self):
        self.check("example", "folded", "example.folded")

    def test_flamegraph(self):
        # Style and script are files of their own.
        strip = lambda text: re.sub(rb"<!\[CDATA\[.*?\]\]>", b"", text, flags=re.S)
        self.check("example", "flamegraph", "example.svg", strip)

    def test_pstats(self):
        as_text = lambda data: "\n".join(f"{key!r}: {value!r}" for key, value in
                                         sorted(marshal.loads(data).items())).encode()
        self.check("example", "pstats", "example.prof.txt", as_text)


class Folded(unittest.TestCase):
    def test_reads_back(self):
        text = write("example", "folded").decode("utf8")
        self.assertTrue(text.endswith("\n"))
        total = 0
        for line in text.splitlines():
            stack, weight = line.rsplit(" ", 1)
            self.assertRegex(weight, r"^[1-9][0-9]*$")
            self.assertNotRegex(line, r"[\x00-\x1f\x7f]")
            self.assertTrue(all(stack.split(";")))
            total += int(weight)
        self.assertEqual(total, 1000000)  # 1.0000003 s

    def test_lines_are_distinct(self):
        stacks = [line.rsplit(" ", 1)[0] for line in write("example", "folded").decode().splitlines()]
        self.assertEqual(len(stacks), len(set(stacks)))

    def test_readers_of_two_columns(self):
        """flamegraph.pl takes a second number at the end of the stack for the weight of another program."""
        lines = write("odd", "folded").decode().splitlines()
        self.assertEqual(len(lines), 7)
        for line in lines:
            stack = re.match(r"^(.*)\s+?(\d+(?:\.\d*)?)$", line)[1]
            self.assertIsNone(re.match(r"^(.*)\s+?(\d+(?:\.\d*)?)$", stack), line)
        self.assertIn("main;ends in_12 1000", lines)

    def test_empty(self):
        self.assertEqual(write("empty", "folded"), b"")

    def test_huge(self):
        self.assertEqual(write("huge", "folded"), b"main;fib 9100000000000000\n")


class Pstats(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def dump(self, report):
        path = os.path.join(self.directory.name, report + ".prof")
        with open(path, "wb") as file:
            file.write(write(report, "pstats"))
        return path

    def test_shape(self):
        for (file, line, name), (cc, nc, tt, ct, callers) in marshal.loads(write("example", "pstats")).items():
            self.assertIsInstance(file, str)
            self.assertIsInstance(line, int)
            self.assertIsInstance(name, str)
            self.assertLessEqual(cc, nc)
            self.assertLessEqual(tt, ct + 1e-12)
            self.assertIsInstance(callers, dict)
            for value in callers.values():
                self.assertEqual(len(value), 4)
                self.assertGreaterEqual(value[0], value[1])  # nc before cc, unlike in the function's tuple

    def test_numbers(self):
        stats = pstats.Stats(self.dump("example"))
        self.assertAlmostEqual(stats.total_tt, 1.0000003, places=9)
        cc, nc, tt, ct, callers = stats.stats[("/src/fib.c", 2, "fib")]
        self.assertEqual((cc, nc), (800, 1800))
        self.assertAlmostEqual(tt, 0.8000004)
        self.assertAlmostEqual(ct, 0.8000004)
        self.assertEqual(callers[("/src/app/main.c", 20, "main")][:2], (800, 800))
        self.assertEqual(callers[("/src/fib.c", 2, "fib")][:2], (1000, 0))
        self.assertIn(("~", 0, "[switching]"), stats.stats)
        self.assertIn(("~", 0, "[call counts are numbers of samples]"), stats.stats)

    def test_prints(self):
        stats = pstats.Stats(self.dump("example"))
        for key in ("calls", "cumulative", "filename", "line", "name", "nfl", "pcalls", "stdname", "time"):
            text = printed(stats.sort_stats(key), "print_stats")
            self.assertIn("/src/fib.c:2(fib)", text)
        self.assertIn("1800/800", text)
        self.assertIn("main", printed(stats, "print_callers", "fib"))
        self.assertIn("fib", printed(stats, "print_callees", "main"))
        stats.strip_dirs()
        self.assertIn("fib.c:2(fib)", printed(stats, "print_stats"))
        self.assertGreater(len(stats.get_stats_profile().func_profiles), 5)

    def test_shell(self):
        out = subprocess.run(["/usr/bin/python3", "-m", "pstats", self.dump("example")], text=True,
                             input="sort cumtime\nstats 10\ncallers fib\nquit\n", capture_output=True)
        self.assertEqual(out.returncode, 0)
        self.assertIn("/src/fib.c:2(fib)", out.stdout)
        self.assertNotIn("Traceback", out.stdout + out.stderr)

    def test_add(self):
        import cProfile
        path, other = self.dump("example"), os.path.join(self.directory.name, "c.prof")
        twice = pstats.Stats(path).add(path)
        self.assertAlmostEqual(twice.total_tt, 2.0000006)
        self.assertEqual(twice.stats[("/src/fib.c", 2, "fib")][:2], (1600, 3600))
        self.assertEqual(twice.stats[("/src/fib.c", 2, "fib")][4][("/src/fib.c", 2, "fib")][:2], (2000, 0))
        profile = cProfile.Profile()
        profile.runcall(sorted, [3, 1, 2])
        profile.dump_stats(other)
        printed(pstats.Stats(path).add(other), "print_callers")
        printed(pstats.Stats(other).add(path), "print_callers")

    def test_like_snakeviz(self):
        # What SnakeViz's stats.json_stats() does with every entry.
        for key, (cc, nc, tt, ct, callers) in pstats.Stats(self.dump("example")).stats.items():
            [list(value) for value in callers.values()]
            (nc and tt / nc, cc and ct / cc)

    def test_empty_and_huge(self):
        empty = pstats.Stats(self.dump("empty"))
        self.assertEqual(empty.total_tt, 0)
        printed(empty, "print_stats")
        huge = pstats.Stats(self.dump("huge"))
        self.assertEqual(huge.stats[("/src/fib.c", 2, "fib")][1], 5000000000)
        printed(huge, "print_stats")

    @unittest.skipUnless(shutil.which("pyprof2calltree"), "pyprof2calltree is not installed")
    def test_pyprof2calltree(self):
        out = os.path.join(self.directory.name, "callgrind.out")
        subprocess.run(["pyprof2calltree", "-i", self.dump("example"), "-o", out], check=True, capture_output=True)
        with open(out) as file:
            self.assertIn("fib", file.read())


class Flamegraph(unittest.TestCase):
    def parse(self, report):
        return ElementTree.fromstring(write(report, "flamegraph"))

    def frames(self, report):
        for group in self.parse(report).find(f"{SVG}g[@id='frames']"):
            rect = group.find(f"{SVG}rect")
            title = group.find(f"{SVG}title").text.split("\n")
            yield title[0], title[1:], float(rect.get("x")), float(rect.get("width")), float(rect.get("y")), group

    def test_widths(self):
        by_name = {}
        for name, about, x, width, y, group in self.frames("example"):
            by_name.setdefault(name, []).append((x, width, y))
            self.assertGreaterEqual(x, 10)
            self.assertLessEqual(x + width, 1190.001)
            self.assertGreaterEqual(width, 0.1)
        self.assertAlmostEqual(by_name["all"][0][1], 1180, places=3)
        self.assertAlmostEqual(sum(width for _, width, _ in by_name["main"]), 1180 * 0.995002, places=1)
        # Callees lie within their caller, one row above.
        main = by_name["main"][0]
        fib = max(by_name["fib"], key=lambda place: place[2])
        self.assertEqual(main[2] - fib[2], 17)
        self.assertGreaterEqual(fib[0], main[0] - 0.001)
        self.assertLessEqual(fib[0] + fib[1], main[0] + main[1] + 0.001)

    def test_rows_do_not_overlap(self):
        rows = {}
        for name, about, x, width, y, group in self.frames("example"):
            rows.setdefault(y, []).append((x, width))
        for row in rows.values():
            row.sort()
            for (x, width), (next_x, _) in zip(row, row[1:]):
                self.assertLessEqual(x + width, next_x + 0.001)

    def test_text_fits(self):
        for name, about, x, width, y, group in self.frames("example"):
            text = group.find(f"{SVG}text")
            if text is not None:
                self.assertLessEqual(len(text.text) * 6.65, width)

    def test_details(self):
        details = {name: about for name, about, *_ in self.frames("example")}
        self.assertEqual(details["parse<std::map<int, char const*> >(a; b)"],
                         ["100.000 ms, 10.00 %, 100 samples", "/src/app/parse.cc:5", "/opt/app/server"])
        self.assertIn("]]></script><script>alert(1)</script>", details)

    def test_kinds(self):
        kinds = {name: group.get("class")[0] for name, *_, group in self.frames("example")}
        self.assertEqual(kinds["main"], "a")
        self.assertEqual(kinds["na\u00efve \"quoted\" <&>"], "l")
        self.assertEqual(kinds["clock_gettime"], "k")
        self.assertEqual(kinds["[switching]"], "p")
        self.assertEqual(kinds["[coroutine 2 \u65e5\u672c\u8a9e]"], "g")

    def test_is_self_contained(self):
        text = write("example", "flamegraph").decode("utf8")
        addresses = set(re.findall(r"https?://[^\"' )]+", text))
        self.assertEqual(addresses, {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"})
        self.assertNotIn("<script>alert", text)

    def test_empty(self):
        self.assertIn("no samples", "".join(self.parse("empty").itertext()))
        self.assertEqual(list(self.frames("empty")), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
