# SPDX-License-Identifier: MIT
"""Flame graphs as SVG: where the frames are, and what they say."""
import re
import xml.etree.ElementTree as ElementTree

import support

SVG = "{http://www.w3.org/2000/svg}"


class Flamegraph(support.Files):
    form = "flamegraph"

    def test_golden(self):
        """Style and script are files of their own."""
        self.check_golden("example.svg", re.sub(r"<!\[CDATA\[.*?\]\]>", "", self.written("example").decode("utf8"), flags=re.S))

    def parse(self, report):
        return ElementTree.fromstring(self.written(report))

    def frames(self, report):
        for group in self.parse(report).find(f"{SVG}g[@id='frames']"):
            rect = group.find(f"{SVG}rect")
            title = group.find(f"{SVG}title").text.split("\n")
            yield title[0], title[1:], float(rect.get("x")), float(rect.get("width")), float(rect.get("y")), group

    def test_widths(self):
        by_name = {}
        for name, about, x, width, y, group in self.frames("example"):
            by_name.setdefault(name, []).append((x, width, y))
            self.assertGreaterEqual(x, 10)
            self.assertLessEqual(x + width, 1190.001)
            self.assertGreaterEqual(width, 0.1)
        self.assertAlmostEqual(by_name["all"][0][1], 1180, places=3)
        self.assertAlmostEqual(sum(width for _, width, _ in by_name["main"]), 1180 * 0.995002, places=1)
        # Callees lie within their caller, one row above.
        main = by_name["main"][0]
        fib = max(by_name["fib"], key=lambda place: place[2])
        self.assertEqual(main[2] - fib[2], 17)
        self.assertGreaterEqual(fib[0], main[0] - 0.001)
        self.assertLessEqual(fib[0] + fib[1], main[0] + main[1] + 0.001)

    def test_rows_do_not_overlap(self):
        rows = {}
        for name, about, x, width, y, group in self.frames("example"):
            rows.setdefault(y, []).append((x, width))
        for row in rows.values():
            row.sort()
            for (x, width), (next_x, _) in zip(row, row[1:]):
                self.assertLessEqual(x + width, next_x + 0.001)

    def test_text_fits(self):
        for name, about, x, width, y, group in self.frames("example"):
            text = group.find(f"{SVG}text")
            if text is not None:
                self.assertLessEqual(len(text.text) * 6.65, width)

    def test_details(self):
        details = {name: about for name, about, *_ in self.frames("example")}
        self.assertEqual(details["parse<std::map<int, char const*> >(a; b)"],
                         ["100.000 ms, 10.00 %, 100 samples", "/src/app/parse.cc:5", "/opt/app/server"])
        self.assertIn("]]></script><script>alert(1)</script>", details)

    def test_kinds(self):
        kinds = {name: group.get("class")[0] for name, *_, group in self.frames("example")}
        self.assertEqual(kinds["main"], "a")
        self.assertEqual(kinds["na\u00efve \"quoted\" <&>"], "l")
        self.assertEqual(kinds["clock_gettime"], "k")
        self.assertEqual(kinds["[switching]"], "p")
        self.assertEqual(kinds["[coroutine 2 \u65e5\u672c\u8a9e]"], "g")

    def test_is_self_contained(self):
        text = self.written("example").decode("utf8")
        addresses = set(re.findall(r"https?://[^\"' )]+", text))
        self.assertEqual(addresses, {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"})
        self.assertNotIn("<script>alert", text)

    def test_empty(self):
        self.assertIn("no samples", "".join(self.parse("empty").itertext()))
        self.assertEqual(list(self.frames("empty")), [])


support.main()
