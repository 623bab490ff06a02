# SPDX-License-Identifier: MIT
"""Speedscope files: their shape, and what Speedscope itself reads from them and from the other formats that it reads.

usage: test_speedscope.py WRITE_REPORT GREENPROF MAKE_CAPTURE DUMP_ALL NPM-DIRECTORY
"""
import json, sys

import speedscope_reader, support

NPM = sys.argv[5]
EXAMPLE_SELF = {  # own ns of each function of the report `example`
    "fib": 800000400, "parse<std::map<int, char const*> >(a; b)": 100000400, 'na\u00efve "quoted" <&>': 60000400,
    "server+0x1234": 20000400, "clock_gettime": 15000700, "[switching]": 4998000}


class Shape(support.Files):
    form = "speedscope"

    def load(self, path):
        with open(path, "rb") as file:
            data = file.read()
        self.assertNotIn(b"</script>", data)
        self.assertNotIn(b"<!", data)
        group = json.loads(data)
        count = len(group["shared"]["frames"])
        for profile in group["profiles"]:
            self.assertEqual((profile["type"], profile["unit"]), ("sampled", "nanoseconds"))
            self.assertEqual(len(profile["samples"]), len(profile["weights"]))
            self.assertEqual(profile["endValue"] - profile["startValue"], sum(profile["weights"]))
            self.assertTrue(all(stack and all(0 <= frame < count for frame in stack) for stack in profile["samples"]))
        return group

    def test_labelled_golden(self):
        with open(self.report("labelled"), encoding="utf8") as file:
            self.check_golden("labelled.speedscope.json", file.read())

    def test_coroutines(self):
        group = self.load(self.report("labelled"))
        self.assertEqual([(profile["name"], profile["endValue"]) for profile in group["profiles"]],
                         [("CPU time in ns, by weight", 899000001), ('coroutine 42 fetch "\u65e5" </script>', 700000001),
                          ("[thread main]", 140000000), ("coroutine 9007199254740993", 50000000)])

    def test_heaviest_coroutines(self):
        script = "thread 1 10 1 0 main\nstack 1 0 1:10\n" + "".join(
            f"coro {i} 0 - 0x{i}000 0x1000 2 0 c{i}\nsample {i} {i} {i} 1 1 0\n" for i in range(1, 101))
        profiles = self.load(self.export(script=script))["profiles"]
        self.assertEqual([profile["endValue"] for profile in profiles], [5050, *range(100, 50, -1)])
        self.assertEqual(profiles[1]["name"], "coroutine 100 c100")

    def test_capture(self):
        group = self.load(self.export())
        self.assertEqual(round(group["profiles"][0]["endValue"] / 1000), self.folded_total_us())
        self.assertEqual(group["name"], "server")
        self.assertEqual({profile["name"] for profile in group["profiles"]},
                         {"CPU time in ns, by weight", "[thread main]", "coroutine 2 server+0x40", 'coroutine 3 wor"k;er'})

    def test_empty(self):
        for path in (self.report("empty"), self.export(script=support.NO_SAMPLES)):
            self.assertEqual(self.load(path)["profiles"][0]["samples"], [])

    def test_huge(self):
        self.assertEqual(self.load(self.report("huge"))["profiles"][0]["endValue"], 9100000000000000007)

    def test_in_process(self):
        total_ns, path = self.dumps()
        self.assertEqual([profile["endValue"] for profile in self.load(path)["profiles"]], [total_ns])

    def test_full_disk(self):
        self.expect_no_partial_output()


class Reader(support.Files):
    """One start of the browser for all files."""

    def check(self, group, expected, profile=0):
        self.assertNotIsInstance(group, str, group)
        self.assertEqual(speedscope_reader.self_weights(group, group["profiles"][profile]), expected)

    def test_all(self):
        forms = ("speedscope", "pprof", "callgrind", "folded")
        files = [self.report("example", form) for form in forms]
        files += [self.report("labelled", form) for form in forms] + [self.report("empty", "speedscope")]
        groups = speedscope_reader.load(files, NPM)
        speedscope, pprof, callgrind, folded, *labelled, empty = groups
        for group in (speedscope, pprof):
            self.check(group, EXAMPLE_SELF)
        # callgrind has no stacks: a reader divides a callee's own time by its callers' shares.
        self.check(callgrind, {**EXAMPLE_SELF, 'na\u00efve "quoted" <&>': 60000700, "clock_gettime": 15000400})
        self.assertEqual(sum(speedscope_reader.self_weights(folded, folded["profiles"][0]).values()), 1000000)
        self.check_labelled(*labelled)
        self.check(empty, {})

    def check_labelled(self, speedscope, pprof, callgrind, folded):
        evil = "]]></script><script>alert('1;2')</script>\n\"\\ \ufffd\ufffd("
        expected = {"main": 1, "b": 600000000, "inner": 200000000, evil: 50000000, "[switching]": 40000000,
                    "0x7f0000001000": 9000000}
        self.check(speedscope, expected)
        # Speedscope shows the outermost function of a pprof file at one address.
        self.check(pprof, {"outer" if name == "inner" else name: weight for name, weight in expected.items()})
        self.check(callgrind, {name.replace("\n", " "): weight for name, weight in expected.items()})
        self.check(speedscope, {"main": 1, "b": 500000000, "inner": 200000000}, profile=1)
        self.assertEqual(speedscope["profiles"][1]["name"], 'coroutine 42 fetch "\u65e5" </script>')


support.main()
