# SPDX-License-Identifier: MIT
"""OpenTelemetry profiles, decoded by protoc; what indices refer to is checked here."""
import os

import protoc_reader, support

PROTO = os.path.join(support.HERE, "otlp.proto")


class Otlp(support.Files):
    form = "otlp"

    def load(self, path):
        data = protoc_reader.decode(path, PROTO, "otlp.ProfilesData")
        resource, = data["resource_profiles"]
        scope, = resource["scope_profiles"]
        self.resource, self.scope = resource["resource"][0], scope["scope"][0]
        self.tables, = data["dictionary"]
        self.strings = [text.decode("utf8") for text in self.tables["string_table"]]
        self.check_tables()
        self.profiles = {self.string(profile["sample_type"][0], "type_strindex"): profile
                         for profile in scope["profiles"]}
        self.assertEqual(list(self.profiles), ["cpu", "samples"])
        ids = [profile["profile_id"][0] for profile in scope["profiles"]]
        self.assertTrue(len(set(ids)) == 2 and all(len(number) == 16 for number in ids))

    def check_tables(self):
        """Entry 0 of every table is the zero value."""
        self.assertEqual(self.strings[0], "")
        self.assertEqual(len(self.strings), len(set(self.strings)))
        for name in ("mapping", "location", "function", "attribute", "stack"):
            self.assertEqual(self.tables[name + "_table"][0], {}, name)
        self.assertEqual(self.tables["link_table"][0], {"trace_id": [b"\0" * 16], "span_id": [b"\0" * 8]})

    def string(self, message, field):
        return self.strings[message.get(field, [0])[0]]

    def attributes(self, indices):
        """{key: value} of attribute indices."""
        self.assertNotIn(0, indices)
        found = {}
        for item in (self.tables["attribute_table"][index] for index in indices):
            value, = item["value"]
            found[self.string(item, "key_strindex")] = (value["string_value"][0].decode("utf8")
                                                        if "string_value" in value else value["int_value"][0])
        self.assertEqual(len(found), len(indices))
        return found

    def lines(self, location):
        """(function, file, line, first line), innermost first."""
        for line in location["lines"]:
            function = self.tables["function_table"][line["function_index"][0]]
            yield (self.string(function, "name_strindex"), self.string(function, "filename_strindex"),
                   line.get("line", [0])[0], function.get("start_line", [0])[0])

    def rows(self, kind="cpu"):
        """[(value, function names root first, attributes, trace id in hex)]"""
        rows, identities = [], set()
        for sample in self.profiles[kind].get("samples", []):
            indices = self.tables["stack_table"][sample["stack_index"][0]]["location_indices"]
            self.assertNotIn(0, indices)
            names = [name for index in indices for name, *_ in self.lines(self.tables["location_table"][index])]
            attributes = tuple(sample.get("attribute_indices", []))
            link = sample.get("link_index", [0])[0]
            identities.add((sample["stack_index"][0], attributes, link))
            value, = sample["values"]
            trace = self.tables["link_table"][link]
            self.assertEqual(trace["span_id"], [b"\0" * 8])
            rows.append((value, names[::-1], self.attributes(attributes), trace["trace_id"][0].hex() if link else None))
        self.assertEqual(len(identities), len(rows))
        return rows

    def total(self, kind="cpu"):
        return sum(value for value, *_ in self.rows(kind))

    def test_labelled(self):
        self.load(self.report("labelled"))
        rows = self.rows()
        evil = "]]></script><script>alert('1;2')</script>\n\"\\ \ufffd\ufffd("
        self.assertEqual(rows[0], (400000000, ["main", "a", "b", "a", "b"],
                                   {"coroutine.name": 'fetch "\u65e5" </script>', "coroutine.id": 42,
                                    "thread.name": "worker;\n\ufffd", "thread.id": 101}, support.TRACE))
        self.assertEqual(rows[1][1], ["main", "outer", "middle", "inner"])
        self.assertEqual(rows[1][3], "00000000000000000000000000000001")
        self.assertEqual(rows[4], (50000000, ["main", evil], {"coroutine.id": 9007199254740993}, None))
        self.assertEqual(rows[6], (9000000, ["0x7f0000001000"], {}, None))
        self.assertEqual(self.total(), 899000001)
        self.assertEqual(self.total("samples"), 900)

    def test_tables(self):
        self.load(self.report("labelled"))
        inlined = [location for location in self.tables["location_table"] if location.get("address") == [0x400400]]
        self.assertEqual([list(self.lines(location)) for location in inlined],
                         [[("inner", "/src/in.h", 3, 1), ("middle", "/src/in.h", 9, 8), ("outer", "/src/in.c", 50, 40)]])
        mapping = self.tables["mapping_table"][inlined[0]["mapping_index"][0]]
        self.assertEqual((mapping["memory_start"], mapping["memory_limit"]), ([0x400000], [0x500000]))
        self.assertEqual(self.string(mapping, "filename_strindex"), "/opt/app/server")
        self.assertEqual(self.attributes(mapping["attribute_indices"]),
                         {"process.executable.build_id.gnu": "0123456789abcdef0123456789abcdef01234567"})
        # Rows of different labels share a stack.
        stacks = [tuple(stack["location_indices"]) for stack in self.tables["stack_table"][1:]]
        self.assertEqual(len(stacks), 7)
        self.assertEqual(len(set(stacks)), 7)

    def test_about(self):
        self.load(self.report("labelled"))
        cpu = self.profiles["cpu"]
        self.assertEqual(cpu["time_unix_nano"], [1790000000123456789])
        self.assertEqual(cpu["duration_nano"], [2500000000])
        self.assertEqual(cpu["period"], [1000000])
        self.assertEqual(self.string(cpu["sample_type"][0], "unit_strindex"), "ns")
        self.assertEqual(self.attributes(cpu["attribute_indices"]),
                         {"greenprof.sampled_ns": 890000000, "greenprof.signals": 903, "greenprof.samples": 900,
                          "greenprof.drop_ring_full": 3})
        self.assertEqual(self.scope["name"], [b"greenprof"])
        self.assertEqual(self.scope["attributes"][0]["value"][0]["string_value"], [b"1.10"])
        self.assertEqual(self.resource["attributes"][0]["value"][0]["string_value"],
                         ["server </script> \ufffd".encode()])

    def test_capture(self):
        self.load(self.export())
        self.assertEqual((self.total(), self.total("samples")), (4600000, 5))
        self.assertEqual(round(self.total() / 1000), self.folded_total_us())
        self.assertEqual({trace for *_, trace in self.rows()},
                         {None, support.TRACE, "00000000000000000000000000000001"})

    def test_empty(self):
        for path in (self.report("empty"), self.export(script=support.NO_SAMPLES)):
            self.load(path)
            self.assertEqual(self.rows(), [])

    def test_huge(self):
        self.load(self.report("huge"))
        self.assertEqual(self.total(), 9100000000000000007)

    def test_in_process(self):
        total_ns, path = self.dumps()
        self.load(path)
        self.assertEqual(self.total(), total_ns)
        self.assertEqual([(attributes, trace) for _, _, attributes, trace in self.rows() if attributes or trace], [])

    def test_full_disk(self):
        self.expect_no_partial_output()


if protoc_reader.PROTOC is None:
    support.skip("there is no protoc")
support.main()
