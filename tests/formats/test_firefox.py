# SPDX-License-Identifier: MIT
"""Firefox Profiler files: their tables, and what the profiler's own reader makes of them.

usage: test_firefox.py WRITE_REPORT GREENPROF MAKE_CAPTURE DUMP_ALL NPM-DIRECTORY
"""
import json, sys

import firefox_reader, support

NPM = sys.argv[5]


class Tables(support.Files):
    form = "firefox"

    def load(self, path):
        with open(path, "rb") as file:
            data = file.read()
        self.assertNotIn(b"</script>", data)
        profile = json.loads(data)
        self.assertEqual(profile["meta"]["preprocessedProfileVersion"], 60)
        shared = profile["shared"]
        for name in ("sources", "stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols"):
            self.check_columns(shared[name])
        self.check_indices(shared)
        for thread in profile["threads"]:
            self.check_columns({key: value for key, value in thread["samples"].items() if key != "weightType"})
            self.check_columns(thread["markers"])
            self.assertEqual(set(thread["samples"]["time"]) - {0}, set())  # sums know no times
            self.assertTrue(all(stack < shared["stackTable"]["length"] for stack in thread["samples"]["stack"]))
        return profile

    def check_columns(self, table):
        for name, values in table.items():
            if name != "length":
                self.assertEqual(len(values), table["length"], name)

    def check_indices(self, shared):
        texts = len(shared["stringArray"])
        for number, prefix in enumerate(shared["stackTable"]["prefix"]):
            self.assertTrue(prefix is None or prefix < number)  # a reader hangs where it is not
        self.assertTrue(all(frame < shared["frameTable"]["length"] for frame in shared["stackTable"]["frame"]))
        self.assertTrue(all(func < shared["funcTable"]["length"] for func in shared["frameTable"]["func"]))
        self.assertTrue(all(text < texts for text in shared["funcTable"]["name"] + shared["sources"]["filename"]))
        self.assertTrue(all(source is None or source < shared["sources"]["length"]
                            for source in shared["funcTable"]["source"]))

    def total_ns(self, thread):
        return sum(round(weight * 1000000) for weight in thread["samples"]["weight"])

    def test_labelled_golden(self):
        with open(self.report("labelled"), encoding="utf8") as file:
            self.check_golden("labelled.firefox.json", file.read())

    def test_threads(self):
        profile = self.load(self.report("labelled"))
        self.assertEqual([(thread["name"], self.total_ns(thread)) for thread in profile["threads"]],
                         [("CPU time", 899000001), ('coroutine 42 fetch "\u65e5" </script>', 700000001),
                          ("[thread main]", 140000000), ("coroutine 9007199254740993", 50000000)])

    def test_capture(self):
        profile = self.load(self.export())
        self.assertEqual(self.total_ns(profile["threads"][0]), 4600000)
        self.assertEqual(round(self.total_ns(profile["threads"][0]) / 1000), self.folded_total_us())
        self.assertEqual({thread["pid"] for thread in profile["threads"]}, 
                         {str(json.loads(support.run(support.GREENPROF, "info", "--json", self.path("test.greenprof")))["pid"])})

    def test_wall_clock(self):
        """What weights are is said: it is not CPU time always."""
        self.assertEqual([self.load(self.export("--clock", clock))["threads"][0]["name"] for clock in ("cpu", "wall")],
                         ["CPU time", "wall-clock time"])

    def test_empty(self):
        for path in (self.report("empty"), self.export(script=support.NO_SAMPLES)):
            self.assertEqual(self.load(path)["threads"][0]["samples"]["length"], 0)

    def test_huge(self):
        self.load(self.report("huge"))

    def test_in_process(self):
        total_ns, path = self.dumps()
        profile = self.load(path)
        self.assertEqual([self.total_ns(thread) for thread in profile["threads"]], [total_ns])

    def test_full_disk(self):
        self.expect_no_partial_output()


class Reader(support.Files):
    def open(self, path):
        profiler = firefox_reader.Profiler(path, NPM, self.directory)
        self.addCleanup(profiler.stop)
        return profiler

    def check(self, weights, expected_ns):
        self.assertEqual({name: round(weight * 1000000) for name, weight in weights.items()}, expected_ns)

    def test_labelled(self):
        profiler = self.open(self.report("labelled", "firefox"))
        evil = "]]></script><script>alert('1;2')</script>\n\"\\ \ufffd\ufffd("
        self.check(profiler.self_weights("t-0"),
                   {"main": 1, "b": 600000000, "inner": 200000000, evil: 50000000, "[switching]": 40000000,
                    "0x7f0000001000": 9000000})
        self.check(profiler.self_weights("t-1"), {"main": 1, "b": 500000000, "inner": 200000000})
        self.assertIn('coroutine 42 fetch "\u65e5" </script>', profiler.threads())


support.main()
