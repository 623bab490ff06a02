# SPDX-License-Identifier: MIT
"""The flame graph: boxes and numbers of a profile that is known, and what mouse and keys do with them."""
import itertools
import json
from xml.etree import ElementTree

from browser import main
from flame_case import VIEW, FlameCase
from flame_data import MS, comparison, profile


class Boxes(FlameCase):
    def test_widths_and_order_are_those_of_the_weights(self):
        self.show(profile())
        self.assertEqual(self.drawn(), {"all": 100, "main": 100, "turn": 30, "serve": 45, "PyEval": 30, "parse": 30, "memcpy": 10})
        boxes, whole = self.boxes(), self.box("all")["width"]
        for box in boxes:
            self.assertAlmostEqual(box["width"], whole * box["total"] / (100 * MS), 6, box["name"])
        turn, serve = self.box("turn"), self.box("serve")
        self.assertEqual((turn["x"], serve["x"]), (0, turn["width"]), "the heaviest comes first")
        self.assertLess(turn["y"], self.box("main")["y"], "what is called stands above its caller")

    def test_icicle(self):
        self.show(profile())
        self.keys("i")
        self.assertGreater(self.box("turn")["y"], self.box("main")["y"])
        self.assertEqual(self.box("all")["y"], 0)
        self.browser.click_on("[data-toggle=icicle]")
        self.assertLess(self.box("turn")["y"], self.box("main")["y"])

    def test_narrow_boxes_are_not_drawn(self):
        page = profile()
        page.row("row", ("main", "tiny"), label=0, state=0, weight=1000, samples=1)
        self.show(page)
        self.assertNotIn("tiny", self.names())

    def test_states_colour_boxes(self):
        self.show(profile(), "weight=wall")
        self.assertEqual([self.box(name)["state"] for name in ("[parked]", "[ready]", "query", "turn")], [2, 3, 2, 0])
        red, _, blue = self.colour("[parked]")
        self.assertGreater(blue, red, "what was parked is cool")
        red, _, blue = self.colour("turn")
        self.assertGreater(red, blue, "what ran is warm")

    def test_a_deep_stack_scrolls_and_begins_at_its_root(self):
        page = profile()
        page.row("row", tuple(f"f{i}" for i in range(120)), label=0, state=0, weight=50 * MS, samples=1)
        self.show(page)
        self.assertIn("all", self.names())
        self.assertNotIn("f119", self.names())
        self.browser.eval(f"{VIEW}.main.element.scrollTop = 0")
        self.assertIn("f119", self.names())

    def test_numbers_of_a_box(self):
        self.show(profile(), "weight=wall")
        text = self.hover_box("serve")
        for part in ("server.c:5", "demo", "total 145.000 ms 72.50 %", "self 0 ns 0.00 %", "14 samples", "running 31.03 %", "parked 41.38 %", "native"):
            self.assertIn(part, text)
        self.assertIn("Python", self.hover_box("turn"))

    def test_the_first_ctrl_f_is_the_search(self):
        self.show(profile())
        self.browser.key("f", ["Control"])
        self.assertEqual(self.browser.eval("document.activeElement.type"), "search")


class Zoom(FlameCase):
    def test_click_and_escape(self):
        self.show(profile())
        self.click_box("serve")
        self.assertEqual(self.box("serve")["width"], self.box("all")["width"])
        self.assertEqual([box["name"] for box in self.boxes() if box["above"]], ["all", "main"])
        self.assertNotIn("turn", self.names())
        self.assertEqual(json.loads(self.selection("zoom")), ["main", "serve"])
        self.assertIn("zoom=", self.browser.eval("location.hash"))
        self.keys("Escape")
        self.assertIn("turn", self.names())
        self.assertEqual(self.selection("zoom"), "")

    def test_one_box_out(self):
        self.show(profile(), 'zoom=["main","serve","parse"]')
        self.assertEqual([box["name"] for box in self.boxes() if not box["above"]], ["parse", "memcpy"])
        self.keys("Backspace")
        self.assertEqual(json.loads(self.selection("zoom")), ["main", "serve"])
        self.click_box("main")
        self.assertEqual(json.loads(self.selection("zoom")), ["main"])

    def test_a_link_reopens_it(self):
        self.show(profile())
        self.click_box("parse")
        hash = self.browser.eval("location.hash")
        before = self.boxes()
        self.show(profile(), hash)
        self.assertEqual([(box["name"], box["x"], box["width"]) for box in self.boxes()], [(box["name"], box["x"], box["width"]) for box in before])

    def test_siblings_of_one_name_are_told_apart_by_their_place(self):
        page = profile()
        page.row("row", ("main", ("twin", 0, "a.c", 1, "x")), label=0, state=0, weight=20 * MS, samples=1)
        page.row("row", ("main", ("twin", 0, "b.c", 2, "x")), label=0, state=0, weight=30 * MS, samples=1)
        self.show(page)
        self.click_box("twin", 1)
        self.assertEqual(self.drawn()["twin"], 20)

    def test_walk_and_enter(self):
        self.show(profile())
        self.keys("ArrowUp", "ArrowUp")
        self.assertEqual(self.focus(), "main")
        self.keys("ArrowUp")
        self.assertEqual(self.focus(), "turn", "the heaviest")
        self.keys("ArrowRight", "ArrowLeft", "ArrowRight")
        self.assertEqual(self.focus(), "serve")
        self.assertIn("total 45.000 ms 45.00 %", self.text(".details"))
        self.assertEqual(self.browser.eval("document.querySelector('.details').getAttribute('aria-live')"), "polite")
        self.keys("Enter")
        self.assertEqual(json.loads(self.selection("zoom")), ["main", "serve"])
        self.keys("ArrowDown")
        self.assertEqual(self.focus(), "main")
        self.keys("Escape", "i", "ArrowDown")
        self.assertIsNotNone(self.focus())

    def test_the_focus_can_be_seen(self):
        self.show(profile())
        before = self.colour("main", 1, 1)
        self.keys("ArrowUp", "ArrowUp")
        self.assertNotEqual(self.colour("main", 1, 1), before)


class Lens(FlameCase):
    """A part of the width: by wheel, fingers, keys, the minimap; the link holds it."""

    def wheel(self, dy, at, **how):
        x, y, width, _ = self.browser.place(f"({VIEW}.main.canvas)")
        self.browser.wheel(x + at * width, y + 5, dy, **how)

    def lens(self):
        return self.browser.eval(f"[{VIEW}.main.lens.from, {VIEW}.main.lens.to]")

    def test_the_wheel_zooms_around_the_pointer(self):
        self.show(profile())
        self.wheel(-200, .25, modifiers=["Control"])
        start, end = self.browser.wait(f"{VIEW}.main.lens.from > 0 && [{VIEW}.main.lens.from, {VIEW}.main.lens.to]")
        self.assertAlmostEqual(start + .25 * (end - start), .25, 3, "what is below the pointer stays there")
        width = self.browser.place(f"({VIEW}.main.canvas)")[2]
        self.assertAlmostEqual(self.box("all")["width"], width / (end - start), 3)
        self.browser.wait("location.hash.includes('lens=')")
        boxes, link = [(box["name"], round(box["x"]), round(box["width"])) for box in self.boxes()], self.browser.eval("location.hash")
        for _ in range(2):
            self.wheel(1000, .9, modifiers=["Control"])
        self.browser.wait(f"{VIEW}.main.lens.to - {VIEW}.main.lens.from === 1")
        self.wheel(-100, .5)
        self.assertEqual(self.lens(), [0, 1], "without Ctrl, rows scroll")
        self.show(profile(), link)
        self.assertEqual([(box["name"], round(box["x"]), round(box["width"])) for box in self.boxes()], boxes, "a link reopens it")

    def test_keys_and_drags(self):
        self.show(profile())
        self.keys("+", "<")
        self.assertEqual([round(one, 6) for one in self.lens()], [.15, .65])
        x, y, width, _ = self.browser.place(f"({VIEW}.main.canvas)")
        self.browser.drag(x + 300, y + 5, x + 300 - width / 5, y + 5)
        self.assertEqual([round(one, 6) for one in self.lens()], [.25, .75])
        self.assertEqual(self.selection("zoom"), "", "the end of a drag is no click")
        self.browser.click_on(".minimap", dx=1)
        self.assertEqual([round(one, 6) for one in self.lens()], [0, .5])
        self.keys("Escape")
        self.assertEqual(self.lens(), [0, 1])
        self.keys("+")
        self.click_box("turn")
        self.assertEqual(self.lens(), [0, 1], "another box is shown whole")

    def test_two_fingers(self):
        self.show(profile())
        x, y, width, _ = self.browser.place(f"({VIEW}.main.canvas)")
        self.browser.touch("touchStart", (x + 100, y + 20), (x + 200, y + 20))
        self.browser.touch("touchMove", (x + 100, y + 20), (x + 300, y + 20))
        self.browser.touch("touchEnd")
        start, end = self.lens()
        self.assertAlmostEqual(end - start, .5, 2)
        self.assertAlmostEqual(start + 100 / width * (end - start), 100 / width, 3, "what is below the other finger stays there")

    def test_narrow_boxes_come_into_sight(self):
        page = profile()
        page.row("row", ("main", "tiny"), label=0, state=0, weight=10000, samples=1)
        self.show(page, "lens=0.99,1")
        self.assertIn("tiny", self.names())

    def test_saved_as_a_picture(self):
        page = profile(title="<shop> & co")
        page.row("row", ("main", "a<b>\x01"), label=0, state=0, weight=20 * MS, samples=1)
        self.show(page, "weight=wall&search=^serve$")
        self.browser.eval("window.made = []; URL.createObjectURL = (blob) => (window.made.push(blob), 'blob:none')")
        self.keys("x")
        root = ElementTree.fromstring(self.browser.eval("window.made[0].text()"))
        space = "{http://www.w3.org/2000/svg}"
        titles = [one.text for one in root.iter(space + "title")]
        self.assertEqual(len(titles), len(self.boxes()))
        self.assertIn("serve 145.000 ms, 65.91 %", titles)
        self.assertIn("a<b> 20.000 ms, 9.09 %", titles)
        self.assertTrue(any(one.get("fill") == "url(#stripes)" for one in root.iter(space + "rect")), "states keep their patterns")
        self.browser.errors.clear()  # the address that was made up


class Search(FlameCase):
    def test_others_are_pale(self):
        self.show(profile())
        def alphas():
            return [self.browser.eval(f"{VIEW}.main.context.getImageData({box['x'] + 2}, {box['y'] + 2}, 1, 1).data[3]")
                    for box in map(self.box, ("main", "serve", "turn"))]
        self.assertEqual(alphas(), [255] * 3)
        self.browser.eval("greenprofApp.set({ search: '^turn$' })")
        self.assertEqual([alpha > 200 for alpha in alphas()], [False, False, True])

    def test_a_match_below_a_match_counts_once(self):
        self.show(profile())
        self.keys("/")
        self.browser.type("turn|PyEval")
        self.assertIn("matched 55.00 %", self.text(".matched"))
        self.assertEqual({box["name"] for box in self.boxes() if box["match"]}, {"turn", "PyEval"})
        red, green, blue = self.colour("PyEval")
        self.assertTrue(red > green and blue > green, "matches are magenta")
        self.assertEqual(self.browser.eval("greenprofApp.before.length"), 1, "what is typed is one step of undo")
        self.keys("Escape")
        self.assertEqual(self.text(".matched"), "")

    def test_share_of_what_is_zoomed(self):
        self.show(profile(), 'search=memcpy&zoom=["main","serve"]')
        self.assertIn("matched 25.00 %, 55.56 % of the zoomed box, 2 boxes", self.text(".matched"))

    def test_next_and_previous(self):
        self.show(profile(), "search=memcpy")
        self.keys("n")
        first = next(box for box in self.boxes() if box["focus"])
        self.assertEqual((first["name"], first["total"]), ("memcpy", 15 * MS), "the heaviest comes first")
        self.assertIn("1 of 2 boxes", self.text(".matched"))
        self.keys("n")
        self.assertEqual(next(box for box in self.boxes() if box["focus"])["total"], 10 * MS)
        self.keys("n")
        self.assertEqual(next(box for box in self.boxes() if box["focus"])["total"], 15 * MS)
        self.keys("N")
        self.assertEqual(next(box for box in self.boxes() if box["focus"])["total"], 10 * MS)

    def test_a_match_too_narrow_to_be_seen_is_zoomed_to(self):
        page = profile()
        page.row("row", ("main", "tiny"), label=0, state=0, weight=1000, samples=1)
        self.show(page, "search=tiny")
        self.keys("n")
        self.assertEqual(self.focus(), "tiny")
        self.assertEqual(self.box("tiny")["width"], self.box("all")["width"])

    def test_a_wrong_expression_says_so(self):
        self.show(profile(), "search=%28")
        self.assertEqual(self.text(".matched"), "this is no regular expression")
        self.assertEqual(self.browser.eval("document.querySelector('input[type=search]').getAttribute('aria-invalid')"), "true")


class Shapes(FlameCase):
    def test_inverted(self):
        self.show(profile())
        self.keys("I")
        depth_one = [box for box in self.boxes() if box["y"] == self.box("all")["y"] - 18]
        self.assertEqual({box["name"]: box["total"] / MS for box in depth_one}, {"turn": 55, "memcpy": 25, "parse": 20})

    def test_roots(self):
        self.show(profile())
        found = {}
        for _ in range(5):
            self.keys("R")
            bottom = self.box("all")["y"] - 18
            found[self.selection("root")] = {box["name"]: box["total"] / MS for box in self.boxes() if box["y"] == bottom}
        self.assertEqual(found, {
            "coroutine": {"[coroutine 2 worker]": 45, "[coroutine 1 worker]": 30, "[thread main]": 25},
            "entry": {"[entry serve]": 75, "[thread main]": 25},
            "trace": {"[trace " + "%032x]" % 11: 45, "[trace " + "%032x]" % 10: 30, "[no trace]": 25},
            "thread": {"[thread main]": 55, "[thread io]": 45},
            "endpoint": {"[GET /cart]": 75, "[no request]": 25}})

    def test_stitched(self):
        self.show(profile())
        self.keys("S")
        edges = [box for box in self.boxes() if box["edge"]]
        self.assertEqual([(box["name"], box["total"]) for box in edges], [("main", 45 * MS)], "coroutine 2 stands on main;serve")
        self.assertEqual(self.box("main")["total"], 100 * MS)

    def test_recursion_and_native_frames(self):
        self.show(profile())
        self.keys("F")
        self.assertEqual([box["name"] for box in self.boxes()].count("turn"), 3, "PyEval is folded")
        self.assertNotIn("PyEval", self.names())
        self.keys("C")
        self.assertEqual([(box["name"], box["total"]) for box in self.boxes() if box["name"] == "turn"], [("turn", 55 * MS)])

    def test_places_of_nodes_are_those_of_whole_stacks(self):
        """Two ways to make the same tree: node by node, and, as shapes that turn or cut stacks need it, stack by stack."""
        self.show(profile())
        shapes = [{key: value for key, value in zip(("hide", "hideModule", "native", "collapse", "root", "focus"), values) if value}
                  for values in itertools.product(("", "^(turn|parse)$"), ("", "libc.so.6"), ("", "fold"), ("", "1"), ("", "thread", "coroutine"),
                                                  ("", "serve"))] + [{"stitch": "1"}, {"stitch": "1", "root": "trace"}]
        found = self.browser.eval("""(() => {
            const { trees, store } = greenprofApp, can = TreePlaces.can, used = new Set();
            const sums = (selection) => {
                const tree = trees.make(store.rows, shapeOf(selection)), weights = trees.weigh(tree, filterOf(store, selection), store.rows), named = {};
                for (let node = 0; node < tree.count; node++) {
                    const names = tree.edges.has(node) ? ["spawned"] : [];
                    for (let up = node; up > 0; up = tree.parent[up])
                        names.unshift(trees.nameOf(tree, tree.frame[up]));
                    const key = JSON.stringify(names);
                    if (key in named)
                        throw new Error(`twice: ${key}`);
                    if (weights.total[node] > 0)
                        named[key] = [weights.total[node], weights.self[node], weights.samples[node]];
                }
                return JSON.stringify(Object.entries(named).sort());
            };
            return %s.filter((shape) => {
                const selection = { ...SELECTION_DEFAULTS, weight: "wall", ...shape };
                TreePlaces.can = (...asked) => (can(...asked) && used.add(JSON.stringify(shape)), can(...asked));
                const placed = sums(selection);
                TreePlaces.can = () => false;
                const stacked = sums(selection);
                TreePlaces.can = can;
                return placed !== stacked;
            }).map((shape) => JSON.stringify(shape)).concat(used.size);
        })()""" % json.dumps(shapes))
        self.assertEqual(found[:-1], [])
        self.assertGreater(found[-1], len(shapes) / 2, "node by node is the usual way")

    def test_menu_by_mouse(self):
        self.show(profile())
        self.click_box("serve", button="right")
        self.assertEqual(self.texts(".menu button")[:4], ["zoom to this box", "focus: only stacks with this function", "hide this function",
                                                          "callers and callees (sandwich)"])
        self.browser.click_on("([...document.querySelectorAll('.menu button')][1])")
        self.assertEqual(self.selection("focus"), "^serve$")
        self.assertEqual(self.drawn()["all"], 45)
        self.assertEqual(self.texts(".pill[data-filter]"), ["stacks with: ^serve$"])

    def test_menu_by_keys(self):
        self.show(profile())
        self.keys("ArrowUp", "ArrowUp", "ArrowUp", "ArrowRight", "m", "ArrowDown", "ArrowDown", "Enter")
        self.assertEqual(self.selection("hide"), "^serve$")
        self.assertNotIn("serve", self.names())
        self.assertEqual(self.drawn()["main"], 100, "its callees go to its caller")
        self.keys("m", "Escape")
        self.assertEqual(self.browser.eval("document.querySelectorAll('.menu').length"), 0)
        self.assertEqual(self.browser.eval("document.activeElement.tagName"), "CANVAS")

    def test_hide_a_library(self):
        self.show(profile(), "hideModule=libc.so.6")
        self.assertNotIn("memcpy", self.names())
        self.assertEqual(self.box("parse")["self"], 30 * MS)


class Table(FlameCase):
    def test_a_function_counts_once_a_stack(self):
        self.show(profile())
        self.assertEqual(self.rows(), {
            "turn  app.py:3": ["55.000 ms", "55.00 %", "55.000 ms", "55.00 %", "11"],
            "memcpy  libc.so.6": ["25.000 ms", "25.00 %", "25.000 ms", "25.00 %", "5"],
            "parse  server.c:50": ["20.000 ms", "20.00 %", "30.000 ms", "30.00 %", "6"],
            "main  main.c:10": ["0 ns", "0.00 %", "100.000 ms", "100.00 %", "20"],
            "serve  server.c:5": ["0 ns", "0.00 %", "45.000 ms", "45.00 %", "9"],
            "PyEval  ceval.c:700": ["0 ns", "0.00 %", "30.000 ms", "30.00 %", "6"]})
        self.assertEqual(list(self.rows())[0], "turn  app.py:3", "heaviest first")

    def test_other_shapes_leave_the_table_as_it_is(self):
        self.show(profile())
        before = self.rows()
        for hash in ("invert=1", "root=trace", "sandwich=parse"):
            self.show(profile(), hash)
            self.assertEqual(self.rows(), before, hash)

    def test_sort(self):
        self.show(profile())
        self.browser.click_on("(document.querySelectorAll('.flame-side th button')[3])")
        self.assertEqual(self.selection("sort"), "-Total")
        self.assertEqual(list(self.rows())[0], "main  main.c:10")
        self.browser.click_on("(document.querySelectorAll('.flame-side th button')[0])")
        self.browser.click_on("(document.querySelectorAll('.flame-side th button')[0])")
        self.assertEqual(list(self.rows())[0], "PyEval  ceval.c:700")

    def test_search_filters_it(self):
        self.show(profile(), "search=^mem")
        self.browser.wait("document.querySelectorAll('.flame-side tbody tr').length === 1")
        self.assertEqual(list(self.rows()), ["memcpy  libc.so.6"])

    def test_toggle(self):
        self.show(profile())
        wide = self.box("all")["width"]
        self.keys("t")
        self.assertEqual(self.texts(".flame-side table"), [])
        self.assertGreater(self.box("all")["width"], wide)

    def test_below_on_a_narrow_screen(self):
        self.show(profile(), width=420)
        self.keys("t")
        table, canvas = self.browser.place(".flame-side table"), self.browser.place(f"({VIEW}.main.canvas)")
        self.assertGreater(table[1], canvas[1] + canvas[3])
        self.assertLessEqual(self.browser.eval("document.documentElement.scrollWidth"), 420)

    def test_sandwich(self):
        self.show(profile())
        self.browser.click_on("(document.querySelectorAll('.flame-side tbody tr')[2])")
        self.assertEqual(self.selection("sandwich"), "parse")
        panes = {pane: [(box["name"], box["total"] / MS) for box in self.boxes() if box["pane"] == pane] for pane in ("callers", "callees")}
        self.assertEqual(panes, {"callers": [("parse", 30), ("serve", 30), ("main", 30)], "callees": [("parse", 30), ("memcpy", 10)]})
        ys = [box["y"] for box in self.boxes()]
        self.assertEqual(ys, [36, 18, 0, 0, 18], "callers above, callees below")
        self.browser.key("ArrowUp")
        self.keys("ArrowDown", "ArrowDown", "ArrowDown")
        focused = next(box for box in self.boxes() if box["focus"])
        self.assertEqual((focused["pane"], focused["name"]), ("callees", "memcpy"))
        self.keys("Escape")
        self.assertEqual(self.selection("sandwich"), "")

    def test_sandwich_by_key(self):
        self.show(profile())
        self.browser.eval("document.querySelectorAll('.flame-side tbody tr')[1].focus()")
        self.keys("Enter")
        self.assertEqual(self.selection("sandwich"), "memcpy")


class Diff(FlameCase):
    def test_widths(self):
        self.show(comparison())
        self.assertEqual(self.drawn(), {"all": 602, "main": 602, "hot": 300, "same": 200, "cold": 100, "rare": 2})
        self.browser.click_on("[data-side=base]")
        self.assertEqual(self.drawn(), {"all": 501, "main": 501, "cold": 200, "same": 200, "hot": 100, "rare": 1})
        self.browser.click_on("[data-side=both]")
        self.assertEqual(self.drawn()["hot"], 400)
        self.assertEqual(self.browser.eval("[...document.querySelectorAll('[data-side][aria-pressed=true]')].map((one) => one.textContent)"), ["both"])

    def test_shares(self):
        self.show(comparison())
        self.browser.click_on("[data-toggle=norm]")
        change = self.box("hot")["change"]
        self.assertAlmostEqual(change["base"], 100 * 100 / 501, 6)
        self.assertAlmostEqual(change["file"], 100 * 300 / 602, 6)
        self.assertEqual(self.rows()["main"][1:3], ["100.00 %", "100.00 %"])

    def test_colours_are_of_what_chance_does_not_explain(self):
        self.show(comparison())
        self.assertEqual({box["name"]: box["change"]["sure"] for box in self.boxes()},
                         {"all": True, "main": True, "hot": True, "cold": True, "same": False, "rare": False})
        red, _, blue = self.colour("hot")
        self.assertGreater(red, blue + 40, "more is red")
        red, _, blue = self.colour("cold")
        self.assertGreater(blue, red + 40, "less is blue")
        self.assertEqual(len(set(self.colour("same"))), 1, "the same is grey")

    def test_signs_are_drawn_where_colours_are(self):
        self.show(comparison())
        for name, lines in (("hot", [True, True]), ("cold", [True, False]), ("same", [False, False])):
            box = self.box(name)
            right = box["width"] - 1 - 10
            across, down = self.colour(name, right + 1.5, 8), self.colour(name, right + 4, 5.5)
            dark = [sum(colour) < 3 * 150 for colour in (across, down)]
            self.assertEqual(dark, lines, (name, across, down))

    def test_numbers(self):
        self.show(comparison())
        self.keys("ArrowUp", "ArrowUp", "ArrowUp")
        text = self.text(".details")
        for part in ("hot", "base 100.000 ms", "file 300.000 ms", "change +200.000 ms ± ", "more than chance"):
            self.assertIn(part, text)
        rows = self.rows()
        self.assertEqual(list(rows), ["hot", "main", "cold", "rare", "same"])
        self.assertEqual(rows["cold"][1:3], ["200.000 ms", "100.000 ms"])
        self.assertRegex(rows["cold"][3], r"^−100\.000 ms ± .* \*$")
        self.assertEqual(rows["cold"][0], rows["cold"][3], "all of it is its own")
        self.assertEqual(rows["main"][0], "0")
        self.assertRegex(rows["same"][3], r"^\+0 ns ± [^*]*$")

    def test_rule_is_that_of_the_command(self):
        """Of a share p of a whole that is known: ((1-p)^2 within + p^2 outside), in units of the whole; squares are w^2 / n."""
        self.show(comparison())
        change = self.box("hot")["change"]
        error = 0
        for part, whole in ((100, 501), (300, 602)):
            p, within = part / whole, part * part / part
            error += (1 - p)**2 * within + p**2 * max(whole * whole / whole - within, 0)
        self.assertAlmostEqual(change["error"] / MS, error**.5, 6)  # the page has whole ns
        self.assertAlmostEqual(self.browser.eval("criticalZ(1)"), 1.959964, 5)
        self.assertAlmostEqual(self.browser.eval("criticalZ(1000)"), 4.0497, 3)


class Source(FlameCase):
    def test_heat_per_line(self):
        sources = [{"file": "server.c", "first_line": 4, "lines": ["int serve()", "{", "    <b>parse</b>();"] + [""] * 43 + ["int parse()"]}]
        self.show(profile(sources=sources))
        self.click_box("serve", button="right")
        self.browser.click_on("([...document.querySelectorAll('.menu button')].at(-1))")
        cells = self.browser.eval("[...document.querySelectorAll('.source tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
        self.assertEqual(cells[1], ["0 ns", "45.000 ms", "45.00 %", "5", "{"])
        self.assertEqual(cells[2], ["", "", "", "6", "    <b>parse</b>();"])
        self.assertEqual(cells[46], ["20.000 ms", "30.000 ms", "30.00 %", "50", "int parse()"])
        self.keys("Escape")
        self.assertEqual(self.texts(".source"), [])

    def test_lines_of_a_function_are_one_box(self):
        """With sources frames are apart by the line that was run; the graph and the table are by function."""
        page = profile(sources=[{"file": "hot.c", "first_line": 1, "lines": ["void hot()", "{", "    one();", "    two();", "}"]},
                                {"file": "hot.c", "first_line": 90, "lines": ["far"]}])
        for line, weight in ((3, 30), (4, 70)):
            page.row("row", (("hot", 0, "hot.c", 1, "demo", line), ("deep", 0, "hot.c", 90, "demo", 90)), label=0, state=0, weight=weight * MS, samples=1)
        self.show(page)
        self.assertEqual([box["total"] / MS for box in self.boxes() if box["name"] == "hot"], [100])
        self.assertEqual(self.rows()["hot  hot.c:1"], ["0 ns", "0.00 %", "100.000 ms", "50.00 %", "2"])
        self.click_box("hot", button="right")
        self.browser.click_on("([...document.querySelectorAll('.menu button')].at(-1))")
        cells = self.browser.eval("[...document.querySelectorAll('.source tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
        self.assertEqual(cells[2:4], [["0 ns", "30.000 ms", "15.00 %", "3", "    one();"], ["0 ns", "70.000 ms", "35.00 %", "4", "    two();"]])
        self.assertEqual(cells[5:], [["lines without samples"], ["100.000 ms", "100.000 ms", "50.00 %", "90", "far"]])
        self.assertEqual(self.browser.eval("document.querySelector('.source .chosen').dataset.line"), "1")

    def test_without_source_the_menu_has_no_entry(self):
        self.show(profile())
        self.click_box("serve", button="right")
        self.assertNotIn("show source", self.texts(".menu button"))


if __name__ == "__main__":
    main()
