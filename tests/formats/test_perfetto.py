# SPDX-License-Identifier: MIT
"""Perfetto traces, decoded by protoc, what ids refer to being checked here; and what Perfetto's own trace processor makes
of them.

usage: test_perfetto.py WRITE_REPORT GREENPROF MAKE_CAPTURE DUMP_ALL NPM-DIRECTORY
"""
import collections, json, os, sys

import protoc_reader, support, trace_processor

PROTO = os.path.join(support.HERE, "perfetto.proto")
BEGIN, END, INSTANT = 1, 2, 3
BASE = 1790000000123456789  # when labelled reports start
NAMES = {1: "[thread main]", 2: '[coroutine 42 fetch "\u65e5" </script>]', 3: "[coroutine 43 \ufffd]"}
SPANS = support.SCRIPT + """
activity 2 1000000 2000000 2500000 1000000 2200000 1 1 2 0
activity 2 2500000 4000000 4000000 1500000 0 0 1 2 1
activity 3 1000000 1000000 3500000 0 0 0 2 0 0
activity 3 3500000 4100000 4200000 100000 0 0 1 1 1
"""


def one(message, field, default=None):
    values = message.get(field, [default])
    if len(values) != 1:
        raise AssertionError(f"{field}: {values}")
    return values[0]


class Trace:
    """What an importer makes of a file: slices, arrows and samples, of tracks by name."""

    def __init__(self, path):
        packets = protoc_reader.decode(path, PROTO, "perfetto.Trace")["packet"]
        if one(packets[0], "sequence_flags") != 1 or any(one(packet, "trusted_packet_sequence_id") != 1 for packet in packets):
            raise AssertionError("the first packet clears the state of its sequence")
        self.tables(one(packets[0], "interned_data"))
        self.tracks, self.process = {}, None
        for packet in packets:
            if "track_descriptor" in packet:
                self.describe(one(packet, "track_descriptor"))
        self.slices, self.instants, self.flows, self.ends = [], [], {}, {}
        events = [(one(packet, "timestamp"), one(packet, "track_event")) for packet in packets if "track_event" in packet]
        self.replay(sorted(events, key=lambda event: event[0])) # stable, as an importer's
        self.samples = [self.sample(packet) for packet in packets if "stack_sample" in packet]

    @staticmethod
    def by_iid(items):
        table = {one(item, "iid"): item for item in items}
        if len(table) != len(items) or 0 in table:
            raise AssertionError("ids are distinct and not 0")
        return table

    def tables(self, data):
        functions = {iid: one(item, "str").decode() for iid, item in self.by_iid(data.get("function_names", [])).items()}
        files = self.by_iid(data.get("source_paths", []))
        self.frames = {}
        for iid, frame in self.by_iid(data.get("frames", [])).items():
            if "source_path_iid" in frame:
                files[one(frame, "source_path_iid")]
            self.frames[iid] = functions[one(frame, "function_name_id")]
        self.stacks = {iid: [self.frames[frame] for frame in item["frame_ids"]]
                       for iid, item in self.by_iid(data.get("callstacks", [])).items()}
        self.counters = {iid: one(item, "name").decode() for iid, item in self.by_iid(data["counter_descriptors"]).items()}
        self.contexts = self.by_iid(data.get("async_context_descriptors", []))

    def context_name(self, iid):
        return one(self.contexts[iid], "name").decode()

    def describe(self, track):
        if "process" in track:
            self.process = one(track, "uuid"), one(track, "process")
            return
        if one(track, "parent_uuid") != self.process[0] or one(track, "uuid") in self.tracks:
            raise AssertionError("a track of its own, in the process")
        self.tracks[one(track, "uuid")] = one(track, "name").decode()

    def replay(self, events):
        open_slices = collections.defaultdict(list)
        for time, event in events:
            uuid, kind = one(event, "track_uuid"), one(event, "type")
            track = self.tracks[uuid]
            for flow in event.get("flow_ids", []):
                self.flows[flow] = (track, time)
            for flow in event.get("terminating_flow_ids", []):
                self.ends[flow] = (track, time)
            if kind == BEGIN:
                open_slices[uuid].append((one(event, "name").decode(), time, event))
                if len(open_slices[uuid]) != 1:
                    raise AssertionError(f"slices of {track} overlap at {time}")
            elif kind == END:
                name, start, begin = open_slices[uuid].pop()
                notes = {one(note, "name").decode(): one(note, "string_value", one(note, "uint_value"))
                         for note in begin.get("debug_annotations", [])}
                self.slices.append((track, name, start, time, notes))
            else:
                self.instants.append((track, one(event, "name").decode(), time))
        if any(open_slices.values()):
            raise AssertionError("every slice ends")

    def sample(self, packet):
        sample = one(packet, "stack_sample")
        if one(packet, "sequence_flags") != 2:
            raise AssertionError("a sample needs the state")
        return (one(packet, "timestamp"), self.context_name(one(one(sample, "task_context"), "async_id")),
                self.counters[one(sample, "primary_descriptor_iid")], one(sample, "primary_weight"),
                self.stacks[one(sample, "callstack_iid")])

    def sums(self):
        """{(track, state): ns}"""
        sums = collections.Counter()
        for track, name, start, end, _ in self.slices:
            sums[track, name] += end - start
        return sums


class Perfetto(support.Files):
    form = "perfetto"

    def test_labelled(self):
        trace, base = Trace(self.report("labelled")), 1790000000123456789
        main, fetch, child = NAMES[1], NAMES[2], NAMES[3]
        self.assertEqual(one(trace.process[1], "pid"), 4321)
        self.assertEqual(sorted(trace.tracks.values()), sorted(NAMES.values()))
        self.assertEqual(trace.sums(), {
            (main, "running"): 5000000, (fetch, "parked"): 400001 + 2000000, (fetch, "ready"): 499999 + 1000000,
            (fetch, "running"): 4000000, (fetch, "interleaved"): 900000, (fetch, "waiting"): 100000,
            (child, "waiting"): 4000000, (child, "running"): 1500000})
        notes, = (notes for _, name, _, _, notes in trace.slices if name == "interleaved")
        self.assertEqual(notes, {"trace": support.TRACE.encode(), "running_ns": 300000, "thread": 101})
        self.assertEqual(sorted((trace.flows[flow], trace.ends[flow]) for flow in trace.flows), sorted([
            ((main, base + 100000), (fetch, base + 100000)), ((fetch, base + 2000000), (child, base + 2000000)),
            ((main, base + 500001), (fetch, base + 1000000)), ((child, base + 7000000), (fetch, base + 8000000))]))
        self.assertEqual(set(trace.flows), set(trace.ends))
        self.assertEqual(trace.samples[0], (base + 2000000, fetch, "cpu-time", 1000000, ["main", "a", "b", "a", "b"]))
        self.assertEqual(trace.samples[3], (base + 7000000, child, "cpu-time", 999999, ["main", "outer", "middle", "inner"]))
        self.assertEqual([sample[2] for sample in trace.samples], ["cpu-time", "wait-time", "cpu-time", "cpu-time"])
        self.assertEqual(trace.context_name(one(trace.contexts[3], "parent_iid")), fetch)

    def test_capture(self):
        trace = Trace(self.export(script=SPANS))
        two, three = "[coroutine 2 server+0x40]", '[coroutine 3 wor"k;er]'
        self.assertEqual(trace.sums(), {
            (two, "running"): 2500000, (two, "parked"): 200000, (two, "ready"): 300000, (three, "waiting"): 2600000,
            (three, "interleaved"): 600000})
        self.assertEqual(sum(sample[3] for sample in trace.samples), 4500000)

    def test_choice(self):
        trace = Trace(self.export("--trace", support.TRACE, script=SPANS))
        self.assertEqual({name for name in trace.tracks.values()}, {"[coroutine 2 server+0x40]", '[coroutine 3 wor"k;er]'})
        self.assertEqual(trace.sums()['[coroutine 3 wor"k;er]', "waiting"], 100000)
        self.assertEqual(sum(sample[3] for sample in trace.samples), 2500000)
        trace = Trace(self.export("--coroutine", "3", script=SPANS))
        self.assertEqual(set(trace.tracks.values()), {'[coroutine 3 wor"k;er]'})
        trace = Trace(self.export("--from", "0.0015", "--to", "0.0036", script=SPANS))
        sums = trace.sums()
        self.assertEqual(sums["[coroutine 2 server+0x40]", "running"], 500000 + 1100000)
        self.assertEqual(sums['[coroutine 3 wor"k;er]', "waiting"], 2000000)

    def test_no_spans(self):
        self.assertEqual(Trace(self.export(script=support.NO_SAMPLES)).slices, [])

    def test_in_process(self):
        """A profile is a sum: it knows no times."""
        with self.assertRaises(AssertionError) as raised:
            self.dumps()
        self.assertIn("perfetto -95", str(raised.exception))

    def test_full_disk(self):
        self.expect_no_partial_output()


SLICES = """SELECT t.name AS track, s.name, s.ts - {base} AS start, s.dur,
    EXTRACT_ARG(s.arg_set_id, 'debug.trace') AS trace, EXTRACT_ARG(s.arg_set_id, 'debug.thread') AS thread,
    EXTRACT_ARG(s.arg_set_id, 'debug.running_ns') AS running
    FROM slice s JOIN {table} t ON s.track_id = t.id ORDER BY s.ts"""
FLOWS = """SELECT o.name AS what, ot.name AS source, o.ts - {base} AS start, it.name AS target, i.ts - {base} AS end
    FROM flow f JOIN slice o ON f.slice_out = o.id JOIN slice i ON f.slice_in = i.id
    JOIN {table} ot ON o.track_id = ot.id JOIN {table} it ON i.track_id = it.id"""
LEAVES = """SELECT f.name AS leaf, {value} FROM {source} JOIN stack_profile_callsite c ON s.callsite_id = c.id
    JOIN stack_profile_frame f ON c.frame_id = f.id GROUP BY {by}"""
PROCESS = "SELECT pid, name FROM process WHERE pid > 0"


class Reader(support.Files):
    """Perfetto's own importer and tables."""
    form = "perfetto"

    def query(self, path, *queries):
        return trace_processor.query(sys.argv[5], path, *queries)

    def test_labelled(self):
        slices, flows, process = self.query(self.report("labelled"), SLICES.format(base=BASE, table="track"),
                                            FLOWS.format(base=BASE, table="track"), PROCESS)
        main, fetch, child = NAMES[1], NAMES[2], NAMES[3]
        states = collections.Counter()
        for row in slices:
            states[row["track"], row["name"]] += row["dur"]
        self.assertEqual({key: ns for key, ns in states.items() if ns}, {
            (main, "running"): 5000000, (fetch, "parked"): 400001 + 2000000, (fetch, "ready"): 499999 + 1000000,
            (fetch, "running"): 4000000, (fetch, "interleaved"): 900000, (fetch, "waiting"): 100000,
            (child, "waiting"): 4000000, (child, "running"): 1500000})
        interleaved, = (row for row in slices if row["name"] == "interleaved")
        self.assertEqual((interleaved["trace"], interleaved["running"], interleaved["thread"]), (support.TRACE, 300000, 101))
        self.assertEqual(sorted((row["what"], row["source"], row["start"], row["target"], row["end"]) for row in flows), sorted([
            ("spawn", main, 100000, fetch, 100000), ("spawn", fetch, 2000000, child, 2000000),
            ("wake", main, 500001, fetch, 1000000), ("wake", child, 7000000, fetch, 8000000)]))
        self.assertEqual(process, [{"pid": 4321, "name": "server </script> \ufffd"}])

    def test_capture(self):
        path = self.export(script=SPANS)
        ours = Trace(path)
        slices, = self.query(path, SLICES.format(base=0, table="track"))
        sums = collections.Counter()
        for row in slices:
            sums[row["track"], row["name"]] += row["dur"]
        self.assertEqual({key: ns for key, ns in sums.items() if ns}, ours.sums())

    def test_chrome(self):
        """The same, of the other timeline format; its events are those of threads."""
        path = self.report("labelled", "chrome")
        threads = "(SELECT k.id AS id, t.name AS name FROM thread_track k JOIN thread t USING (utid))"
        slices, flows = self.query(path, SLICES.format(base=0, table=threads), FLOWS.format(base=0, table=threads))
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
        """Perfetto is a second reader of other formats."""
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


if __name__ == "__main__":
    if not protoc_reader.PROTOC:
        support.skip("no protoc")
    support.main()
