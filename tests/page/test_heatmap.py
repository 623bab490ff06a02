# SPDX-License-Identifier: MIT
"""The heatmap of scheduler delays: cells, what is beside it, and what mouse and keys do with it."""
from browser import PageCase, main
from page_data import PageData
from timeline_data import MS, TRACES, history, with_heat, with_request

VIEW = "greenprofApp.views.find((view) => view.key === 'heatmap')"


class HeatmapCase(PageCase):
    def open(self, page, hash="", **size):
        return self.show(page, "view=heatmap&" + hash, **size)

    def view(self, expression):
        return self.browser.eval(f"{VIEW}.{expression}")

    def place(self, column, row):
        """Middle of a cell in the window."""
        left, top = self.browser.place(f"({VIEW}.canvas)")[:2]
        grid = self.view("grid")
        return left + self.browser.eval("HEAT_LEFT") + (column + .5) * grid["cell"], top + grid["height"] - (row + .5) * grid["line"]

    def selected(self, **wanted):
        for key, value in wanted.items():
            self.browser.wait(f"greenprofApp.selection.{key} === {value!r}")

    def tells(self, *texts):
        for text in texts:
            self.browser.wait(f"{VIEW}.line.textContent.includes({text!r})")

    def text(self, selector):
        return self.browser.eval(f"[...document.querySelectorAll({selector!r})].filter((one) => one.offsetParent).map((one) => one.textContent).join('|')")

    def lists(self):
        """Texts of the tables beside it: rows of cells."""
        return self.browser.eval(f"[...{VIEW}.lists.element.querySelectorAll('table')].map((table) => [...table.tBodies[0].rows].map("
                                 "(row) => [...row.cells].map((cell) => cell.textContent)))")


class Cells(HeatmapCase):
    def test_each_count_has_a_cell(self):
        self.open(with_heat(history()))
        self.assertEqual({(box["column"], box["row"]): box["count"] for box in self.view("boxes")}, {(0, 0): 5, (4, 1): 1, (7, 2): 40, (8, 2): 2})
        low, high = self.view("boxes[0]"), self.view("boxes[2]")
        self.assertGreater(low["y"], high["y"], "long delays are above")
        self.assertLess(low["x"], high["x"])
        self.assertEqual(low["name"], "5")

    def test_greater_counts_are_darker_on_paper_and_brighter_in_the_dark(self):
        for dark in (False, True):
            self.browser.dark(dark)
            self.open(with_heat(history()))
            few, many = (self.browser.eval(f"""(() => {{
                const view = {VIEW}, box = view.boxes[{number}];
                const at = [box.x + box.width - 4, box.y + 3].map((one) => Math.round(one * devicePixelRatio));
                return [...view.canvas.getContext("2d").getImageData(at[0], at[1], 1, 1).data].reduce((sum, one) => sum + one, 0);
            }})()""") for number in (1, 2))
            self.assertEqual(many > few, dark)

    def test_the_lightness_of_the_scale_rises_evenly(self):
        self.open(with_heat(history()))
        for dark in (False, True):
            shades = self.browser.eval(f"""[0, .25, .5, .75, 1].map((part) => {{
                const [red, green, blue] = heatColour(part, {str(dark).lower()}).match(/[0-9]+/g).map(Number);
                return .2126 * red + .7152 * green + .0722 * blue;
            }})""")
            steps = [(after - before) * (1 if dark else -1) for before, after in zip(shades, shades[1:])]
            self.assertGreater(min(steps), 25)

    def test_legend_and_labels(self):
        self.open(with_heat(history()))
        self.assertEqual(self.browser.eval(f"[...{VIEW}.legend.children].map((one) => one.textContent)"), ["1", "3", "11", "40", "coroutines"])
        self.assertEqual(self.browser.eval("[0, 1, 1500, 62234000, 1e9].map(shortTime)"), ["0 ns", "1 ns", "1.5 µs", "62.2 ms", "1 s"])

    def test_narrow_columns_are_drawn_together(self):
        self.open(with_heat(history(), 1000, {(100, 1): 2, (101, 1): 3, (900, 0): 7}), width=400, height=700)
        grid = self.view("grid")
        self.assertGreaterEqual(grid["cell"], 3)
        self.assertEqual(sum(box["count"] for box in self.view("boxes")), 12)
        self.assertLessEqual(self.browser.eval("document.documentElement.scrollWidth"), 400)

    def test_the_last_row_has_all_that_is_longer(self):
        page = with_heat(history())
        page.head["heat"]["edges_ns"][-1] = 10**15
        self.open(page)
        self.tells("after a delay of 10 ms or more")

    def test_where_there_is_nothing_it_says_why(self):
        page = PageData()
        page.row("row", ("main",), label=0, state=0, weight=MS, samples=1)
        self.open(page)
        self.assertIn("greenprof run", self.text(".empty"))
        self.open(history())
        self.assertIn("prof_coro_ready()", self.text(".empty"))
        self.open(with_heat(history(), counts={(0, 0): 0}))
        self.assertIn("No coroutine had to wait", self.text(".empty"))


class Choosing(HeatmapCase):
    def test_a_click_opens_the_flame_graph_of_then(self):
        self.open(with_heat(history()))
        self.browser.click(*self.place(7, 2))
        self.selected(view="flame", weight="ready", **{"from": str(70 * MS)}, to=str(80 * MS))

    def test_ranges_are_whole_ticks(self):
        self.open(with_heat(history(tick_ns=30 * MS)))
        self.browser.click(*self.place(7, 2))
        self.selected(view="flame", **{"from": str(60 * MS)}, to=str(90 * MS))

    def test_without_ticks_it_stays(self):
        self.open(with_heat(history(tick_ns=0)))
        self.assertIn("have no time", self.text(".sentence"))
        self.browser.click(*self.place(7, 2))
        self.selected(view="heatmap", **{"from": str(70 * MS)}, to=str(80 * MS))
        self.assertTrue(self.view("flame.disabled"))

    def test_a_drag_and_shift_extend_to_a_range(self):
        self.open(with_heat(history()))
        self.browser.drag(*self.place(2, 1), *self.place(4, 0))
        self.selected(view="heatmap", **{"from": str(20 * MS)}, to=str(50 * MS))
        self.browser.click(*self.place(7, 1), modifiers=["Shift"])
        self.selected(view="heatmap", **{"from": str(20 * MS)}, to=str(80 * MS))
        self.browser.click(*self.place(0, 1), modifiers=["Shift"])
        self.selected(view="heatmap", **{"from": "0"}, to=str(80 * MS))
        self.browser.key("Escape")
        self.selected(**{"from": ""}, to="")

    def test_the_pointer_tells(self):
        self.open(with_heat(history()))
        self.browser.move(*self.place(7, 2))
        self.tells("40 coroutines", "from 70.000 ms to 80.000 ms", "delay of 10 ms to 100 ms", "of 40 then")

    def test_keys_move_a_cursor_that_enter_chooses(self):
        self.open(with_heat(history()))
        self.tells("40 coroutines", "from 70.000 ms")  # the most of the longest delays
        for key in ["ArrowLeft"] * 3 + ["ArrowDown"]:
            self.browser.key(key)
        self.tells("1 coroutine", "from 40.000 ms to 50.000 ms", "delay of 1 ms to 10 ms")
        for key in ["ArrowLeft"] * 9 + ["ArrowDown"] * 9:
            self.browser.key(key)
        self.tells("5 coroutines", "from 0 ns")
        self.browser.key("ArrowRight")
        self.browser.key("Enter")
        self.selected(view="flame", weight="ready", **{"from": str(10 * MS)}, to=str(20 * MS))

    def test_keys_make_a_range(self):
        self.open(with_heat(history()))
        for key in ["ArrowLeft"] * 5 + ["[", "ArrowRight", "ArrowRight", "]"]:
            self.browser.key(key)
        self.selected(view="heatmap", **{"from": str(20 * MS)}, to=str(50 * MS))
        self.browser.key("ArrowLeft")
        self.browser.key("[")
        self.selected(**{"from": str(30 * MS)}, to=str(50 * MS))
        self.browser.key("Enter")
        self.selected(view="flame", weight="ready", **{"from": str(30 * MS)})


class Beside(HeatmapCase):
    def test_the_longest_delays_of_the_chosen_time(self):
        self.open(with_heat(history()), f"from={30 * MS}&to={90 * MS}")
        delays, traces = self.lists()
        self.assertEqual(delays, [["7 worker", "10.000 ms", "10.000 ms", "1"], ["8 <b>query</b>", "10.000 ms", "10.000 ms", "1"]])
        self.assertEqual(sorted(traces), sorted([[TRACES[0], "1"], [TRACES[1], "1"]]))
        self.browser.click_on(f"({VIEW}.lists.element.querySelectorAll('tbody tr')[1])")
        self.selected(view="timeline", row="coro:1")

    def test_requests_that_were_running(self):
        self.open(with_heat(with_request(history())))
        for _ in range(3):
            self.browser.key("ArrowLeft")
        delays, requests = self.lists()
        self.assertEqual([row[0] for row in delays], ["7 worker"])
        self.assertEqual(requests, [["GET /cart", "60.000 ms", "10.000 ms", TRACES[0][:8]]])
        for _ in range(5):
            self.browser.key("ArrowRight")
        self.assertEqual(self.lists()[1], [[TRACES[0], "1"], [TRACES[1], "1"]], "no request then: traces")
        self.browser.key("ArrowLeft")
        for _ in range(5):
            self.browser.key("ArrowLeft")
        self.browser.click_on(f"({VIEW}.lists.element.querySelectorAll('table')[1].tBodies[0].rows[0])")
        self.selected(view="timeline", request="0")


if __name__ == "__main__":
    main()
