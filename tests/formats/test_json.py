# SPDX-License-Identifier: MIT
"""greenprof's own JSON: what src/export/json.c promises."""
import json

import support


class Json(support.Files):
    form = "json"

    def load(self, path):
        with open(path, "rb") as file:
            data = file.read()
        self.assertNotIn(b"</script>", data)
        report = json.loads(data)
        self.assertEqual((report["format"], report["version"]), ("greenprof", 1))
        self.assertEqual(sum(row["weight_ns"] for row in report["rows"]), report["total_ns"])
        for row in report["rows"]:
            self.assertTrue(row["stack"])
            self.assertTrue(all(0 <= frame < len(report["frames"]) for frame in row["stack"]))
            self.assertLess(row.get("label", -1), len(report["labels"]))
        for frame in report["frames"]:
            self.assertLess(frame.get("mapping", -1), len(report["mappings"]))
        return report

    def test_labelled_golden(self):
        with open(self.report("labelled"), encoding="utf8") as file:
            self.check_golden("labelled.json", file.read())

    def test_labelled(self):
        report = self.load(self.report("labelled"))
        self.assertEqual(report["title"], "server </script> \ufffd")
        self.assertEqual(report["start_realtime_ns"], 1790000000123456789)
        self.assertEqual(report["frames"][7]["function"], "]]></script><script>alert('1;2')</script>\n\"\\ \ufffd\ufffd(")
        self.assertEqual([frame["function"] for frame in report["frames"] if frame.get("inlined")],
                         ["middle", "inner"])
        self.assertEqual(int(report["frames"][0]["address"], 16), 0x400123)
        self.assertEqual(report["counters"]["drop_ring_full"], 3)
        self.assertEqual(report["labels"][3], {"coroutine_id": 9007199254740993})
        self.assertNotIn("label", report["rows"][6])

    def test_capture(self):
        report = self.load(self.export())
        self.assertEqual((report["total_ns"], report["sampled_ns"], report["samples"]), (4600000, 4500000, 5))
        self.assertEqual(round(report["total_ns"] / 1000), self.folded_total_us())
        labels = [report["labels"][row["label"]] for row in report["rows"]]
        self.assertIn({"coroutine": 'wor"k;er', "coroutine_id": 3, "thread": "pool-1", "thread_id": 11,
                       "trace_id": support.TRACE}, labels)
        self.assertIn({"coroutine": "[thread main]", "coroutine_id": 1, "thread": "main", "thread_id": 10}, labels)
        self.assertEqual(report["mappings"], [{"path": "/opt/app/server", "build_id": "0102", "start": "0x401000",
                                               "end": "0x409000"}])
        self.assertIn("0x401010", [frame.get("address") for frame in report["frames"]])

    def test_filters(self):
        report = self.load(self.export("--coroutine", "3"))
        self.assertEqual({report["labels"][row["label"]]["coroutine_id"] for row in report["rows"]}, {3})
        report = self.load(self.export("--by", "trace"))
        self.assertEqual({report["frames"][row["stack"][0]]["function"] for row in report["rows"]},
                         {"[no trace]", f"[trace {support.TRACE}]", "[trace 00000000000000000000000000000001]"})

    def test_empty(self):
        for path in (self.report("empty"), self.export(script=support.NO_SAMPLES)):
            self.assertEqual(self.load(path)["rows"], [])

    def test_huge(self):
        self.assertEqual(self.load(self.report("huge"))["total_ns"], 9100000000000000007)

    def test_in_process(self):
        total_ns, path = self.dumps()
        report = self.load(path)
        self.assertEqual(report["total_ns"], total_ns)
        self.assertEqual(report["labels"], [])
        self.assertTrue(any(mapping["path"].endswith("dump_all") for mapping in report["mappings"]))
        self.assertEqual(sum(frame["function"] == "main" and "address" in frame for frame in report["frames"]) > 0, True)

    def test_full_disk(self):
        self.expect_no_partial_output()


support.main()
