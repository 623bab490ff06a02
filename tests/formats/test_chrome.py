# SPDX-License-Identifier: MIT
"""Chrome traces: their shape, and what Speedscope's importer and Perfetto's trace processor read from them.

usage: test_chrome.py WRITE_REPORT GREENPROF MAKE_CAPTURE DUMP_ALL NPM-DIRECTORY
"""
import collections, json, sys

import speedscope_reader, support, trace_processor

NPM = sys.argv[5]
NAMES = {1: "[thread main]", 2: '[coroutine 42 fetch "\u65e5" </script>]', 3: "[coroutine 43 \ufffd]"}
SPANS = support.SCRIPT + """
activity 2 1000000 2000000 2500000 1000000 2200000 1 1 2 0
activity 2 2500000 4000000 4000000 1500000 0 0 1 2 1
activity 3 1000000 1000000 3500000 0 0 0 2 0 0
activity 3 3500000 4100000 4200000 100000 0 0 1 1 1
"""
COROUTINES = 1 << 22 # what is added to the process' id

THREADS = "(SELECT k.id AS id, t.name AS name FROM thread_track k JOIN thread t USING (utid))" # events are those of threads
SLICES = f"SELECT t.name AS track, s.name, s.dur FROM slice s JOIN {THREADS} t ON s.track_id = t.id"
FLOWS = f"""SELECT ot.name AS source, it.name AS target FROM flow f JOIN slice o ON f.slice_out = o.id JOIN slice i ON f.slice_in = i.id
    JOIN {THREADS} ot ON o.track_id = ot.id JOIN {THREADS} it ON i.track_id = it.id"""
LEAVES = """SELECT f.name AS leaf, {value} FROM {source} JOIN stack_profile_callsite c ON s.callsite_id = c.id
    JOIN stack_profile_frame f ON c.frame_id = f.id GROUP BY {by}"""


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

    def test_choice(self):
        sums = self.load(self.export("--trace", support.TRACE, script=SPANS)).sums()
        self.assertEqual({name for name, _ in sums}, {"[coroutine 2 server+0x40]", '[coroutine 3 wor"k;er]'})
        self.assertEqual(sums['[coroutine 3 wor"k;er]', "waiting"], 100000)
        sums = self.load(self.export("--coroutine", "3", script=SPANS)).sums()
        self.assertEqual({name for name, _ in sums}, {'[coroutine 3 wor"k;er]'})
        sums = self.load(self.export("--from", "0.0015", "--to", "0.0036", script=SPANS)).sums()
        self.assertEqual(sums["[coroutine 2 server+0x40]", "running"], 500000 + 1100000)
        self.assertEqual(sums['[coroutine 3 wor"k;er]', "waiting"], 2000000)

    def test_in_process(self):
        """A profile is a sum: it knows no times."""
        with self.assertRaisesRegex(AssertionError, "chrome -95"):
            self.dumps()

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


class Processor(support.Files):
    """Perfetto's own importer and tables; it is a second reader of other formats, too."""
    def query(self, path, *queries):
        return trace_processor.query(NPM, path, *queries)

    def test_chrome(self):
        slices, flows = self.query(self.report("labelled", "chrome"), SLICES, FLOWS)
        main, fetch, child = NAMES[1], NAMES[2], NAMES[3]
        states = collections.Counter()
        for row in slices:
            states[row["track"], row["name"]] += row["dur"]
        self.assertEqual(states, {
            (main, "running"): 5000000, (fetch, "parked"): 400001 + 2000000, (fetch, "ready"): 499999 + 1000000,
            (fetch, "running"): 4000000, (fetch, "interleaved"): 900000, (fetch, "waiting"): 100000,
            (child, "waiting"): 4000000, (child, "running"): 1500000, ("main", fetch): 4000000,
            ("worker;\n\ufffd", child): 1500000})
        self.assertEqual(sorted((row["source"], row["target"]) for row in flows),
                         sorted([(main, fetch), (fetch, child), (main, fetch), (child, fetch)]))

    def leaves(self):
        """{function: (ns, samples, rows)} at the leaves of the labelled report."""
        with open(self.report("labelled", "json"), encoding="utf8") as file:
            report = json.load(file)
        sums = {}
        for row in report["rows"]:
            name = report["frames"][row["stack"][-1]]["function"]
            ns, samples, rows = sums.get(name, (0, 0, 0))
            sums[name] = (ns + row["weight_ns"], samples + row["samples"], rows + 1)
        return sums

    def test_pprof(self):
        rows, = self.query(self.report("labelled", "pprof"), LEAVES.format(
            value="p.sample_type_type AS what, SUM(s.value) AS value", source="""__intrinsic_aggregate_sample s
            JOIN __intrinsic_aggregate_profile p ON s.aggregate_profile_id = p.id""", by="f.name, p.id"))
        sums = {(row["leaf"], row["what"]): row["value"] for row in rows}
        leaves = self.leaves()
        self.assertEqual(sums, {**{(name, "cpu"): ns for name, (ns, _, _) in leaves.items()},
                                **{(name, "samples"): samples for name, (_, samples, _) in leaves.items()}})

    def test_firefox(self):
        rows, = self.query(self.report("labelled", "firefox"), LEAVES.format(
            value="COUNT(*) AS count", source="cpu_profile_stack_sample s JOIN thread t USING (utid)", by="f.name") +
            ", t.name HAVING t.name = 'CPU time'")
        self.assertEqual({row["leaf"]: row["count"] for row in rows}, {name: rows for name, (_, _, rows) in self.leaves().items()})


support.main()
