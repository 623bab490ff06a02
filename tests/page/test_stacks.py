# SPDX-License-Identifier: MIT
"""The call tree, whose rows unfold, and the stack chart, which is in the order of time."""
from browser import main
from flame_case import FlameCase
from flame_data import MS, profile
from rich_page import rich_page

CHART = "greenprofApp.views.find((view) => view.key === 'stacks')"


class CallTree(FlameCase):
    def tree(self):
        """[(level, unfolded, name, total, self)] of the rows."""
        return [tuple(row) for row in self.browser.eval(
            "[...document.querySelectorAll('.call-tree tbody tr')].map((row) => [Number(row.getAttribute('aria-level')), row.getAttribute('aria-expanded'), "
            "row.cells[0].textContent.replace(/^[▾▸\\s]+/, '').split('  ')[0], row.cells[1].textContent, row.cells[3].textContent])")]

    def current(self):
        return self.browser.eval("document.activeElement.cells?.[0].textContent.replace(/^[▾▸\\s]+/, '').split('  ')[0] ?? null")

    def test_the_heaviest_stack_is_open_and_sums_are_those_of_the_flame_graph(self):
        self.show(profile(), "view=tree")
        self.assertEqual(self.tree(), [(1, "true", "all", "100.000 ms", "0 ns"), (2, "true", "main", "100.000 ms", "0 ns"),
                                       (3, "true", "turn", "55.000 ms", "25.000 ms"), (4, "false", "PyEval", "30.000 ms", "0 ns"),
                                       (3, "false", "serve", "45.000 ms", "0 ns")])
        self.keys("*")
        drawn = self.tree()
        self.show(profile())
        boxes = {(box["name"], box["total"]) for box in self.boxes()}
        for _, _, name, total, _ in drawn:
            self.assertIn((name, float(total.split()[0]) * MS), boxes)

    def test_keys_and_clicks_fold_and_unfold(self):
        self.show(profile(), "view=tree")
        self.keys("End")
        self.assertEqual(self.current(), "serve")
        self.keys("ArrowRight", "ArrowRight")
        self.assertEqual(self.current(), "parse", "its heaviest callee")
        self.keys("ArrowLeft", "ArrowLeft")
        self.assertEqual(self.current(), "serve")
        self.assertEqual(self.tree()[-1][:3], (3, "false", "serve"))
        self.keys("ArrowUp", "Home", "Enter")
        self.assertEqual([row[2] for row in self.tree()], ["all"])
        self.browser.click_on(".call-tree tbody tr")
        self.assertEqual(len(self.tree()), 5)
        self.assertEqual(self.browser.eval("document.querySelectorAll('.call-tree tr[tabindex=\"0\"]').length"), 1, "Tab reaches one row")

    def test_filters_shapes_and_searches_hold(self):
        self.show(profile(), "view=tree&thread=io&search=^serve$")
        self.assertEqual(self.tree()[0][3], "45.000 ms")
        self.assertEqual(self.browser.eval("[...document.querySelectorAll('.call-tree .found')].map((row) => row.getAttribute('aria-level'))"), ["3"])
        self.keys("I")
        self.assertEqual([row[2:4] for row in self.tree()][:2], [("all", "45.000 ms"), ("turn", "30.000 ms")])


class StackChart(FlameCase):
    def lanes(self):
        """Text of each lane -> its boxes: name, row, from, to in ms."""
        return self.browser.eval(f"""Object.fromEntries({CHART}.model().lanes.map((lane) => [lane.text, lane.boxes.map((box) => [
            greenprofApp.trees.nameOf(greenprofApp.weights().tree, greenprofApp.weights().tree.frame[box.node]), box.row, box.from / 1e6, box.to / 1e6])]))""")

    def sight(self):
        return self.browser.eval(f"[{CHART}.sight.from / 1e6, {CHART}.sight.to / 1e6]")

    def test_lanes_are_in_the_order_of_time(self):
        self.show(rich_page(), "view=stacks")
        lanes = self.lanes()
        self.assertEqual(list(lanes)[0], "12 handle", "the heaviest first")
        boxes = {(name, row): (start, end) for name, row, start, end in lanes["12 handle"]}
        self.assertEqual(boxes, {("handle", 0): (20, 43), ("parse", 1): (20, 34), ("json_loads", 2): (20, 34), ("unescape", 3): (20, 34),
                                 ("query", 1): (34, 41), ("recv", 2): (34, 40), ("[parked]", 3): (34, 40), ("[ready]", 2): (40, 41), ("render", 1): (41, 43)})
        self.keys("c")
        self.assertEqual(list(self.lanes()), ["thread MainThread"])
        self.assertEqual(self.selection("lanes"), "thread")

    def test_several_stacks_in_a_tick_stand_side_by_side(self):
        self.show(profile(), "view=stacks&weight=wall")
        one = sorted((start, end) for name, _, start, end in self.lanes()["1 worker"] if name in ("parse", "memcpy", "query"))
        self.assertEqual(one[0][0], 0)
        self.assertEqual(max(end for _, end in one if end < 20), 10, "30 ms in a tick of 10 fill it")
        self.assertEqual(len(self.lanes()), 3)

    def test_wheel_keys_clicks_and_links(self):
        self.show(rich_page(), "view=stacks")
        x, y, width, _ = self.browser.place(".lane canvas")
        self.browser.wheel(x + width / 2, y + 10, -100, modifiers=["Control"])
        start, end = self.browser.wait(f"{CHART}.sight.to < 1e8 && [{CHART}.sight.from, {CHART}.sight.to]")
        self.assertAlmostEqual((start + end) / 2 / MS, 50, 0)
        self.browser.wait("location.hash.includes('sight')")
        self.keys("0")
        self.assertEqual(self.sight(), [0, 100])
        self.keys("+", "ArrowLeft")
        self.assertEqual(self.sight(), [15, 65])
        self.keys("0")
        self.browser.click(x + width * .27, y + 5)
        self.assertEqual([round(one, 1) for one in self.sight()], [17.7, 45.3], "the box and a tenth on each side")
        self.browser.move(x + width / 2, y + 25)
        self.assertIn("parse", self.browser.wait("document.querySelector('section ~ div .details b, div .details b')?.textContent && "
                                                 "[...document.querySelectorAll('.details')].map((one) => one.textContent).join()"))
        self.keys("Enter")
        self.assertEqual(self.selection("view"), "flame")
        self.assertLess(self.box("all")["total"], 99 * MS)

    def test_without_time_it_says_so(self):
        page = profile(tick_ns=0)
        self.show(page, "view=stacks")
        self.assertIn("have no time", self.text(".empty"))


if __name__ == "__main__":
    main()
