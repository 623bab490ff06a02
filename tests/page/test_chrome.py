# SPDX-License-Identifier: MIT
"""What is around the views: totals, weights, states, filters, undo, help, light and dark; and the tab that says what a profile knows."""
import re
import urllib.parse

from browser import main
from flame_case import FlameCase
from flame_data import MS, comparison, ROWS, profile
from rich_page import rich_page


class ChromeCase(FlameCase):
    def totals(self):
        return self.text(".totals")

    def pills(self):
        return self.texts(".pill[data-filter]")

    def choose(self, dimension):
        """Open the list of a filter's values."""
        self.keys("p")
        self.browser.click_on(f"[data-dimension={dimension}]")

    def options(self):
        """Value -> weight and share, as the list shows them."""
        return dict(self.browser.eval("[...document.querySelectorAll('.options button')].map((one) => [...one.children].map((part) => part.textContent))"))


class Findings(ChromeCase):
    """What explain says stands on the first screen, in each view; nothing of it where it was not asked for."""

    def said(self, verdict):
        page = profile()
        page.head["verdict"] = verdict
        self.show(page)
        return self.texts(".findings > p"), self.texts(".findings li")

    def test_findings(self):
        def finding(rank, sentence):
            return {"rank": rank, "sentence": sentence, "hurt": "20 coroutines", "sure": "exact", "command": "greenprof report x"}
        first, all_of_it = self.said([finding("caveat", "10 samples were lost."), finding("finding", "hog kept the loop.")])
        self.assertEqual(first, ["hog kept the loop."])
        self.assertEqual(all_of_it, ["hog kept the loop. Hurt: 20 coroutines. Sure: exact. greenprof report x",
                                     "10 samples were lost. Hurt: 20 coroutines. Sure: exact. greenprof report x"])
        self.assertEqual(self.said([finding("note", "a third is start-up.")])[0], ["Nothing stands out in the program."])
        self.assertEqual(self.said([]), (["Nothing stands out in the program."], []))
        self.assertEqual(self.said(None), ([], []))


class Weights(ChromeCase):
    def test_totals(self):
        self.show(profile())
        self.assertEqual(self.totals(), "0.100000 s CPU, 100.00 % of all, 20 samples")
        self.assertEqual(self.text("h1"), "shop")
        self.assertEqual(self.browser.eval("document.title"), "shop - greenprof")

    def test_each_weight(self):
        self.show(profile())
        for key, text in (("wall", "0.200000 s Wall"), ("parked", "0.060000 s Parked"), ("ready", "0.040000 s Ready"), ("cpu", "0.100000 s CPU")):
            self.browser.click_on(f"[data-weight={key}]")
            self.assertTrue(self.totals().startswith(text), self.totals())
            self.assertEqual(self.browser.eval("document.querySelector('[data-weight][aria-pressed=true]').dataset.weight"), key)

    def test_what_there_is_nothing_of_cannot_be_chosen(self):
        self.show(profile())
        missing = self.browser.eval("[...document.querySelectorAll('[data-weight]:disabled')].map((one) => [one.dataset.weight, one.title])")
        self.assertEqual([key for key, _ in missing], ["blocked", "delay", "path"])
        self.assertTrue(all(title for _, title in missing))

    def test_next_weight(self):
        self.show(profile())
        seen = []
        for key in "wwwwW":
            self.keys(key)
            seen.append(self.selection("weight"))
        self.assertEqual(seen, ["wall", "parked", "ready", "cpu", "ready"])

    def test_victims_and_paths(self):
        page = profile()
        page.row("delay", ("main", "hog"), label=0, state=3, weight=7 * MS, samples=2)
        page.row("path", ("main", "slow"), label=0, state=2, weight=9 * MS, samples=1)
        self.show(page, "weight=delay")
        self.assertEqual(self.totals(), "0.007000 s Victims' time, 100.00 % of all, 2 delays")
        self.assertIn("hog", self.names())
        self.browser.click_on("[data-weight=path]")
        self.assertIn("slow", self.names())

    def test_state_chips(self):
        self.show(profile(), "weight=wall")
        self.assertEqual(self.texts(".chip"), ["running", "parked", "ready"])
        self.browser.click_on("[data-state='2']")
        self.assertEqual(self.totals(), "0.140000 s Wall, 70.00 % of all, 22 samples")
        self.assertEqual(self.pills(), ["state: running, ready"])
        self.browser.click_on("[data-state='2']")
        self.assertEqual(self.pills(), [])
        self.show(profile())
        self.assertEqual(self.texts(".chip"), [], "one state: there is nothing to choose")

    def test_nothing_left(self):
        self.show(profile(), "name=worker&thread=nowhere")
        self.assertIn("Nothing is left under these filters", self.text(".empty"))
        self.assertEqual(self.names(), [])
        self.keys("ArrowUp", "Enter", "m", "n", "Backspace", "Escape")
        self.browser.click_on("[data-filter=thread]")
        self.assertEqual(self.texts(".empty"), [])
        self.assertEqual(self.drawn()["all"], 75)
        self.show(profile(), "weight=blocked")
        self.assertIn("There is no Blocked in this file", self.text(".empty"))


class Filters(ChromeCase):
    def test_each_dimension(self):
        expected = {
            "coro": {"2 worker": "45.000 ms  45.00 %", "1 worker": "30.000 ms  30.00 %", "[thread main]": "25.000 ms  25.00 %"},
            "name": {"worker": "75.000 ms  75.00 %", "[thread main]": "25.000 ms  25.00 %"},
            "entry": {"serve": "75.000 ms  75.00 %"},
            "spawn": {"serve server.c:5": "45.000 ms  45.00 %"},
            "trace": {"%032x" % 11: "45.000 ms  45.00 %", "%032x" % 10: "30.000 ms  30.00 %"},
            "endpoint": {"GET /cart": "75.000 ms  75.00 %"},
            "request": {"GET /cart 10.000 ms 00000000": "45.000 ms  45.00 %", "GET /cart 20.000 ms 00000000": "30.000 ms  30.00 %"},
            "thread": {"main": "55.000 ms  55.00 %", "io": "45.000 ms  45.00 %"},
            "hideModule": {"libc.so.6": "25.000 ms  25.00 %", "demo": "20.000 ms  20.00 %"}}
        titles = {"coro": "coroutine: 2 worker", "name": "name: worker", "entry": "entry function: serve", "spawn": "spawn site: serve server.c:5",
                  "trace": "trace: " + "%032x" % 11, "endpoint": "endpoint: GET /cart", "request": "request: GET /cart 10.000 ms 00000000",
                  "thread": "thread: main", "hideModule": "without library: libc.so.6"}
        for dimension, options in expected.items():
            with self.subTest(dimension):
                self.show(profile())
                self.choose(dimension)
                self.assertEqual(self.options(), options)
                self.browser.click_on(".options button")
                self.assertEqual(self.pills(), [titles[dimension]])
                first = float(next(iter(options.values())).split()[0])
                self.assertEqual(self.drawn()["all"], 100 if dimension == "hideModule" else first)

    def test_several_coroutines(self):
        self.show(profile())
        self.choose("coro")
        for number in (0, 2):
            self.browser.click_on(f"(document.querySelectorAll('.options button')[{number}])")
        self.assertEqual(self.pills(), ["coroutine: 2 worker, [thread main]"])
        self.assertTrue(self.totals().startswith("0.070000 s"))
        self.browser.click_on("(document.querySelectorAll('.options button')[0])")
        self.assertEqual(self.pills(), ["coroutine: [thread main]"])

    def test_by_keys(self):
        self.show(profile())
        self.keys("p")
        self.browser.type("1 w")
        self.assertEqual(list(self.options()), ["1 worker"])
        self.keys("ArrowDown", "Enter")
        self.assertEqual(self.pills(), ["coroutine: 1 worker"])
        self.keys("Escape")
        self.assertTrue(self.browser.eval("document.activeElement.classList.contains('add-filter')"))
        self.browser.eval("document.querySelector('.pill[data-filter]').focus()")
        self.keys("Delete")
        self.assertEqual(self.pills(), [])

    def test_expressions(self):
        self.show(profile())
        for dimension, text, all_ms in (("focus", "PyEval", 30), ("hide", "^turn$", 30)):
            self.choose(dimension)
            self.browser.type(text)
            self.keys("Enter")
            self.assertEqual(self.selection(dimension), text)
            self.assertEqual(self.drawn()["all"], all_ms)
        self.assertEqual(self.pills(), ["stacks with: PyEval", "without frames: ^turn$"])

    def test_shares_follow_the_other_filters(self):
        self.show(profile(), "thread=io")
        self.choose("coro")
        self.assertEqual(self.options(), {"2 worker": "45.000 ms  45.00 %"})

    def test_two_hundred_at_most(self):
        page = profile()
        for i in range(300):
            coro = page.add("coro", id=100 + i, name=0)
            page.row("row", ("main", "many"), label=page.add("label", coro=coro + 1), state=0, weight=1000 + i, samples=1)
        self.show(page)
        self.choose("coro")
        self.assertEqual(len(self.options()), 200)
        self.assertIn("303 found, the heaviest 200 are shown", self.text(".popover [role=status]"))
        self.browser.type("^399 ")
        self.assertEqual(list(self.options()), ["399 worker"])

    def test_time(self):
        self.show(profile(), f"from=0&to={10 * MS}")
        self.assertEqual(self.pills(), ["time: 0 ns to 10.000 ms"])
        self.assertEqual(self.drawn()["all"], 30)
        self.browser.click_on("[data-filter=time]")
        self.assertEqual(self.drawn()["all"], 100)

    def test_names_are_texts(self):
        page = profile(coroutines=["<img src=x onerror=alert(1)>", "[thread main]"], title="<b>x</b>")
        self.show(page, "name=" + urllib.parse.quote("<img src=x onerror=alert(1)>"))
        self.assertEqual(self.pills(), ["name: <img src=x onerror=alert(1)>"])
        self.assertEqual(self.text("h1"), "<b>x</b>")
        self.assertEqual(self.browser.eval("document.querySelectorAll('img').length"), 0)


class Around(ChromeCase):
    def test_undo_and_reset(self):
        self.show(profile())
        self.assertTrue(self.browser.eval("[...document.querySelectorAll('header button')].find((one) => one.textContent.startsWith('undo')).disabled"))
        self.keys("w", "I")
        self.keys("u")
        self.assertEqual((self.selection("weight"), self.selection("invert")), ("wall", ""))
        self.keys("u")
        self.assertEqual(self.selection("weight"), "")
        self.keys("w", "I")
        self.browser.click_on("([...document.querySelectorAll('header button')].find((one) => one.textContent === 'reset'))")
        self.assertEqual(self.browser.eval("location.hash"), "")

    def test_the_file_says_what_stands_at_the_root_first(self):
        """Nothing at the root is then a choice of its own, which a link and undo keep."""
        self.show(profile(root="thread"))
        self.assertEqual(self.selection("root"), "thread")
        self.browser.eval("greenprofApp.set({ root: '' })")
        self.assertEqual(self.browser.eval("location.hash"), "#root=")
        self.show(profile(root="thread"), "root=")
        self.assertEqual(self.selection("root"), "")
        self.keys("I", "u")
        self.assertEqual(self.selection("root"), "")

    def test_tabs(self):
        self.show(profile())
        self.keys("a")
        self.assertEqual(self.texts("[aria-current=page]"), ["Trutha"])
        self.assertTrue(self.browser.eval("location.hash").startswith("#view=about"))
        self.browser.click_on("[data-view=flame]")
        self.assertIn("main", self.names())

    def test_help_lists_every_key(self):
        self.show(profile())
        self.keys("?")
        keys = self.browser.eval("[...Object.keys(greenprofApp.view.keys), ...Object.keys(greenprofApp.chrome.keys)]")
        self.assertEqual(self.texts("dialog kbd"), keys)
        self.assertEqual(self.browser.eval("document.querySelector('dialog').scrollTop"), 0, "its first keys are seen")
        self.keys("i")
        self.assertEqual(self.selection("icicle"), "", "keys do nothing below an open help")
        self.keys("Escape")
        self.assertEqual(self.texts("dialog"), [])

    def test_dark(self):
        self.show(profile())
        background = "getComputedStyle(document.documentElement).backgroundColor"
        self.assertEqual(self.browser.eval(background), "rgb(255, 255, 255)")
        light = self.colour("turn")
        self.keys("d")
        self.assertNotEqual(self.browser.eval(background), "rgb(255, 255, 255)")
        self.assertLess(sum(self.colour("turn")), sum(light))
        self.keys("d", "d")
        self.browser.dark()
        self.browser.wait("document.documentElement.classList.contains('dark')")

    def test_copy_link(self):
        self.show(profile(), "invert=1")
        self.browser.eval("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
        self.browser.click_on("([...document.querySelectorAll('header button')].find((one) => one.textContent === 'copy link'))")
        self.assertEqual(self.browser.wait("window.copied"), self.browser.eval("location.href"))

    def test_losses(self):
        counters = [["signals", 30, "signals that arrived", False], ["drop_ring_full", 4, "dropped, the collector could not keep up", True]]
        self.show(profile(counters=counters))
        self.assertEqual(self.texts(".badge"), ["1 loss"])
        self.browser.click_on(".badge")
        self.assertEqual(self.browser.eval("[...document.querySelectorAll('.about td.key')].map((one) => one.textContent)"), ["loss: drop_ring_full", "signals"])
        self.show(profile())
        self.assertEqual(self.texts(".badge"), [])

    def test_print_has_the_legend_and_the_filters(self):
        for view in ("flame", "timeline"):
            self.show(rich_page(), f"view={view}&weight=wall&name=handle")
            self.browser.media("print")
            self.assertIn("running", " ".join(self.texts(".legend")), view)
            self.assertEqual(self.pills(), ["name: handle"])
            self.assertEqual(self.texts(".tabs, .toolbar [data-weight], input, .details .muted"), [], view)
            self.browser.media()

    def test_a_small_screen_shows_the_view(self):
        """Controls scroll sideways there, so that they take a line each."""
        self.show(rich_page(), width=390, height=844)
        self.browser.wait("document.querySelector('.flame-scroll').getBoundingClientRect().top < 400")  # once it knows its width
        self.assertEqual(self.browser.eval("[...document.querySelectorAll('.toolbar')].filter((one) => one.offsetHeight > 60).length"), 0)

    def test_all_that_is_seen_lies_in_a_region(self):
        for view in ("flame", "tree", "timeline", "stacks", "heatmap", "requests", "blame", "about"):
            self.show(rich_page(verdict=[]), f"view={view}")
            outside = self.browser.eval("""[...document.querySelectorAll("button, input, select, p, table, canvas, h1, h2")].filter((one) =>
                one.offsetParent && !one.closest("main, header, nav, section[aria-label], dialog")).map((one) => one.outerHTML)""")
            self.assertEqual(outside, [], view)
            levels = self.browser.eval("[...document.querySelectorAll('h1, h2, h3')].filter((one) => one.offsetParent).map((one) => Number(one.tagName[1]))")
            self.assertTrue(all(after - before < 2 for before, after in zip(levels, levels[1:])), (view, levels))

    def test_fits_every_width(self):
        for width in (360, 800, 2560):
            self.show(profile(), "weight=wall&name=worker&sandwich=serve", width=width)
            self.assertLessEqual(self.browser.eval("document.documentElement.scrollWidth"), width)

    def test_everything_that_is_pressed_has_a_name(self):
        self.show(comparison())
        nameless = self.browser.eval("""[...document.querySelectorAll("button, input, select, canvas:not([aria-hidden])")].filter((one) =>
            !(one.textContent.trim() || one.getAttribute("aria-label") || one.labels?.length)).map((one) => one.outerHTML)""")
        self.assertEqual(nameless, [])


class Truth(ChromeCase):
    def about(self, **head):
        self.show(profile(**head), "view=about")
        return self.text(".about")

    def test_origin(self):
        text = self.about(start_realtime_ns="1700000000123000000", made_by="greenprof 1.2", frequency_hz=997)
        for part in ("greenprof flamegraph shop.greenprof -o shop.html", "2023-11-14 22:13:20.123 UTC", "40.000 ms", "997 Hz", "greenprof 1.2"):
            self.assertIn(part, text)

    def test_sampled_against_exact(self):
        self.about()
        self.assertEqual(self.text(".verdict"), "The samples add up to 102.00 % of the exact CPU time (+2.00 %). Chance alone gives ± 5.00 %: the two agree.")
        totals = {"cpu_ns": 100 * MS, "sampled_ns": 80 * MS, "error_ns": 5 * MS, "samples": 20, "total_ns": 100 * MS, "basis": "exact", "exact_calls": False}
        self.about(totals=totals)
        self.assertRegex(self.text(".verdict"), re.escape("80.00 % of the exact CPU time (-20.00 %)") + ".*larger than that")
        self.about(totals={**totals, "cpu_ns": 0})
        self.assertIn("not known", self.text(".verdict"))

    def test_unknown_frames(self):
        page = profile()
        page.row("row", ("main", "[switching]"), label=0, state=0, weight=50 * MS, samples=5)
        self.show(page, "view=about")
        self.assertIn("[switching] 20.00 %", self.text(".about"))
        self.assertIn("50.000 ms: inside a switch between stacks", self.text(".about"))
        self.assertIn("Every sample has its whole stack", self.about())

    def test_code_without_names(self):
        """By the function on top, of what is shown first: waits do not count, names of others in the module neither."""
        page, library = profile(), "/usr/lib/libz.so.1"
        nameless = ("libz.so.1+0x1234", 0, "", 0, library)
        page.row("row", ("main", nameless), label=0, state=0, weight=100 * MS, samples=10)
        page.row("row", ("main", nameless, ("[parked]", 2)), label=0, state=2, weight=900 * MS, samples=90)
        page.row("row", (nameless, ("deflate", 0, "", 0, library)), label=0, state=0, weight=50 * MS, samples=5)
        self.show(page, "view=about")
        self.assertIn("no names 40.00 %", self.text(".about"))
        self.assertIn(f"100.000 ms: code that no symbol names, most in {library};", self.text(".about"))
        self.assertNotIn("Every sample has its whole stack", self.text(".about"))

    def test_samples_and_own_cost(self):
        """Samples are counted as the table of counters and reports count them."""
        totals = {"cpu_ns": 100 * MS, "sampled_ns": 102 * MS, "error_ns": 5 * MS, "samples": 25, "total_ns": 200 * MS, "basis": "exact",
                  "exact_calls": False, "own_ppm": 13700}
        text = self.about(totals=totals, counters=[["samples", 10, "", False], ["unsampled_ns", 7, "", True]])
        on_cpu = sum(row[4] for row in ROWS if row[2] == 0)
        self.assertIn(f"{on_cpu} on the CPU, {25 - on_cpu} of what waited", text)
        self.assertIn("took 1.37 % of the program's CPU time", text)
        self.assertIn("which was not measured", text)
        self.assertIn("1 counter of losses above 0", text)

    def test_not_known(self):
        """What greenprof does not know of a runtime is a loss, too."""
        text = self.about(not_known=["Perl's Coro: no hook"])
        self.assertIn("Not known: Perl's Coro: no hook.", text)
        self.assertNotIn("Nothing was lost", text)
        self.assertEqual(self.texts(".badge"), ["1 loss"])

    def test_notes_and_weights(self):
        text = self.about(notes=["Stacks below 0.01 % are folded."])
        self.assertIn("Stacks below 0.01 % are folded.", text)
        self.assertIn("Nothing was lost", text)
        self.assertIn("time on the CPU (running). 0.100000 s in this file.", text)


if __name__ == "__main__":
    main()
