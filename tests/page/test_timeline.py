# SPDX-License-Identifier: MIT
"""The timeline: boxes of a history that is known, and what mouse and keys do with them."""
import math

from browser import PageCase, main
from page_data import PageData
from timeline_data import MS, PARKED, READY, RUNNING, STATES, TRACES, WAITING, activity, history, with_hog, with_request, with_spans

VIEW = "greenprofApp.views.find((view) => view.key === 'timeline')"


class TimelineCase(PageCase):
    def open(self, page, hash="", **size):
        return self.show(page, "view=timeline&" + hash, **size)

    def view(self, expression):
        return self.browser.eval(f"{VIEW}.{expression}")

    def boxes(self, coro=None, thread=None):
        """Boxes as they are drawn, of a coroutine's row or of a thread's, from left to right."""
        number = coro if thread is None else thread
        return [box for box in self.view("boxes") if number is None or (box["onThread"] == (thread is not None) and box["number"] == number)]

    def x(self, ms):
        scale = self.view("place.scale")
        return scale["left"] + (ms * MS - scale["from"]) / (scale["to"] - scale["from"]) * scale["width"]

    def y(self, coro):
        return self.view(f"marks.middleOf({coro})")

    def origin(self):
        return self.browser.place(f"({VIEW}.canvas)")[:2]

    def at(self, ms, y):
        """A moment and a height of the canvas in the window."""
        left, top = self.origin()
        return left + self.x(ms), top + y

    def drag(self, first, last, **how):
        y = self.y(0)
        self.browser.drag(*self.at(first, y), *self.at(last, y), **how)

    def selection(self, key):
        return self.browser.eval(f"greenprofApp.selection.{key}")

    def selected(self, **wanted):
        """Wait until the selection is so: what a click does is done, but for what the browser has still to do."""
        for key, value in wanted.items():
            self.browser.wait(f"greenprofApp.selection.{key} === {value!r}")

    def text(self, selector):
        return self.browser.eval(f"[...document.querySelectorAll({selector!r})].filter((one) => one.offsetParent).map((one) => one.textContent).join('|')")

    def tells(self, text):
        """Wait until the details have a text."""
        self.browser.wait(f"{VIEW}.details.line.textContent.includes({text!r})")

    def names(self):
        """Names of the rows, from the top."""
        return self.view("kept.rows.kind.map((_, row) => " + VIEW + ".kept.rows.textOf(row))")

    def pixel(self, x, y):
        return self.browser.eval(f"[...{VIEW}.canvas.getContext('2d').getImageData(Math.round({x} * devicePixelRatio), Math.round({y} * devicePixelRatio), 1, 1).data]")


class Rows(TimelineCase):
    def test_each_state_has_its_box(self):
        self.open(history())
        for coro, parts in STATES.items():
            boxes = self.boxes(coro)
            self.assertEqual([box["state"] for box in boxes], [state for state, _, _ in parts], coro)
            for box, (_, first, last) in zip(boxes, parts):
                self.assertAlmostEqual(box["x"], self.x(first), 6)
                self.assertAlmostEqual(box["width"], self.x(last) - self.x(first), 6)
                self.assertEqual(box["length"], (last - first) * MS)

    def test_threads_show_which_coroutine_ran(self):
        self.open(history())
        self.assertEqual([(box["name"], box["length"] // MS) for box in self.boxes(thread=0)], [("worker", 10), ("worker", 30), ("worker", 20)])
        self.assertEqual([(box["name"], box["share"]) for box in self.boxes(thread=1)], [("<b>query</b>", .5), ("<b>query</b>", 1)])
        self.assertEqual(self.names(), ["Threads (2): which coroutine ran there", "thread main", "thread io", "Coroutines (3)", "7 worker", "9 worker",
                                        "8 <b>query</b>"])

    def test_states_have_colours_and_patterns(self):
        self.open(history())
        y = self.y(0)
        red, _, blue, _ = self.pixel(self.x(1), y)
        self.assertGreater(red, blue, "what ran is warm")
        red, _, blue, _ = self.pixel(self.x(29), y)
        self.assertGreater(blue, red, "what was parked is cool")
        self.assertEqual(len({tuple(self.pixel(self.x(39) - step, y)) for step in range(8)} - {(0, 0, 0, 0)}) > 1, True, "what was ready is striped")

    def test_what_ran_in_turns_is_as_high_as_its_share(self):
        self.open(history())
        box = self.boxes(1)[0]
        self.assertEqual(box["share"], .5)
        x = box["x"] + box["width"] - 3
        low, high = self.pixel(x, box["y"] + box["height"] - 2), self.pixel(x, box["y"] + 2)
        self.assertGreater(low[0], low[2], "below: what ran")
        self.assertGreater(high[2], high[0], "above: short waits")

    def test_a_threads_own_stack_shows_only_what_it_ran(self):
        page = history()
        page.tables["coro"][2]["flags"] = 1
        self.open(page)
        self.assertEqual([box["state"] for box in self.boxes(2)], [RUNNING])

    def test_narrow_slices_are_one_column_as_high_as_what_ran(self):
        page = PageData(duration_ns=100 * MS, threads=["main"], coroutines=["worker"])
        page.add("coro", id=1)
        for i in range(20000):
            activity(page, 0, i * .005, .002, .002, .003, i * .005 + .005, thread=1)
        self.open(page)
        self.assertEqual(self.boxes(), [])
        self.assertGreater(self.view("merges"), 500)
        y, height = self.view("marks.bandOf(3).y"), self.view("marks.bandOf(3).height")
        column = [self.pixel(self.x(50), y + line) for line in range(height)]
        warm = sum(red > blue for red, _, blue, _ in column)
        self.assertAlmostEqual(warm / height, .4, delta=.1)
        self.view("look(50e6, 50.1e6)")
        self.view("paint()")
        self.assertEqual([box["state"] for box in self.boxes(0)][:3], [RUNNING, PARKED, RUNNING])

    def test_sums_of_columns_are_those_of_the_activities(self):
        """What is drawn of a row adds up to its times, whichever way it was drawn."""
        self.open(history())
        for width in (7, 60, 900):
            cover = self.browser.eval(f"""(() => {{
                const view = {VIEW}, painter = new TimelinePainter(view.store, view.app.looks, {{ ...view.place.scale, width: {width} }}, 40);
                painter.flush = () => {{}};
                painter.coro(0, 5, 13, 0);
                const sums = painter.cover.map((one) => one.reduce((sum, part) => sum + part, 0));
                for (const box of painter.boxes)
                    sums[COLUMN_STATES.indexOf(box.state)] += Math.floor(box.x + box.width - painter.scale.left) - Math.ceil(box.x - painter.scale.left);
                return sums.map((sum) => sum / painter.scale.width);
            }})()""")
            for share, wanted in zip(cover, (.3, .1, .4, .2)):  # running, ready, waiting, parked
                self.assertAlmostEqual(share, wanted, 5, width)

    def test_only_rows_in_sight_are_drawn(self):
        page = PageData(duration_ns=100 * MS, threads=["main"], coroutines=["worker"])
        for i in range(3000):
            page.add("coro", id=i)
            activity(page, i, i * .03, 2, 2, 3, thread=1)
        self.open(page)
        rows = {box["number"] for box in self.boxes() if not box["onThread"]}
        self.assertLess(len(rows), 60)
        self.view("scroller.scrollTop = 20000")
        self.browser.wait(f"{VIEW}.boxes.some((box) => box.number > 1000)")
        self.assertFalse(rows & {box["number"] for box in self.boxes() if not box["onThread"]})

    def test_sorting_and_grouping(self):
        self.open(history(), "sort=-CPU")
        self.assertEqual(self.names()[-3:], ["8 <b>query</b>", "9 worker", "7 worker"])
        self.browser.eval(f"(({VIEW}).controls.sort.value = 'Longest slice', ({VIEW}).controls.sort.dispatchEvent(new Event('change')))")
        self.assertEqual(self.selection("sort"), "Longest slice")
        self.assertEqual(self.names()[-1], "9 worker")
        self.open(history(), "nest=spawner")
        self.assertEqual(self.names()[-3:], ["7 worker", "8 <b>query</b>", "9 worker"])
        self.assertEqual(self.view("kept.rows.depth.slice(-3)"), [0, 1, 0])
        self.open(with_request(history()), "nest=endpoint")
        self.assertEqual(self.names()[-5:], ["GET /cart (1)", "7 worker", "of no request (2)", "9 worker", "8 <b>query</b>"])

    def test_only_coroutines_that_are_there(self):
        page = history()
        page.add("coro", id=20, name=0)
        activity(page, 3, 2, 3, 3, 0, thread=1)
        self.open(page)
        self.view("look(20e6, 40e6)")
        self.browser.key("o")
        self.assertEqual(self.names()[-3:], ["Coroutines (2)", "7 worker", "9 worker"])
        self.assertEqual(self.view("controls.seen.getAttribute('aria-pressed')"), "true")
        self.browser.key("0")
        self.browser.wait(f"{VIEW}.place.rows.coros === 4")
        self.browser.key("o")
        self.assertEqual(self.view("onlySeen"), False)

    def test_filters(self):
        page = with_request(history())
        page.add("coro", id=20, name=1)
        activity(page, 3, 72, 3, 3, 20, trace=1)  # of the request's trace: the only sign of work for it
        for hash, wanted in (("coro=1", [1]), ("name=worker", [0, 2]), ("trace=" + TRACES[1], [1]), ("thread=io", [1]), ("endpoint=GET+/cart", [0, 2, 3]),
                             ("request=0&sort=CPU", [0, 2, 3]), (f"latency={60 * MS},{61 * MS}", [0, 2, 3])):
            self.open(page, hash)
            self.assertEqual(sorted({box["number"] for box in self.boxes() if not box["onThread"]}), wanted, hash)
        self.open(page, f"latency=0,{60 * MS}")
        self.assertIn("No coroutine passes", self.text(".empty"))
        self.open(page, "thread=io")
        self.assertNotIn("thread main", self.names())

    def test_where_there_is_nothing_it_says_why(self):
        self.open(history(), "coro=1&name=worker")
        self.assertIn("No coroutine passes the filters", self.text(".empty"))
        self.assertEqual(self.text("section[aria-label=timeline]"), "")
        page = PageData()
        page.row("row", ("main",), label=0, state=0, weight=MS, samples=1)
        self.open(page)
        self.assertIn("greenprof run", self.text(".empty"))


class Time(TimelineCase):
    def test_the_axis_has_round_ticks(self):
        self.open(history())
        ticks = self.browser.eval(f"ticksOf({VIEW}.place.scale)")
        steps = {round(b["ns"] - a["ns"]) for a, b in zip(ticks, ticks[1:])}
        self.assertEqual(len(steps), 1)
        step = steps.pop()
        self.assertIn(step // 10**int(math.log10(step)), (1, 2, 5))
        self.assertTrue(all(tick["text"].endswith(" ms") for tick in ticks))

    def test_wheel_zooms_around_the_pointer(self):
        self.open(history())
        before = self.view("shown")
        self.browser.wheel(*self.at(30, self.y(0)), -400)
        self.browser.wait(f"{VIEW}.place.scale.to < {before['to']} && {VIEW}.waiting === null")
        scale = self.view("place.scale")
        self.assertAlmostEqual((30 * MS - scale["from"]) / (scale["to"] - scale["from"]), .3, 2)

    def test_two_fingers_zoom(self):
        self.open(history())
        (left, y), right = self.at(40, self.y(0)), self.at(60, self.y(0))[0]
        self.browser.touch("touchStart", (left, y))
        self.browser.touch("touchStart", (left, y), (right, y))
        for step in (10, 20, 30, 40, 50):
            self.browser.touch("touchMove", (left - step, y), (right + step, y))
        self.browser.touch("touchEnd")
        self.browser.wait(f"{VIEW}.shown.to - {VIEW}.shown.from < 80e6")
        self.assertEqual(self.selection("from"), "", "that was no range")
        self.assertAlmostEqual((self.view("shown.from") + self.view("shown.to")) / 2 / MS, 50, delta=10)

    def test_keys_zoom_and_move(self):
        self.open(history())
        shown = lambda: [round(self.view(f"shown.{end}") / MS, 3) for end in ("from", "to")]
        self.browser.key("+")
        self.assertEqual(shown(), [25, 75])
        self.browser.key("ArrowRight")
        self.assertEqual(shown(), [35, 85])
        self.browser.key("ArrowLeft")
        self.browser.key("ArrowLeft")
        self.assertEqual(shown(), [15, 65])
        self.browser.key("-")
        self.assertEqual(shown(), [0, 100])
        self.browser.key("+")
        self.browser.key("0")
        self.assertEqual(shown(), [0, 100])
        self.browser.wait(f"{VIEW}.place.scale.to === 100e6")

    def test_a_drag_is_a_range_of_whole_ticks(self):
        self.open(history(tick_ns=10 * MS))
        self.drag(23, 47)
        self.selected(**{"from": str(20 * MS)}, to=str(50 * MS), row="")
        self.assertIn("30.000 ms", self.text(".toolbar [role=status]"))
        x = round(self.x(35))
        shaded = self.browser.eval(f"{VIEW}.overlay.getContext('2d').getImageData({x} * devicePixelRatio, 100, 1, 1).data[3]")
        outside = self.browser.eval(f"{VIEW}.overlay.getContext('2d').getImageData({round(self.x(60))} * devicePixelRatio, 100, 1, 1).data[3]")
        self.assertGreater(shaded, outside)
        self.browser.key("Enter")
        self.selected(view="flame", to=str(50 * MS))
        self.browser.key("l")
        self.browser.key("Escape")
        self.selected(**{"from": ""}, to="", view="timeline")

    def test_a_drag_goes_either_way_and_is_exact_without_ticks(self):
        self.open(history(tick_ns=0))
        self.assertIn("have no time", self.text(".sentence"))
        self.drag(60, 40)
        self.browser.wait("greenprofApp.selection.to !== ''")
        pixel = 100 * MS / self.view("place.scale.width")
        self.assertAlmostEqual(int(self.selection("from")), 40 * MS, delta=2 * pixel)
        self.assertAlmostEqual(int(self.selection("to")), 60 * MS, delta=2 * pixel)
        self.browser.key("Enter")
        self.assertEqual(self.selection("view"), "timeline", "a flame graph of this range cannot be")
        self.assertTrue(self.view("controls.flame.disabled"))

    def test_shift_drag_moves_what_is_in_sight(self):
        self.open(history())
        self.browser.key("+")
        self.browser.wait(f"{VIEW}.place.scale.from === 25e6")
        self.drag(50, 40, modifiers=["Shift"])
        self.assertAlmostEqual(self.view("shown.from") / MS, 35, delta=.5)
        self.assertEqual(self.selection("from"), "")

    def test_a_range_by_keys(self):
        self.open(history())
        self.browser.key("+")
        self.browser.key("m")
        self.selected(**{"from": str(25 * MS)}, to=str(75 * MS))

    def test_a_link_with_a_range_shows_it(self):
        self.open(history(), f"from={40 * MS}&to={50 * MS}")
        shown = self.view("shown")
        self.assertLess(shown["to"] - shown["from"], 15 * MS)
        self.assertLessEqual(shown["from"], 40 * MS)


class Choosing(TimelineCase):
    def test_a_link_shows_what_was_in_sight(self):
        page = history()
        self.open(page)
        self.browser.key("+")
        self.browser.key("+")
        self.browser.wait("location.hash.includes('sight=')")
        shown, hash = self.view("shown"), self.browser.eval("location.hash")
        self.assertEqual(self.browser.eval("greenprofApp.before.length"), 0)  # it is no step of undo
        self.open(page, hash.removeprefix("#view=timeline").removeprefix("&"))
        again = self.view("shown")
        self.assertAlmostEqual(again["from"], shown["from"], delta=2)
        self.assertAlmostEqual(again["to"], shown["to"], delta=2)
        self.browser.key("0")
        self.browser.wait("!location.hash.includes('sight=')")
        self.assertEqual(self.view("shown.from"), 0)

    def test_a_click_chooses_and_tells(self):
        self.open(history())
        self.browser.click(*self.at(35, self.y(0)))
        self.selected(row="coro:0")
        for part in ("7 worker", "ready 30.000 ms to 40.000 ms (10.000 ms)", "thread main", TRACES[0]):
            self.tells(part)
        self.browser.click(*self.at(75, self.y(1)))
        self.selected(row="coro:1")
        self.tells("woken at 70.000 ms by 7 worker")
        self.tells("8 <b>query</b>")  # names are texts

    def test_the_pointer_tells_without_a_click(self):
        self.open(history())
        self.browser.move(*self.at(55, self.y(1)))
        self.tells("in turns with short waits: 50.00 %")
        left, top = self.origin()
        self.browser.move(left + self.x(20), top + self.view("marks.bandOf(1).y") + 5)
        self.tells("9 worker")  # what ran on the thread
        self.assertEqual(self.selection("row"), "")

    def test_a_double_click_shows_only_that_coroutine(self):
        self.open(history())
        self.browser.click(*self.at(50, self.y(1)), count=2)
        self.selected(coro="1")
        self.assertEqual({box["number"] for box in self.boxes() if not box["onThread"]}, {1})

    def test_keys_choose_rows_and_slices(self):
        self.open(history())
        self.browser.key("ArrowDown")
        self.selected(row="coro:0")
        self.browser.key("ArrowDown")
        self.selected(row="coro:2")
        self.browser.key("ArrowUp")
        self.browser.key(".")
        self.tells("running 0 ns to 10.000 ms")
        self.browser.key(".")
        self.tells("running 40.000 ms to 60.000 ms")
        self.browser.key("Enter")
        self.selected(coro="0")
        self.browser.key("Escape")
        self.selected(row="")

    def test_arrows_of_the_chosen_coroutine(self):
        self.open(history(), "row=coro:1")
        arrows = sorted((arrow["what"], arrow["from"], arrow["to"], arrow["ns"] // MS) for arrow in self.view("arrows"))
        self.assertEqual(arrows, [("spawn", 0, 1, 45), ("wake", 0, 1, 70), ("wake", 1, 2, 60)])
        self.view("look(50e6, 65e6)")
        self.view("paint()")
        self.assertEqual([(arrow["what"], arrow["to"]) for arrow in self.view("arrows")], [("wake", 2)])

    def test_few_arrows_are_there_unasked(self):
        self.open(history())
        self.assertEqual(len(self.view("arrows")), 3)

    def test_spans_are_bars_with_their_names(self):
        self.open(with_spans(history()))
        outer, inner = self.view("spans")
        self.assertEqual((outer["name"], inner["name"]), ("GET /cart", "SELECT"))
        self.assertAlmostEqual(inner["x"], self.x(20), 6)
        self.assertAlmostEqual(inner["width"], self.x(40) - self.x(20), 6)
        self.browser.click(*self.at(30, inner["y"] + 3))
        self.selected(row="coro:0")
        self.tells("span SELECT")
        self.tells("failed")

    def test_a_long_slice_lists_its_victims(self):
        self.open(with_hog(history()))
        hog = self.view("hogs")[0]
        self.assertAlmostEqual(hog["x"], self.x(10), 6)
        self.assertEqual(hog["y"], self.view("marks.bandOf(1).y"))
        self.browser.click(*self.at(20, hog["y"] + 4))
        self.selected(row="coro:2")
        self.tells("long slice of 9 worker")
        self.tells("25.000 ms")
        self.assertEqual(self.text("section[aria-label=timeline] tbody tr td:first-child"), "8 <b>query</b>|7 worker")
        self.assertIn("2 of 3", self.text("caption"))

    def test_a_key_goes_from_one_long_slice_to_the_next(self):
        page = with_hog(history())
        page.add("hog", coro=1, thread=2, trace=2, start=80 * MS, length=20 * MS, delay=MS, victims=1)
        self.open(page)
        for wanted in ("long slice of 9 worker", "long slice of 8 <b>query</b>", "long slice of 9 worker"):
            self.browser.key("n")
            self.tells(wanted)
        self.assertIn("2 of 3", self.text("caption"))
        self.browser.key("Escape")
        self.selected(row="")
        self.assertEqual(self.text("caption"), "")


class Path(TimelineCase):
    def test_the_path_is_a_line_through_the_rows(self):
        self.open(with_request(history()), "request=0")
        self.assertEqual(self.names()[:3], ["Critical path of request 1", "7 worker", "9 worker"])
        first, second = self.view("marks.lineOf(0)"), self.view("marks.lineOf(2)")
        self.assertGreater(first, self.y(0))
        wanted = [(10, first), (20, first), (20, second), (50, second), (50, first), (70, first)]
        points = self.view("path")
        self.assertEqual(len(points), len(wanted))
        for point, (ms, y) in zip(points, wanted):
            self.assertAlmostEqual(point["x"], self.x(ms), 6)
            self.assertEqual(point["y"], y)
        x, y = round(self.x(20)), round((first + second) / 2)
        self.assertEqual(self.browser.eval(f"{VIEW}.overlay.getContext('2d').getImageData({x}, {y}, 1, 1).data[3]"), 255, "a vertical where it jumps")

    def test_the_request_is_in_sight(self):
        self.open(with_request(history()), "request=0")
        shown = self.view("shown")
        self.assertEqual((shown["from"], shown["to"]), (4 * MS, 76 * MS))

    def test_segments_add_up_to_the_latency(self):
        self.open(with_request(history()), "request=0")
        self.assertIn("3 segments, 60.000 ms in all: exactly its latency.", self.text("caption"))
        rows = self.browser.eval("[...document.querySelectorAll('section[aria-label=timeline] tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
        self.assertEqual(rows, [["+0 ns", "10.000 ms", "16.67 %", "parked", "7 worker", "poll"], ["+10.000 ms", "30.000 ms", "50.00 %", "running", "9 worker", "parse"],
                                ["+40.000 ms", "20.000 ms", "33.33 %", "running", "7 worker", "send"]])
        self.browser.click_on("(document.querySelectorAll('section[aria-label=timeline] th button')[1])")
        self.assertEqual(self.text("section[aria-label=timeline] tbody td:nth-child(2)"), "30.000 ms|20.000 ms|10.000 ms")
        self.open(with_request(history(), (10, 20, 20)), "request=0")
        self.assertIn("its latency is 60.000 ms, 10.000 ms more", self.text("caption"))

    def test_several_requests_have_no_line(self):
        page = with_request(history())
        page.add("request", trace=2, endpoint=0, coro=2, start=0, latency=MS)
        self.open(page, "request=0,1")
        self.assertEqual(self.view("path"), [])
        self.open(page, "request=1")
        self.assertIn("no critical path", self.text("caption"))


class Looks(TimelineCase):
    def test_narrow_and_dark(self):
        self.browser.dark()
        self.open(with_spans(history()), width=360, height=640)
        self.assertLessEqual(self.browser.eval("document.documentElement.scrollWidth"), 360)
        self.assertEqual(len(self.boxes(0)), 5)
        self.assertLess(sum(self.pixel(self.x(99.9), self.view("marks.yOf(1)") + 3)[:3]), 200, "paper is dark")

    def test_a_million_activities(self):
        """However many there are, what is drawn has the size of the screen."""
        page = PageData(duration_ns=100 * MS, threads=["main"], coroutines=["worker"])
        page.add("coro", id=1)
        page.add("activity", coro=0, start=0, active=20, slice=20, wait=80, ready=61, waker=0, thread=1)
        self.open(page)
        drawn = self.browser.eval(f"""(() => {{
            const {{ store }} = greenprofApp, count = 1e6, table = {{}};
            for (const [column, values] of Object.entries(store.activity)) {{
                table[column] = new values.constructor(count).fill(values[0]);
                if (column === "start")
                    table[column].forEach((_, i) => table[column][i] = 100 * i);
            }}
            store.activity = table;
            ACTIVITY_INDEXES.delete(store);
            const view = {VIEW}, lookups = [];
            view.kept = null;
            view.draw();
            const index = activitiesOf(store), whole = [view.boxes.length, view.merges];
            view.look(50e6, 50e6 + 2e3);
            view.paint();
            return {{ whole, boxes: view.boxes.length, first: view.boxes.find((box) => !box.onThread).activity, sums: index.sums[0][count],
                      at: index.at(0, 70000010), on: index.onThread(0, 70000010), none: index.onThread(0, 70000050) }};
        }})()""")
        self.assertEqual(drawn["whole"][0], 0)
        self.assertLess(drawn["whole"][1], 4000)
        self.assertLess(drawn["boxes"], 200)
        self.assertEqual(drawn["first"], 500000)
        self.assertEqual(drawn["sums"], 20e6)
        self.assertEqual((drawn["at"], drawn["on"], drawn["none"]), (700000, 700000, -1))


if __name__ == "__main__":
    main()
