# SPDX-License-Identifier: MIT
"""Chrome traces: their shape, and what Speedscope's importer reads from them.

usage: test_chrome.py WRITE_REPORT GREENPROF MAKE_CAPTURE DUMP_ALL NPM-DIRECTORY
"""
import collections, json, sys

import speedscope_reader, support
from test_perfetto import NAMES, SPANS

NPM = sys.argv[5]
COROUTINES = 1 << 22 # what is added to the process' id


class Chrome(support.Files):
    form = "chrome"

    def load(self, path):
        with open(path, "rb") as file:
            self.events = json.load(file)["traceEvents"]
        self.names = {(event["pid"], event["tid"]): event["args"]["name"] for event in self.events
                      if event["name"] == "thread_name"}
        self.pid = min(event["pid"] for event in self.events if event["ph"] == "M")
        return self

    def slices(self, coroutines=True):
        """[(track, name, first ns, end ns)]"""
        found = [(self.names[event["pid"], event["tid"]], event["name"], round(event["ts"] * 1000),
                  round((event["ts"] + event["dur"]) * 1000)) for event in self.events
                 if event["ph"] == "X" and (event["pid"] == self.pid + COROUTINES) == coroutines]
        last = collections.Counter()
        for track, name, start, end in sorted(found, key=lambda item: item[2]):
            self.assertLessEqual(last[track], start, "slices of a track do not overlap")
            last[track] = end
        return found

    def sums(self):
        sums = collections.Counter()
        for track, name, start, end in self.slices():
            sums[track, name] += end - start
        return sums

    def arrows(self):
        """[(what, track, ns, track, ns)]; both ends lie within a slice, as importers want it."""
        ends = collections.defaultdict(dict)
        for event in self.events:
            if event["ph"] in "sf":
                ends[event["name"], event["id"]][event["ph"]] = (self.names[event["pid"], event["tid"]],
                                                                 round(event["ts"] * 1000))
        for arrow in ends.values():
            for track, time in arrow.values():
                self.assertTrue(any(name == track and start <= time < end for name, _, start, end in self.slices()))
        return sorted((what, *arrow["s"], *arrow["f"]) for (what, _), arrow in ends.items())

    def test_labelled_golden(self):
        with open(self.report("labelled"), encoding="utf8") as file:
            self.check_golden("labelled.trace.json", file.read())

    def test_labelled(self):
        self.load(self.report("labelled"))
        main, fetch, child = NAMES[1], NAMES[2], NAMES[3]
        self.assertEqual(self.sums(), {
            (main, "running"): 5000000, (fetch, "parked"): 400001 + 2000000, (fetch, "ready"): 499999 + 1000000,
            (fetch, "running"): 4000000, (fetch, "interleaved"): 900000, (fetch, "waiting"): 100000,
            (child, "waiting"): 4000000, (child, "running"): 1500000})
        self.assertEqual(self.arrows(), sorted([
            ("spawn", main, 100000, fetch, 100001), ("spawn", fetch, 2000000, child, 2000001),
            ("wake", main, 500001, fetch, 1000001), ("wake", child, 7000000, fetch, 8000001)]))
        self.assertEqual(sorted(self.slices(coroutines=False)), sorted([
            ("main", fetch, 1000000, 5000000), ("worker;\n\ufffd", child, 6000000, 7500000)]))

    def test_capture(self):
        sums = self.load(self.export(script=SPANS)).sums()
        two, three = "[coroutine 2 server+0x40]", '[coroutine 3 wor"k;er]'
        self.assertEqual(sums, {
            (two, "running"): 2500000, (two, "parked"): 200000, (two, "ready"): 300000, (three, "waiting"): 2600000,
            (three, "interleaved"): 600000})

    def test_slices_that_adjoin(self):
        """As readers have them, in doubles: a slice ends where the next one begins, or a nanosecond before."""
        times = [7 + 1234567 * i + i * i for i in range(2000)]
        script = "thread 1 10 1 0 main\ncoro 2 0 - 0x3000 0x1000 2 0 a\n" + "".join(
            f"activity 2 {a} {b} {c} {b - a} 0 0 0 1 0\n" for a, b, c in zip(times[0::2], times[1::2], times[2::2]))
        self.load(self.export(script=script))
        slices = sorted((event for event in self.events if event["ph"] == "X" and event["pid"] > COROUTINES),
                        key=lambda event: event["ts"])
        self.assertGreater(len(slices), 1900)
        for first, second in zip(slices, slices[1:]):
            end = first["ts"] + first["dur"]
            self.assertLessEqual(end, second["ts"])
            self.assertLess(second["ts"] - end, 0.0011)

    def test_no_spans(self):
        self.assertEqual(self.load(self.export(script=support.NO_SAMPLES)).slices(), [])

    def test_full_disk(self):
        self.expect_no_partial_output()


class Reader(support.Files):
    def test_speedscope(self):
        group, = speedscope_reader.load([self.report("labelled", "chrome")], NPM)
        self.assertNotIsInstance(group, str, group)
        sums = collections.Counter()
        for profile in group["profiles"]:
            if "coroutine" in profile["name"] or "thread main" in profile["name"]:
                for name, weight in speedscope_reader.self_weights(group, profile).items():
                    sums[name.split(" ")[0]] += weight
        self.assertEqual({name: round(weight, 3) for name, weight in sums.items() if weight}, # microseconds
                         {"running": 10500, "parked": 2400.001, "ready": 1499.999, "interleaved": 900, "waiting": 4100})


support.main()
