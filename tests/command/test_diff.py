# SPDX-License-Identifier: MIT
"""diff: changes, their errors, and what is called significant.

usage: test_diff.py GREENPROF MAKE_CAPTURE RECORDER.so WORK-DIRECTORY
"""
import collections, json, math, os, random, re, shutil, sys, unittest

from support import Command, main, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../page"))
from browser import Browser
from page_data import read_page, stacks_of

HEAD = """header realtime=1790000000000000000 pid={pid}
meta exe /opt/app/server
module 1 /opt/app/server 0102 0x1000 0x9000 0x0
thread 1 10 1 0 main
coro 1 0 - 0x1000 0x1000 1 1 -
coro 2 1 - 0x3000 0x1000 2 0 one
coro 3 1 - 0x5000 0x1000 2 0 two
trace 1 4bf92f3577b34da6a3ce929d0e0e4736
trace 2 00000000000000000000000000000002
trace 3 00000000000000000000000000000003
"""
NUMBER = r"([+-]?[0-9.]+)"
ROW = re.compile(rf"^ *{NUMBER} +{NUMBER} +{NUMBER} \+- *{NUMBER}(.)  +{NUMBER} +{NUMBER} +{NUMBER} \+- *{NUMBER}(.)  (\S+)", re.M)


def capture(samples, pid=1, exact_ns=None):
    """samples: (stack as a list of offsets, weight in ns, coroutine, trace), 1 ms apart."""
    stacks = {}
    lines, total = [], 0
    for i, (stack, weight, coro, trace) in enumerate(samples):
        number = stacks.setdefault(tuple(stack), len(stacks) + 1)
        lines.append(f"sample {(i + 1) * 1000000} {weight} {coro} 1 {number} {trace}")
        total += weight
    defined = [f"stack {number} 0 " + " ".join(f"1:{offset:x}" for offset in stack) for stack, number in stacks.items()]
    end = len(samples) * 1000000
    return HEAD.format(pid=pid) + "\n".join(defined + lines) + f"\ncounters {end} {exact_ns or total} 0 1 1 0 0 0 0 0\nend {end} 0\n"


def requests(latencies_ms, name="GET /x", failed=()):
    """A capture of requests, one after the other, a trace and a coroutine each."""
    lines = ["header realtime=1790000000000000000 pid=1", "meta exe /opt/app/server", "module 1 /opt/app/server 0102 0x1000 0x9000 0x0",
             "thread 1 10 1 0 main", "coro 1 0 - 0x1000 0x1000 1 1 -", "stack 1 0 1:10"]
    at = 0
    for number, ms in enumerate(latencies_ms, 1):
        start, at = at, at + round(ms * 1e6)
        lines += [f"coro {number + 1} 1 - 0x3000 0x1000 2 0 handler", f"trace {number} {number:032x}",
                  f"span {number} 0 {number + 1} {number + 1} {start} {at} {number} 3 {16 if number in failed else 0} {name}"]
    return "\n".join(lines) + f"\nend {at} 0\n"


class Endpoints(Command):
    def rows(self, base, file, *arguments):
        paths = self.make("base", base), self.make("file", file)
        return {row["endpoint"]: row for row in json.loads(self.succeed("diff", *paths, "--by", "endpoint", "--json", *arguments))["rows"]}

    def test_figures(self):
        """As they were made: latencies of 10 to 11 ms against 20 to 22."""
        chance = random.Random(7)
        base, file = ([scale * (10 + chance.random()) for _ in range(200)] for scale in (1, 2))
        row = self.rows(requests(base, failed=(1, 2)), requests(file))["rest_dispatch GET /x"]
        self.assertEqual((row["requests"], row["failed"]), ({"base": 200, "file": 200}, {"base": 2, "file": 0}))
        for key, side, value in (("p50_ms", base, sorted(base)[99]), ("p99_ms", base, sorted(base)[197])):
            self.assertAlmostEqual(row[key]["base"], value, delta=1e-4 * value)
            self.assertGreater(row[key]["change"], 0.9 * value)
        for key in "p50_ms", "mean_ms":
            self.assertTrue(row[key]["significant"], key)
        mean = sum(base) / 200
        error = math.hypot(*((sum((x - sum(all_) / 200) ** 2 for x in all_) / 199 / 200) ** .5 for all_ in (base, file)))
        self.assertAlmostEqual(row["mean_ms"]["base"], mean, delta=1e-4 * mean)
        self.assertAlmostEqual(row["mean_ms"]["error"], error, delta=1e-3 * error)

    def test_chance(self):
        """Two runs of the same: hardly ever is anything called significant; what is on one side only, and few requests, never."""
        chance = random.Random(3)
        wrong = 0
        for _ in range(40):
            base, file = (requests([10 + chance.gauss(0, 1) for _ in range(60)]) for _ in range(2))
            row = self.rows(base, file)["rest_dispatch GET /x"]
            wrong += any(figure["significant"] for figure in row.values() if isinstance(figure, dict) and "significant" in figure)
        self.assertLessEqual(wrong, 6)
        few = self.rows(requests([1, 1.1, 1.2] * 2), requests([9, 9.1, 9.2] * 2))["rest_dispatch GET /x"]
        self.assertFalse(few["mean_ms"]["significant"])
        rows = self.rows(requests([1] * 20), requests([1] * 20, name="GET /y"))
        self.assertEqual([(name, row["p50_ms"]["base"], row["p50_ms"]["file"], row["p50_ms"]["significant"]) for name, row in sorted(rows.items())],
                         [("rest_dispatch GET /x", 1, None, False), ("rest_dispatch GET /y", None, 1, False)])

    def test_text(self):
        base, file = self.make("base", requests([10, 11] * 20)), self.make("file", requests([20, 22] * 20))
        text = self.succeed("diff", base, file, "--by", "endpoint")
        self.assertRegex(text, r"rest_dispatch GET /x\n  requests +40 +40\n  failed +0 +0\n  latency p50, ms +10\.000 +20\.000 +\+10\.000 \+- +\d+\.\d+\*?\n")
        self.assertRegex(text, r"  latency p99, ms +11\.000 +22\.000 +\+11\.000 \+- +-\n")
        self.assertNotIn("  gil", text)  # neither side has any
        self.expect(2, "--by endpoint is a table of its own", "diff", base, file, "--by", "endpoint", "--per", "second")
        self.expect(1, "has no requests", "diff", self.make("none", capture([([0x10], 1000000, 1, 0)])), file, "--by", "endpoint")


class Diff(Command):
    def diff(self, *arguments):
        rows = ROW.findall(self.succeed("diff", *arguments, "-n", "0"))
        self.assertTrue(rows)
        return {row[10].removeprefix("server+"): {"own": [float(x) for x in row[:4]], "own_sure": row[4] == "*",
                                                  "total": [float(x) for x in row[5:9]], "total_sure": row[9] == "*"} for row in rows}

    def pair(self, base, file, **options):
        return self.make("base", capture(base, 1, **options)), self.make("file", capture(file, 2, **options))

    def test_clocks(self):
        samples = [([0x10, 0x90], 1000000, 1, 0)] * 30
        base, file = self.pair(samples, samples)
        self.assertIn("\n  CPU time in % of each side's own;", self.succeed("diff", base, file))
        self.made_for_the_wall_clock(file)
        self.expect(2, "base was made for CPU time, .*file for wall-clock time: --clock must say which", "diff", base, file)
        self.assertIn("\n  CPU time in %", self.succeed("diff", base, file, "--clock", "cpu"))
        self.assertIn("\n  wall-clock time in ms;", self.succeed("diff", base, file, "--clock", "wall", "--per", "none"))
        self.assertEqual(self.page(base, file, "--clock", "wall")[0]["weight"], "wall")

    def test_values(self):
        # 60/40 of 1 s becomes 75/25 of 2 s; below a common root.
        base = [([0x10, 0x90], 1000000, 1, 0)] * 600 + [([0x20, 0x90], 1000000, 1, 0)] * 400
        file = [([0x10, 0x90], 1000000, 1, 0)] * 1500 + [([0x20, 0x90], 1000000, 1, 0)] * 500
        rows = self.diff(*self.pair(base, file))
        error = 100 * math.sqrt(.6 * .4 / 1000 + .75 * .25 / 2000)  # binomial, as all weights are equal
        for name, expected in (("0x10", [60, 75, 15]), ("0x20", [40, 25, -15])):
            self.assertEqual(rows[name]["own"][:3], expected)
            self.assertEqual(rows[name]["total"], rows[name]["own"])
            self.assertAlmostEqual(rows[name]["own"][3], error, delta=.01)
            self.assertTrue(rows[name]["own_sure"])
        self.assertEqual(rows["0x90"]["total"], [100, 100, 0, 0])
        self.assertFalse(rows["0x90"]["total_sure"])
        rows = self.diff(self.path("base"), self.path("file"), "--per", "none")
        self.assertEqual(rows["0x10"]["own"][:3], [600, 1500, 900])
        self.assertEqual(rows["0x90"]["total"], [1000, 2000, 1000, 0])  # both are exact
        rows = self.diff(self.path("base"), self.path("file"), "--per", "second")
        self.assertEqual(rows["0x10"]["own"][:3], [600, 750, 150])

    def test_unequal_weights_have_larger_errors(self):
        equal = [([0x10], 1000000, 1, 0)] * 500 + [([0x20], 1000000, 1, 0)] * 500
        few = [([0x10], 10000000, 1, 0)] * 50 + [([0x20], 1000000, 1, 0)] * 500
        rows = self.diff(*self.pair(equal, few))
        expected = 100 * math.sqrt(.25 / 1000 + (.25 * 50 * 1e14 + .25 * 500 * 1e12) / 1e18)
        self.assertEqual(rows["0x10"]["own"][:3], [50, 50, 0])
        self.assertAlmostEqual(rows["0x10"]["own"][3], expected, delta=.01)

    def random_samples(self, chance, shares, count):
        names = [0x10 * (i + 1) for i in range(len(shares))]
        return [([chance.choices(names, shares)[0], 0x990], int(chance.expovariate(1e-6)) + 1000, 1, 0) for _ in range(count)]

    def test_chance_alone_is_rarely_significant(self):
        """95 % of comparisons of equal programs show no significant function. With 80 of them, 4 wrong ones are
        expected; more than 12 have probability 0.0002."""
        chance, wrong = random.Random(5), 0
        shares = [1 / (i + 1) for i in range(20)]
        for _ in range(80):
            rows = self.diff(*self.pair(self.random_samples(chance, shares, 400), self.random_samples(chance, shares, 600)))
            wrong += any(row["own_sure"] or row["total_sure"] for row in rows.values())
        self.assertLessEqual(wrong, 12)

    def test_errors_are_the_spread(self):
        """The printed error is the spread that is seen when the same program is sampled again and again."""
        chance, changes, errors = random.Random(6), [], []
        for _ in range(60):
            row = self.diff(*self.pair(self.random_samples(chance, [3, 7], 300), self.random_samples(chance, [3, 7], 300)))["0x10"]
            changes.append(row["own"][2])
            errors.append(row["own"][3])
        spread = math.sqrt(sum(change ** 2 for change in changes) / len(changes))
        self.assertAlmostEqual(spread / (sum(errors) / len(errors)), 1, delta=.37)  # 4 / sqrt(2 * 60)

    def test_a_real_change_is_found(self):
        chance = random.Random(7)
        shares = [1 / (i + 1) for i in range(20)]
        slower = shares[:4] + [shares[4] * 2] + shares[5:]
        rows = self.diff(*self.pair(self.random_samples(chance, shares, 4000), self.random_samples(chance, slower, 4000)))
        self.assertEqual([name for name, row in rows.items() if row["own_sure"]], ["0x50"])

    def test_few_samples_are_never_significant(self):
        base = [([0x10], 1000000, 1, 0)] * 4
        rows = self.diff(*self.pair(base, [([0x20], 1000000, 1, 0)] * 5))
        self.assertFalse(any(row["own_sure"] for row in rows.values()))

    def mixed(self):
        return ([([0x10], 1000000, 2, 1)] * 30 + [([0x20], 1000000, 2, 1)] * 10 + [([0x10], 1000000, 3, 2)] * 10
                + [([0x20], 1000000, 3, 3)] * 30)

    def test_parts_of_one_capture(self):
        file = self.make("one", capture(self.mixed()))
        traces = self.diff(file, "--base-trace", "4bf92f3577b34da6a3ce929d0e0e4736", "--trace", 31 * "0" + "2", "--trace", 31 * "0" + "3")
        for rows in (traces, self.diff(file, "--base-name", "one", "--name", "two"), self.diff(file, "--base-coroutine", "2", "--coroutine", "3"),
                     self.diff(file, "--base-to", "0.0405", "--from", "0.0405"), self.diff(file, file, "--base-to", "0.0405", "--from", "0.0405")):
            self.assertEqual(rows["0x10"]["own"][:3], [75, 25, -50])
        # A filter holds for both sides where no --base- option takes its place.
        rows = self.diff(file, "--base-trace", "4bf92f3577b34da6a3ce929d0e0e4736", "--trace", 31 * "0" + "2", "--focus", "x10$")
        self.assertEqual(rows["0x10"]["own"][:3], [100, 100, 0])

    def test_per_trace(self):
        file = self.make("one", capture(self.mixed()) + "ledger 2 1 40000000 1 80000000\nledger 3 2 10000000 1 80000000\nledger 3 3 30000000 1 80000000\n")
        rows = self.diff(file, "--base-name", "one", "--name", "two", "--per", "trace")
        self.assertEqual(rows["0x10"]["own"][:3], [30, 5, -25])  # 30 ms in one trace, 10 ms in two
        self.assertEqual(rows["0x20"]["own"][:3], [10, 15, 5])

    def test_another_build(self):
        """Functions are told by name and file, wherever they are."""
        one = self.make("one", capture([([0x10], 1000000, 1, 0)] * 50))
        two = self.make("two", capture([([0x10], 1000000, 1, 0)] * 50, 2).replace("/opt/app/server 0102", "/srv/new/server 0908"))
        self.assertEqual(self.diff(one, two)["0x10"]["own"][:3], [100, 100, 0])

    def test_json(self):
        """The values are those of the table, to its digits; keys are those of doc/json.md."""
        base, file = self.pair([([0x10, 0x20], 1000000, 2, 1)] * 30 + [([0x30], 1000000, 2, 1)] * 10, [([0x10, 0x20], 1000000, 2, 1)] * 20 + [([0x40], 2000000, 3, 1)] * 9)
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../doc/json.md"), encoding="utf-8") as document:
            known = set(re.findall(r"`([a-z0-9_]+)`", document.read()))
        for per in ("total", "none"):
            said, table = json.loads(self.succeed("diff", base, file, "--per", per, "-n", "0", "--json")), self.diff(base, file, "--per", per)
            self.assertEqual((said["version"], said["by"], said["base"]["file"], said["file"]["samples"]), (1, "function", base, 29))
            self.assertEqual({row["function"].removeprefix("server+"): {"own": [round(row["own"][key], 2) for key in ("base", "file", "change", "error")],
                              "own_sure": row["own"]["significant"], "total": [round(row["total"][key], 2) for key in ("base", "file", "change", "error")],
                              "total_sure": row["total"]["significant"]} for row in said["rows"]}, table)
            self.assertLessEqual({*said, *said["base"], *said["rows"][0], *said["rows"][0]["own"]}, known)
        said = json.loads(self.succeed("diff", base, file, "--by", "stack", "-n", "1", "--json"))
        self.assertEqual((said["by"], len(said["rows"]), "server+" in said["rows"][0]["stack"]), ("stack", 1, True))
        self.expect(2, "which of them", "diff", base, file, "--json", "-o", self.path("x.html"))

    def test_sort_and_restrict(self):
        base = [([0x10, 0x90], 1000000, 1, 0)] * 50 + [([0x20, 0x90], 1000000, 1, 0)] * 40 + [([0x30], 1000000, 1, 0)] * 10
        file = [([0x10, 0x90], 1000000, 1, 0)] * 45 + [([0x20, 0x90], 1000000, 1, 0)] * 15 + [([0x30], 1000000, 1, 0)] * 40
        pair = self.pair(base, file)
        order = lambda *arguments: list(self.diff(*pair, *arguments))
        self.assertEqual(order(), ["0x30", "0x20", "0x10", "0x90"])
        self.assertEqual(order("-s", "total"), ["0x30", "0x90", "0x20", "0x10"])
        self.assertEqual(order("-s", "name"), ["0x10", "0x20", "0x30", "0x90"])
        self.assertEqual(order("-s", "significance")[:2], ["0x30", "0x90"])
        self.assertEqual(order("-r", "0x[12]", "-r", "1"), ["0x20"])

    def page(self, *arguments):
        """(header, {(stack, side): ns}) of the page."""
        out = self.path("out.html")
        self.assertEqual(self.succeed("diff", *arguments, "-o", out), "")
        head, tables = read_page(out)
        stacks, row, sums = stacks_of(head, tables), tables["row"], collections.Counter()
        for node, side, weight in zip(row["node"], row["side"], row["weight"]):
            sums[stacks[node], side] += weight
        return head, sums

    def test_page_has_both_sides(self):
        base = [([0x10, 0x90], 1000000, 1, 0)] * 600 + [([0x20, 0x90], 1000000, 1, 0)] * 400
        file = [([0x10, 0x90], 1000000, 1, 0)] * 1500 + [([0x30, 0x10, 0x90], 1000000, 1, 0)] * 500
        head, sums = self.page(*self.pair(base, file))
        at = lambda *offsets: tuple(f"server+0x{offset}" for offset in offsets)
        self.assertEqual(sums, {(at(90, 10), 0): 600000000, (at(90, 20), 0): 400000000, (at(90, 10), 1): 1500000000,
                                (at(90, 10, 30), 1): 500000000})
        self.assertEqual([(os.path.basename(side["file"]), side["samples"], side["per"]) for side in head["sides"]],
                         [("base", 1000, [0, 0]), ("file", 2000, [0, 0])])
        self.assertEqual(head["unit"], "%")

    def test_page_per_trace(self):
        file = self.make("one", capture(self.mixed()) + "ledger 2 1 40000000 1 80000000\nledger 3 2 10000000 1 80000000\nledger 3 3 30000000 1 80000000\n")
        head, _ = self.page(file, "--base-name", "one", "--name", "two", "--per", "trace")
        self.assertEqual(([side["per"] for side in head["sides"]], head["unit"]), ([[1, 1], [2, 1]], "ms a trace"))

    def test_page_in_a_browser(self):
        """What is drawn is the change that the table prints."""
        if shutil.which("chromium") is None:
            self.skipTest("no chromium")
        base = [([0x10, 0x90], 1000000, 1, 0)] * 600 + [([0x20, 0x90], 1000000, 1, 0)] * 400
        file = [([0x10, 0x90], 1000000, 1, 0)] * 900 + [([0x20, 0x90], 1000000, 1, 0)] * 100
        self.page(*self.pair(base, file))
        browser = Browser()
        self.addCleanup(browser.close)
        browser.open(self.path("out.html"))
        boxes = {box["name"]: box for box in browser.eval("greenprofApp.view.boxes.map(({name, width}) => ({name, width}))")}
        self.assertEqual(set(boxes), {"all", "server+0x90", "server+0x10", "server+0x20"})
        whole = boxes["all"]["width"]
        self.assertAlmostEqual(boxes["server+0x10"]["width"] / whole, .9, places=2)
        self.assertAlmostEqual(boxes["server+0x20"]["width"] / whole, .1, places=2)

    def test_names_cannot_end_the_script(self):
        evil = capture([([0x10], 1000000, 1, 0)] * 20).replace("/opt/app/server", "/opt/</script><b>&\u2028")
        _, sums = self.page(self.make("one", evil), self.make("two", evil.replace("pid=1", "pid=2")))
        self.assertEqual({stack for stack, _ in sums}, {("script><b>&\u2028+0x10",)})
        with open(self.path("out.html"), encoding="utf-8") as file:
            self.assertEqual(file.read().count("</script>"), 2)

    def test_bad_use(self):
        file = self.make("one", capture(self.mixed()))
        self.expect(2, "missing BASE and FILE", "diff")
        self.expect(2, "unexpected argument", "diff", file, file, file)
        self.expect(2, "with one FILE", "diff", file)
        self.expect(2, "--base-trace 12: must be", "diff", file, "--base-trace", "12")
        self.expect(2, "--base-from soon", "diff", file, "--base-from", "soon")
        self.expect(2, "--per day: must be total, second, trace or none", "diff", file, file, "--per", "day")
        self.expect(2, "--sort|-s", "diff", file, file, "-s", "weight")
        self.expect(2, r"-r '\(': Unmatched", "diff", file, file, "-r", "(")
        self.expect(1, "has no coroutine with a name that matches 'zz'", "diff", file, "--base-name", "zz")
        self.expect(1, "no samples to compare", "diff", file, self.make("none", HEAD.format(pid=1)), "-o", self.path("out.html"))
        self.expect(1, "there is no trace to divide by", "diff", file, self.make("untraced", capture([([0x10], 5, 1, 0)])), "--per", "trace")
        self.expect(1, "No such file", "diff", file, file, "-o", self.path("nowhere/out.html"))


if __name__ == "__main__":
    main()
