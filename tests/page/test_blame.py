#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The view of blame: delays by what caused them, what ended waits, coroutines that nothing resumed."""
from browser import PageCase, main
from page_data import PageData
from requests_data import MS, blame_page

VIEW = "greenprofApp.view"


def rows(section, table=0):
    return (f"[...document.querySelectorAll('section[aria-label={section}] table')[{table}].querySelectorAll('tbody tr')]"
            ".map((row) => [...row.cells].map((cell) => cell.textContent))")


def head(section, text):
    return f"([...document.querySelectorAll('section[aria-label={section}] th button')].find((one) => one.textContent.startsWith('{text}')))"


class BlameCase(PageCase):
    def open(self, hash=""):
        return self.show(blame_page(), "view=blame" + (hash and "&" + hash))

    def selection(self, *keys):
        return [self.browser.eval(f"greenprofApp.selection.{key}") for key in keys]

    def reason(self, section):
        return self.browser.eval(f"document.querySelector('section[aria-label={section}] .none').textContent")


class Delays(BlameCase):
    def test_by_names(self):
        page = self.open()
        self.assertEqual(page.eval(rows("delays", 1)), [["crunch", "worker", "zip", "50.000 ms", "30.000 ms", "3"],
                                                        ["worker", "worker", "sort", "4.000 ms", "4.000 ms", "1"]])
        self.assertIn("3 long slices, for which others were ready and waited 54.000 ms in all", page.eval(f"{VIEW}.sentence()"))

    def test_by_coroutines_and_endpoints(self):
        page = self.open("group=coroutine")
        self.assertEqual(page.eval(rows("delays", 1)), [["12 crunch", "13 worker", "zip", "45.000 ms", "30.000 ms", "2"],
                                                        ["12 crunch", "14 worker", "hash", "5.000 ms", "5.000 ms", "1"],
                                                        ["14 worker", "13 worker", "sort", "4.000 ms", "4.000 ms", "1"]])
        page.key("g")
        self.assertEqual(page.eval(rows("delays", 1)), [["no request", "GET /a", "zip", "45.000 ms", "30.000 ms", "2"],
                                                        ["no request", "GET /b", "hash", "5.000 ms", "5.000 ms", "1"],
                                                        ["GET /b", "GET /a", "sort", "4.000 ms", "4.000 ms", "1"]])
        page.key("g")
        self.assertEqual(self.selection("group"), [""])

    def test_matrix(self):
        page = self.open("group=coroutine")
        self.assertEqual(page.eval("[...document.querySelectorAll('.matrix th')].map((one) => one.textContent)"),
                         ["kept its thread", "13 worker", "14 worker", "12 crunch", "14 worker"])
        self.assertEqual(page.eval("[...document.querySelectorAll('.matrix td')].map((one) => one.textContent)"),
                         ["45.000 ms", "5.000 ms", "4.000 ms", ""])

    def test_sorted_by_click_and_by_key(self):
        page = self.open("group=coroutine")
        page.click_on(head("delays", "times"))
        page.key("Enter")
        self.assertEqual([row[5] for row in page.eval(rows("delays", 1))], ["1", "1", "2"])

    def test_filters(self):
        for hash, total in (("coro=2", "4.000 ms"), (f"trace={2:032x}", "4.000 ms"), ("endpoint=GET+/b&coro=0", None), ("request=1", "4.000 ms"),
                            (f"from={40 * MS}&to={90 * MS}", "30.000 ms")):
            with self.subTest(hash):
                page = self.open(hash)
                if total is None:
                    self.assertEqual(self.reason("delays"), "None is left by the filters.")
                else:
                    self.assertIn(total, [row[3] for row in page.eval(rows("delays", 1))])

    def test_a_victim_is_shown_what_it_waited_for_only(self):
        page = self.open("coro=1&group=coroutine")
        self.assertEqual([row[:4] for row in page.eval(rows("delays", 1))],
                         [["12 crunch", "13 worker", "zip", "45.000 ms"], ["14 worker", "13 worker", "sort", "4.000 ms"]])


class Slices(BlameCase):
    def test_what_delayed_most_comes_first(self):
        page = self.open()
        self.assertEqual(page.eval(rows("slices")), [["12 crunch", "50.000 ms", "30.000 ms", "zip ← work ← main", "30.000 ms", "1", "main"],
                                                     ["12 crunch", "10.000 ms", "20.000 ms", "hash ← work ← main", "20.000 ms", "2", "main"],
                                                     ["14 worker", "100.000 ms", "5.000 ms", "sort ← work ← main", "4.000 ms", "1", "main"]])
        page.click_on(head("slices", "start"))
        self.assertEqual(self.selection("sort"), ["-start"])
        self.assertEqual([row[1] for row in page.eval(rows("slices"))], ["100.000 ms", "50.000 ms", "10.000 ms"])

    def test_one_leads_to_its_timeline_and_its_flame_graph(self):
        page = self.open()
        second = "section[aria-label=slices] tbody tr:nth-child(2)"
        page.click_on(second)
        self.assertEqual(self.selection("row"), ["hog0"])
        self.assertIn("12 crunch, which ran hash, kept thread main for 20.000 ms, from 10.000 ms on", page.eval("document.querySelector('.slice p').textContent"))
        self.assertEqual([row[:2] for row in page.eval(rows("slices", 1))], [["13 worker", "15.000 ms"], ["14 worker", "5.000 ms"]])
        page.click_on("(document.querySelectorAll('.slice button')[0])")
        self.assertEqual(self.selection("view", "from", "to", "row"), ["timeline", str(10 * MS), str(30 * MS), "coro:0"])
        page.eval("greenprofApp.undo()")
        page.click_on("(document.querySelectorAll('.slice button')[1])")
        self.assertEqual(self.selection("view", "weight", "coro"), ["flame", "delay", "0"])


class Waits(BlameCase):
    def test_what_ended_waits(self):
        page = self.open("group=coroutine")
        self.assertEqual(page.eval(rows("wakes")), [["12 crunch", "13 worker", "15.000 ms", "10.000 ms", "13.000 ms", "2"],
                                                    ["13 worker", "14 worker", "8.000 ms", "8.000 ms", "0 ns", "1"]])

    def test_what_nothing_resumed(self):
        page = self.open()
        self.assertEqual(page.eval(rows("unresumed")), [["15 reader", "parked", "15.000 ms", "985.000 ms", "recv ← read_loop", "read_loop", "spawn_all"]])
        page.click_on("section[aria-label=unresumed] tbody tr")
        self.assertEqual(self.selection("view", "weight", "coro"), ["flame", "wall", "3"])

    def test_longest_slices(self):
        page = self.open()
        self.assertEqual([row[:2] for row in page.eval(rows("longest"))],
                         [["12 crunch", "30.000 ms"], ["14 worker", "5.000 ms"], ["13 worker", "4.000 ms"], ["15 reader", "1.000 ms"], ["16 worker", "1.000 ms"]])


class Nothing(BlameCase):
    def test_no_coroutines(self):
        data = PageData()
        data.row("row", ("main",), label=0, state=0, weight=MS, samples=1)
        page = self.show(data, "view=blame")
        self.assertIn("no switch was seen", page.eval(f"{VIEW}.empty()"))

    def test_each_part_says_why_it_is_empty(self):
        data = PageData(coroutines=["worker"])
        data.add("coro", id=1, name=0, entry=0)
        self.show(data, "view=blame")
        self.assertIn("GREENPROF_HOG_MS", self.reason("delays"))
        self.assertIn("is not known", self.reason("wakes"))
        self.assertIn("no timeline", self.reason("unresumed"))
        self.assertIn("no coroutine that the filters leave has a ledger", self.reason("longest"))

    def test_long_slices_without_victims(self):
        data = PageData(coroutines=["worker"], threads=["main"])
        data.add("coro", id=1, name=0, entry=0)
        data.add("hog", coro=0, thread=1, trace=0, start=MS, length=20 * MS, delay=0, victims=0)
        page = self.show(data, "view=blame")
        self.assertIn("Nothing is known to have been ready meanwhile", self.reason("delays"))
        self.assertEqual(page.eval(rows("slices")), [["1 worker", "1.000 ms", "20.000 ms", "", "0 ns", "0", "main"]], "no sample, no name")


if __name__ == "__main__":
    main()
