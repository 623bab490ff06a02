# SPDX-License-Identifier: MIT
"""pstats files, read by pstats itself and by the programs that build on it."""
import cProfile, io, marshal, pstats, shutil, subprocess, unittest

import support


def printed(stats, method, *arguments):
    out = io.StringIO()
    stats.stream = out
    getattr(stats, method)(*arguments)
    return out.getvalue()


class Pstats(support.Files):
    form = "pstats"

    def test_golden(self):
        rows = sorted(marshal.loads(self.written("example")).items())
        self.check_golden("example.prof.txt", "\n".join(f"{key!r}: {value!r}" for key, value in rows))

    def test_shape(self):
        for (file, line, name), (cc, nc, tt, ct, callers) in marshal.loads(self.written("example")).items():
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
        stats = pstats.Stats(self.report("example"))
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
        stats = pstats.Stats(self.report("example"))
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
        out = subprocess.run(["/usr/bin/python3", "-m", "pstats", self.report("example")], text=True,
                             input="sort cumtime\nstats 10\ncallers fib\nquit\n", capture_output=True)
        self.assertEqual(out.returncode, 0)
        self.assertIn("/src/fib.c:2(fib)", out.stdout)
        self.assertNotIn("Traceback", out.stdout + out.stderr)

    def test_add(self):
        path, other = self.report("example"), self.path("c.prof")
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
        # SnakeViz's stats.json_stats() does the same with every entry.
        for key, (cc, nc, tt, ct, callers) in pstats.Stats(self.report("example")).stats.items():
            [list(value) for value in callers.values()]
            (nc and tt / nc, cc and ct / cc)

    def test_empty_and_huge(self):
        empty = pstats.Stats(self.report("empty"))
        self.assertEqual(empty.total_tt, 0)
        printed(empty, "print_stats")
        huge = pstats.Stats(self.report("huge"))
        self.assertEqual(huge.stats[("/src/fib.c", 2, "fib")][1], 5000000000)
        printed(huge, "print_stats")

    @unittest.skipUnless(shutil.which("pyprof2calltree"), "pyprof2calltree is not installed")
    def test_pyprof2calltree(self):
        out = self.path("callgrind.out")
        subprocess.run(["pyprof2calltree", "-i", self.report("example"), "-o", out], check=True, capture_output=True)
        with open(out) as file:
            self.assertIn("fib", file.read())


support.main(partial=0)
