# SPDX-License-Identifier: MIT
"""Reports of more rows than are kept in memory: they are made part by part, and nothing is lost or told twice.

usage: test_parts.py MAKE_MANY GREENPROF
"""
import collections, gzip, itertools, json, os, pstats, re, subprocess, sys, tempfile, unittest

MAKE_MANY, GREENPROF = (os.path.abspath(path) for path in sys.argv[1:3])
COROUTINES, STACKS = 800, 300  # 240,000 rows by coroutine


def weight_us(coroutine, stack):
    return 1 + (7 * coroutine + stack) % 10


OF_COROUTINE = {c: sum(weight_us(c, s) for s in range(STACKS)) for c in range(1, COROUTINES + 1)}
TOTAL = sum(OF_COROUTINE.values())


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of a protobuf message; submessages are bytes. Anything out of place raises."""
    at, end = 0, len(data)
    while at < end:
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            length, at = (8, at) if tag & 7 == 1 else varint(data, at)
            if tag & 7 not in (1, 2) or at + length > end:
                raise AssertionError(f"field {tag >> 3} of wire type {tag & 7} does not fit")
            value = data[at:at + length]
            at += length
        yield tag >> 3, value


class Parts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.capture = os.path.join(cls.directory.name, "many.greenprof")
        subprocess.run([MAKE_MANY, cls.capture, str(COROUTINES), str(STACKS)], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def export(self, form, *arguments):
        out = os.path.join(self.directory.name, "out." + form)
        subprocess.run([GREENPROF, "export", self.capture, "-f", form, "-o", out, *arguments], check=True)
        return out

    def test_folded(self):
        sums, lines = collections.Counter(), set()
        with open(self.export("folded", "--by", "coroutine"), encoding="ascii") as file:
            for line in file:
                stack, count = line.rsplit(" ", 1)
                lines.add(stack)
                sums[int(stack.split()[1])] += int(count)
        self.assertEqual(sums, OF_COROUTINE)
        self.assertEqual(len(lines), COROUTINES * STACKS)

    def test_one_trace_of_many(self):
        with open(self.export("folded", "--by", "coroutine", "--trace", "03".zfill(32)), encoding="ascii") as file:
            sums = collections.Counter()
            for line in file:
                sums[int(line.split()[1])] += int(line.rsplit(" ", 1)[1])
        self.assertEqual(sums, {c: us for c, us in OF_COROUTINE.items() if c % 10 == 2})

    def test_json(self):
        with open(self.export("json"), encoding="utf8") as file:
            report = json.load(file)
        sums, pairs = collections.Counter(), set()
        for row in report["rows"]:
            label = report["labels"][row["label"]]
            sums[label["coroutine_id"]] += row["weight_ns"]
            pairs.add((row["label"], tuple(row["stack"])))
            self.assertEqual(label["trace_id"], f"{1 + label['coroutine_id'] % 10:032x}")
            self.assertEqual(label["thread_id"], 101 + label["coroutine_id"] % 4)
        self.assertEqual(sums, {c: us * 1000 for c, us in OF_COROUTINE.items()})
        self.assertEqual((len(pairs), len(report["rows"])), (COROUTINES * STACKS,) * 2)
        self.assertEqual((report["total_ns"], report["samples"]), (TOTAL * 1000, COROUTINES * STACKS))

    def test_part_of_the_functions(self):
        """Unscaled time and what is left of an exact time are spread over parts as well."""
        with open(self.export("json", "--ignore", r"0x100$"), encoding="utf8") as file:
            report = json.load(file)
        truth = TOTAL - sum(weight_us(c, 0) for c in range(1, COROUTINES + 1))
        self.assertEqual(report["total_ns"], truth * 1000)
        self.assertEqual(sum(row["weight_ns"] for row in report["rows"]), truth * 1000)
        self.assertEqual(len(report["rows"]), COROUTINES * (STACKS - 1))
        self.assertNotIn("many+0x100", [frame["function"] for frame in report["frames"]])

    def test_pprof(self):
        with gzip.open(self.export("pprof")) as file:
            samples = [value for number, value in fields(file.read()) if number == 2]
        values = [next(value for number, value in fields(sample) if number == 2) for sample in samples]
        total = count = 0
        for value in values:
            samples_of, at = varint(value, 0)
            count += samples_of
            total += varint(value, at)[0]
        self.assertEqual((len(samples), count, total), (COROUTINES * STACKS, COROUTINES * STACKS, TOTAL * 1000))
        stacks = [next(value for number, value in fields(sample) if number == 1) for sample in samples]
        self.assertEqual(len(list(itertools.groupby(stacks))), STACKS, "the rows of a stack are together")

    def test_otlp(self):
        with open(self.export("otlp"), "rb") as file:
            data = dict(fields(file.read()))
        stacks = [value for number, value in fields(data[2]) if number == 7]
        self.assertEqual(len(stacks), STACKS + 1)  # and the empty one
        scope = dict(fields(data[1]))[2]
        profiles = [value for number, value in fields(scope) if number == 2]
        for profile, truth in zip(profiles, (TOTAL * 1000, COROUTINES * STACKS)):
            sums, count = 0, 0
            for number, sample in fields(profile):
                if number != 2:
                    continue
                count += 1
                sums += varint(dict(fields(sample))[4], 0)[0]
            self.assertEqual((sums, count), (truth, COROUTINES * STACKS))

    def test_otlp_by_coroutine(self):
        """Every stack is one of its own: none is in the table twice, and each has its coroutine at the root."""
        with open(self.export("otlp", "--by", "coroutine"), "rb") as file:
            data = dict(fields(file.read()))
        tables = collections.defaultdict(list)
        for number, value in fields(data[2]):
            tables[number].append(value)
        locations, functions, texts, stacks = (tables[number] for number in (2, 3, 5, 7))
        self.assertEqual(len(stacks), COROUTINES * STACKS + 1)
        self.assertEqual(len(set(stacks)), len(stacks))

        def root(stack):
            places, at = dict(fields(stack))[1], 0
            while at < len(places):
                last, at = varint(places, at)
            line = dict(fields(dict(fields(locations[last]))[3]))
            return texts[dict(fields(functions[line[1]]))[1]].decode()

        profile = next(value for number, value in fields(dict(fields(data[1]))[2]) if number == 2)
        sums = collections.Counter()
        for number, sample in fields(profile):
            if number == 2:
                sample = dict(fields(sample))
                sums[root(stacks[sample[1]])] += varint(sample[4], 0)[0]
        self.assertEqual(sums, {f"[coroutine {c} c{c}]": us * 1000 for c, us in OF_COROUTINE.items()})

    def test_firefox_by_coroutine(self):
        with open(self.export("firefox", "--by", "coroutine"), encoding="utf8") as file:
            document = json.load(file)
        shared, threads = document["shared"], document["threads"]
        table, functions = shared["stackTable"], shared["funcTable"]["name"]
        nodes = list(zip(table["frame"], table["prefix"]))
        self.assertEqual((len(set(nodes)), len(nodes)), (table["length"],) * 2)
        roots = []
        for number, (frame, prefix) in enumerate(nodes):
            self.assertTrue(prefix is None or prefix < number)
            roots.append(frame if prefix is None else roots[prefix])
        samples = threads[0]["samples"]
        self.assertEqual({len(samples[column]) for column in ("stack", "weight", "time")}, {COROUTINES * STACKS})
        sums = collections.Counter()
        for stack, weight in zip(samples["stack"], samples["weight"]):
            name = shared["stringArray"][functions[shared["frameTable"]["func"][roots[stack]]]]
            sums[name] += round(weight * 1e6)
        self.assertEqual(sums, {f"[coroutine {c} c{c}]": us * 1000 for c, us in OF_COROUTINE.items()})
        for thread in threads[1:]:
            self.assertEqual(sum(round(weight * 1e6) for weight in thread["samples"]["weight"]),
                             1000 * OF_COROUTINE[thread["tid"]])

    def test_tables_of_functions(self):
        stats = pstats.Stats(self.export("pstats", "--by", "coroutine")).stats
        own = {name: value for (file, line, name), value in stats.items()}
        self.assertAlmostEqual(sum(value[2] for value in own.values()), TOTAL / 1e6, places=6)
        for coroutine in (1, 500, COROUTINES):
            self.assertAlmostEqual(own[f"[coroutine {coroutine} c{coroutine}]"][3], OF_COROUTINE[coroutine] / 1e6)
        with open(self.export("callgrind", "--by", "coroutine"), encoding="utf8") as file:
            text = file.read()
        self.assertIn(f"totals: {TOTAL * 1000} {COROUTINES * STACKS}\n", text)

    def test_flamegraph(self):
        """One trace has a tenth of the time: wide enough; what is too narrow to be seen is left out."""
        with open(self.export("flamegraph", "--by", "trace"), encoding="utf8") as file:
            text = file.read()
        self.assertEqual(len(set(re.findall(r"\[trace 0{30}(..)\]", text))), 10)

    def test_heaviest_only(self):
        for form in ("speedscope", "firefox"):
            with open(self.export(form), encoding="utf8") as file:
                document = json.load(file)
            if form == "speedscope":
                profiles = [(p["name"], sum(p["weights"])) for p in document["profiles"]]
            else:
                profiles = [(t["name"], round(sum(t["samples"]["weight"]) * 1e6)) for t in document["threads"]]
            self.assertEqual((len(profiles), profiles[0][0].split(" in ns")[0], profiles[0][1]), (51, "CPU time", TOTAL * 1000))
            heaviest = sorted(OF_COROUTINE.values(), reverse=True)[:50]
            self.assertEqual([us for name, us in profiles[1:]], [us * 1000 for us in heaviest])
            for name, ns in profiles[1:]:
                self.assertEqual(OF_COROUTINE[int(name.split()[1])] * 1000, ns)

    def test_activities(self):
        with open(self.export("chrome"), encoding="utf8") as file:
            events = json.load(file)["traceEvents"]
        names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] != 42}
        ends, running = {}, collections.Counter()
        for event in events:
            if event["ph"] != "X" or event["pid"] == 42:
                continue
            self.assertEqual(ends.get(event["tid"], 0), round(event["ts"] * 1000), "activities adjoin and come in order")
            ends[event["tid"]] = round((event["ts"] + event["dur"]) * 1000)
            running[event["tid"]] += round(event["dur"] * 1000) if event["name"] == "running" else 0
        self.assertEqual(set(ends.values()), {100000})
        self.assertEqual(set(running.values()), {60000})
        self.assertEqual({names[tid] for tid in ends}, {f"[coroutine {c} c{c}]" for c in OF_COROUTINE})

    def test_no_place_for_what_does_not_fit(self):
        result = subprocess.run([GREENPROF, "export", self.capture, "-f", "folded", "--by", "coroutine"],
                                env={**os.environ, "TMPDIR": "/nowhere"}, capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertRegex(result.stderr, r"^greenprof: .*many.greenprof: No such file or directory \(temporary files are made in /nowhere")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
