#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The view of requests: figures against what the page was made of, sorting, filters, the chosen request, slow ones against the rest."""
import math

from browser import PageCase, main
from page_data import PageData
from requests_data import MS, RUNNING, endpoint_of, latency, list_parts, put_parts, requests_page

LIST = [list_parts(i) for i in range(100)]
PUT = [put_parts(i) for i in range(4)]
VIEW = "greenprofApp.view"
TABLE = "section[aria-label=requests]"


def rows(section):
    return f"[...document.querySelectorAll('section[aria-label={section}] tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"


def head(text, section="requests"):
    return f"([...document.querySelectorAll('section[aria-label={section}] th button')].find((one) => one.textContent.startsWith('{text}')))"


def text_of(selector):
    return f"document.querySelector('{selector}').textContent"


def milliseconds(ns):
    return f"{ns / MS:.3f} ms"


def welch(a, b):
    def scatter(values):
        mean = sum(values) / len(values)
        return sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values)
    return (sum(a) / len(a) - sum(b) / len(b)) / math.sqrt(scatter(a) + scatter(b))


class RequestsCase(PageCase):
    def open(self, hash="", **how):
        return self.show(requests_page(), "view=requests" + (hash and "&" + hash), **how)

    def selection(self, key):
        return self.browser.eval(f"greenprofApp.selection.{key}")

    def numbers(self):
        """Numbers of the requests in the table, from 0."""
        return [int(row[0]) - 1 for row in self.browser.eval(rows("requests"))]

    def compared(self):
        self.browser.wait("document.querySelector('.levers') !== null")


class Endpoints(RequestsCase):
    def test_figures_are_those_of_the_file(self):
        page = self.open()
        for row, parts, failed in zip(page.eval(rows("endpoints")), (LIST, PUT), (0, 1)):
            truth = endpoint_of("", [latency(one) for one in parts], failed)
            self.assertEqual(row[1:7], [str(truth["count"]), str(failed), *(milliseconds(truth[f"{one}_ns"]) for one in ("p50", "p90", "p99", "max"))])

    def test_figures_of_a_part_of_the_time_are_nearest_ranks(self):
        page = self.open(f"from=0&to={250 * MS}")
        found = page.eval(f"{VIEW}.endpointRows.map(({{ tail, slow, ...figures }}) => figures)")
        self.assertEqual(found, [endpoint_of("GET /list", [latency(one) for one in LIST[:50]], 0)])

    def test_where_the_slowest_differ(self):
        page = self.open()
        rest = 2 * 99 * MS / sum(latency(one) for one in LIST[:99])
        tails = [row[8] for row in page.eval(rows("endpoints"))]
        self.assertEqual(tails[0], f"slowest 1 % (1): +38.000 ms [parked] in recv ← query ← handle: 66.67 % of their latency, {100 * rest:.2f} % of the rest's")
        self.assertTrue(tails[1].startswith("slowest 1 % (1): +2.000 ms [blocked] in fsync ← log ← handle"), tails)

    def test_a_click_filters_and_another_one_does_not(self):
        page = self.open()
        second = "section[aria-label=endpoints] tbody tr:nth-child(2)"
        page.click_on(second)
        self.assertEqual((self.selection("endpoint"), sorted(self.numbers())), ("PUT /item", [100, 101, 102, 103]))
        page.click_on(second)
        self.assertEqual((self.selection("endpoint"), len(self.numbers())), ("", 104))

    def test_columns_sort(self):
        page = self.open()
        page.click_on(head("p50", "endpoints"))
        page.click_on(head("p50", "endpoints"))
        self.assertEqual([row[0] for row in page.eval(rows("endpoints"))], ["PUT /item", "GET /list"])


class Table(RequestsCase):
    def test_the_slowest_come_first(self):
        self.open()
        order = sorted(range(104), key=lambda i: (-latency((LIST + PUT)[i]), i))
        self.assertEqual(self.numbers(), order)

    def test_sorted_by_click_and_by_key(self):
        page = self.open()
        cpu = [2 * sum(ns for state, _, ns in parts if state == RUNNING) for parts in LIST + PUT]
        page.click_on(head("CPU"))
        self.assertEqual(self.selection("sort"), "-CPU")
        self.assertEqual(self.numbers(), sorted(range(104), key=lambda i: (-cpu[i], i)))
        self.assertEqual(page.eval("document.activeElement.textContent"), "CPU ▾")
        page.key("Enter")
        self.assertEqual(self.numbers(), sorted(range(104), key=lambda i: (cpu[i], i)))
        self.assertEqual(page.eval(f"{head('CPU')}.closest('th').getAttribute('aria-sort')"), "ascending")

    def test_only_the_first_rows_of_many_are_shown_in_their_order(self):
        data, count = requests_page(), 1200
        for i in range(104, count):
            data.add("request", trace=0, endpoint=1, coro=0, start=900 * MS, latency=MS + i * 7919 % 1200, cpu=i, coros=1)
        page = self.show(data, "view=requests&sort=latency")
        order = sorted(range(104, count), key=lambda i: (i * 7919 % 1200, i))
        self.assertEqual(self.numbers(), order[:200])
        self.assertIn("1 000 more rows", page.eval(text_of(f"{TABLE} .more")))

    def test_chosen_by_click_enter_and_letters(self):
        page = self.open()
        page.click_on(f"{TABLE} tbody tr:nth-child(2)")
        self.assertEqual((self.selection("request"), self.selection("row")), ("98", "98"))
        page.eval(f"document.querySelectorAll('{TABLE} tbody tr')[0].focus()")
        page.key("Enter")
        self.assertEqual(self.selection("request"), "99")
        self.assertEqual(page.eval(f"[...document.querySelectorAll('{TABLE} tr[aria-selected=true]')].map((row) => row.cells[0].textContent)"), ["100"])
        page.key("j")
        self.assertEqual(self.selection("request"), "98")
        page.key("k")
        self.assertEqual(self.selection("request"), "99")
        self.assertEqual(len(self.numbers()), 104, "the others are still there")
        page.click_on("(" + "[...document.querySelectorAll('.request button')].find((one) => one.textContent === 'close'))")
        self.assertEqual((self.selection("request"), page.eval("document.querySelector('.request').hidden")), ("", True))

    def test_filters(self):
        for hash, truth in ((f"trace={5:032x}", [4]), ("coro=7", [7]), ("coro=7,9", [7, 9]), ("entry=serve", range(104)), ("name=crunch", []),
                            (f"from={600 * MS}", range(100, 104)), (f"latency={7 * MS},{10 * MS + 1}", [0, 103]), ("endpoint=GET+/list&coro=101", [])):
            with self.subTest(hash):
                page = self.open(hash)
                self.assertEqual(sorted(self.numbers()), list(truth))
                if not truth:
                    self.assertIn("No request is left by the filters", page.eval(f"{VIEW}.empty()"))

    def test_without_requests_it_says_how_to_have_some(self):
        data = PageData()
        data.row("row", ("main",), label=0, state=0, weight=MS, samples=1)
        page = self.show(data, "view=requests")
        self.assertIn("prof_span_begin()", page.eval(f"{VIEW}.empty()"))
        self.assertEqual(page.eval(rows("requests")), [])


class Chosen(RequestsCase):
    def test_states_sum_up_to_the_latency(self):
        page = self.open("request=99&row=99")
        sums = page.eval(f"[...Array(104).keys()].map((i) => [...{VIEW}.requests.states(i)])")
        for states, parts in zip(sums, LIST + PUT):
            truth = [sum(ns for one, _, ns in parts if one == state) for state in range(6)]
            self.assertEqual(states, truth + [0, 0, 0, 0])  # not known, [gil], [lock], [queued]
        self.assertEqual(page.eval(text_of(".request .sums")), "running 15.000 ms (25.00 %) + parked 40.000 ms (66.67 %) + ready 5.000 ms (8.33 %) = 60.000 ms")
        boxes = page.eval(f"{VIEW}.one.bar.boxes")
        self.assertEqual([box["name"] for box in boxes], ["running", "parked", "ready"])
        self.assertAlmostEqual(sum(box["width"] for box in boxes), page.eval(f"{VIEW}.one.bar.canvas.getBoundingClientRect().width"), delta=1)

    def test_what_is_not_on_the_path_is_not_known(self):
        data = requests_page()
        data.add("request", trace=0, endpoint=1, coro=0, start=900 * MS, latency=MS, coros=1)
        page = self.show(data, "view=requests&request=104&row=104")
        self.assertEqual(page.eval(text_of(".request .sums")), "not known 1.000 ms (100.00 %) = 1.000 ms")
        self.assertEqual(page.eval(text_of(".request .why")), "PUT /item took 1.000 ms; what it spent its time on is not known.")

    def test_why_in_one_sentence(self):
        page = self.open("request=99")
        self.assertEqual(page.eval(text_of(".request .why")),
                         "GET /list took 60.000 ms: 67 % parked in recv, 25 % running in render, 8 % ready behind 12 crunch; itself in handle.")
        data = requests_page()
        label = data.add("label", coro=data.add("coro", id=12, name=0) + 1)
        for name, weight in (("spin", 7), ("sum", 5)):
            data.row("row", ("main", name), label=label, state=RUNNING, weight=weight * MS, samples=1, tick=0)
        page = self.show(data, "view=requests&request=99")
        self.assertTrue(page.eval(text_of(".request .why")).endswith("8 % ready behind 12 crunch, which ran spin; itself in handle."), "and not what waited")

    def test_the_chosen_one_is_in_sight(self):
        for width, height in ((1280, 720), (390, 844)):
            page = self.show(requests_page(), "view=requests", width=width, height=height)
            page.click_on("section[aria-label=requests] tbody tr:nth-child(2) td")
            top = page.eval("document.querySelector('.request .why').getBoundingClientRect().top")
            self.assertTrue(0 <= top < height / 2, (width, top))

    def test_parts_with_the_frames_above(self):
        page = self.open("request=99")
        found = page.eval("[...document.querySelectorAll('.request .table')[0].querySelectorAll('tbody tr')].map((row) => [...row.cells].map((cell) => "
                          "cell.textContent))")
        self.assertEqual(found, [["[parked] in recv ← query ← handle", "199 worker", "40.000 ms", "66.67 %"],
                                 ["running in render ← handle ← serve", "199 worker", "15.000 ms", "25.00 %"],
                                 ["[ready] behind 12 crunch; itself in handle ← serve ← main", "199 worker", "5.000 ms", "8.33 %"]])

    def test_path_in_the_order_of_time_opens_the_timeline(self):
        page = self.open("request=99")
        boxes = page.eval(f"{VIEW}.one.strip.boxes")
        self.assertEqual([box["name"] for box in boxes], ["[ready] in handle", "running in render", "[parked] in recv"])
        self.assertEqual([box["length"] for box in boxes], [5 * MS, 15 * MS, 40 * MS])
        x, y, _, _ = page.place(f"({VIEW}.one.strip.canvas)")
        page.move(x + boxes[2]["x"] + 5, y + 5)
        self.assertIn("40.000 ms [parked] in recv, 199 worker, 20.000 ms after the beginning", page.eval(f"{VIEW}.one.strip.details.textContent"))
        page.click(x + boxes[2]["x"] + 5, y + 5)
        self.assertEqual([self.selection(key) for key in ("view", "from", "to", "request", "row")],
                         ["timeline", str(495 * MS), str(555 * MS), "99", "coro:99"])

    def test_flame_graph_of_exactly_this_request(self):
        page = self.open("request=99&endpoint=GET+/list&coro=99")
        page.click_on("([...document.querySelectorAll('.request button')].find((one) => one.textContent.startsWith('flame graph')))")
        self.assertEqual([self.selection(key) for key in ("view", "weight", "request", "endpoint", "coro")], ["flame", "path", "99", "", ""])
        self.assertEqual(page.eval("greenprofApp.weights().sum"), 60 * MS)

    def test_samples_of_its_trace_are_its_own(self):
        data = requests_page()
        for trace, weight in ((100, 5), (101, 7), (0, 9)):
            data.row("row", ("main", "serve"), label=data.add("label", coro=100, trace=trace), state=RUNNING, weight=weight * MS, samples=1, tick=0, side=0)
        page = self.show(data, "view=flame&weight=wall&request=99")
        self.assertEqual(page.eval("greenprofApp.weights().sum"), 5 * MS)
        page.eval("greenprofApp.set({ request: '', endpoint: 'PUT /item' })")
        self.assertEqual(page.eval("greenprofApp.weights().sum"), 7 * MS)
        page.eval(f"greenprofApp.set({{ endpoint: '', latency: '{55 * MS},{65 * MS}' }})")
        self.assertEqual(page.eval("greenprofApp.weights().sum"), 5 * MS)

    def test_resources_are_not_latency(self):
        page = self.open("request=99")
        self.assertEqual(page.eval(text_of(".request .resources")),
                         "CPU 30.000 ms, ready 5.000 ms, parked 120.000 ms; longest slice 15.000 ms. 2 coroutines worked for it, partly at the same time: "
                         "these are resources, and do not add up to its latency.")

    def test_what_had_its_thread(self):
        page = self.open("request=99")
        self.assertEqual(page.eval("[...document.querySelectorAll('.keepers button')].map((one) => one.textContent)"), ["151 worker 4.000 ms"])
        page.click_on(".keepers button")
        self.assertEqual([self.selection(key) for key in ("view", "coro")], ["blame", "51"])

    def test_spans_are_below_one_another(self):
        page = self.open("request=99")
        found = page.eval("[...document.querySelectorAll('.request .table')[1].querySelectorAll('tbody tr')].map((row) => [...row.cells].map((cell) => "
                          "cell.textContent))")
        self.assertEqual([row[0] for row in found], ["rest_dispatch GET /list", "\u2003database SELECT", "\u2003\u2003database connect (failed)"])
        self.assertEqual(found[0][1:], ["0 ns", "60.000 ms", "15.000 ms", "5.000 ms", "40.000 ms", "0 ns"])

    def test_notes(self):
        for request, text in ((101, "about right only"), (102, "had not ended"), (103, "It failed.")):
            page = self.open(f"request={request}")
            self.assertIn(text, page.eval(text_of(".request .warn")))
        self.assertEqual(self.open("request=99").eval("document.querySelectorAll('.request .warn').length"), 0)


class Latencies(RequestsCase):
    def test_each_latency_is_in_its_bin(self):
        page = self.open()
        boxes = page.eval(f"{VIEW}.chart.boxes")
        for box in boxes:
            self.assertEqual(box["count"], sum(box["first"] <= latency(one) < box["end"] for one in LIST + PUT), box)
        self.assertEqual(sum(box["count"] for box in boxes), 104)
        ratios = [box["end"] / box["first"] for box in boxes[1:-1]]
        self.assertAlmostEqual(min(ratios), max(ratios), delta=.001)

    def test_a_full_bin_is_painted(self):
        page = self.open()
        boxes = page.eval(f"{VIEW}.chart.boxes")
        full = max(boxes, key=lambda box: box["count"])
        none = next(box for box in boxes if box["count"] == 0)

        def alpha(box):
            x, y = box["x"] + box["width"] / 2, full["y"] + full["height"] * .9
            return page.eval(f"{VIEW}.chart.canvas.getContext('2d').getImageData({x} * devicePixelRatio, {y} * devicePixelRatio, 1, 1).data[3]")
        self.assertEqual((alpha(full), alpha(none)), (255, 0))

    def test_a_drag_chooses_a_range(self):
        page = self.open()
        boxes = page.eval(f"{VIEW}.chart.boxes")
        first = next(i for i, box in enumerate(boxes) if box["end"] > 15 * MS)
        x, y, _, _ = page.place(f"({VIEW}.chart.canvas)")
        page.drag(x + boxes[first]["x"] + 2, y + 60, x + boxes[-1]["x"] + 2, y + 60)
        self.assertEqual(self.selection("latency"), f"{boxes[first]['first']},{boxes[-1]['end']}")
        self.assertEqual(sorted(self.numbers()), [i for i in range(104) if latency((LIST + PUT)[i]) >= boxes[first]["first"]])
        self.assertEqual(sum(box["count"] for box in page.eval(f"{VIEW}.chart.boxes")), 104, "the histogram stays")
        self.assertIn(f"{len(self.numbers())} of 104, half of them within", page.eval(f"{VIEW}.sentence()"))
        self.assertEqual(page.eval("(greenprofApp.selection.weight = 'path', greenprofApp.weights().sum)"), sum(latency((LIST + PUT)[i]) for i in self.numbers()))

    def test_by_keys(self):
        page = self.open()
        page.eval(f"{VIEW}.chart.canvas.focus()")
        page.key("ArrowRight")
        page.key("ArrowLeft")
        page.key("ArrowRight", ["Shift"])
        page.key("Enter")
        boxes = page.eval(f"{VIEW}.chart.boxes")
        self.assertEqual(self.selection("latency"), f"{boxes[0]['first']},{boxes[1]['end']}")
        self.assertEqual(self.numbers(), [100])
        page.key("Escape")
        self.assertEqual((self.selection("latency"), len(self.numbers())), ("", 104))

    def test_one_latency_only(self):
        data = PageData(endpoints=[endpoint_of("GET /", [MS], 0)])
        data.add("request", trace=0, endpoint=0, coro=0, start=0, latency=MS, coros=1)
        page = self.show(data, "view=requests")
        self.assertEqual([box["count"] for box in page.eval(f"{VIEW}.chart.boxes")], [1])
        page.wait("document.body.textContent.includes('There is nothing to compare')")


class Compared(RequestsCase):
    def difference(self, name):
        return self.browser.eval(f"{VIEW}.compared.differences.find((one) => one.name === '{name}')")

    def test_means_and_differences(self):
        self.open("tail=5")
        self.compared()
        render = [sum(ns for _, stack, ns in parts if stack[-1] == "render") for parts in LIST]
        found = self.difference("render")
        self.assertAlmostEqual(found["slow"], sum(render[95:]) / 5, delta=1)
        self.assertAlmostEqual(found["rest"], sum(render[:95]) / 95, delta=1)
        self.assertAlmostEqual(found["difference"], found["slow"] - found["rest"], delta=1)
        self.assertAlmostEqual(found["t"], welch(render[95:], render[:95]), delta=1e-6)
        query = self.difference("query")
        self.assertEqual((query["slow"], query["rest"]), ((40 + 4 * 2) * MS / 5, 2 * MS))
        self.assertIsNone(self.difference("handle"), "all of the latency lies under it")

    def test_one_slow_request_has_the_scatter_of_the_rest(self):
        self.open()
        self.compared()
        render = [sum(ns for _, stack, ns in parts if stack[-1] == "render") for parts in LIST]
        mean = sum(render[:99]) / 99
        variance = sum((ns - mean) ** 2 for ns in render[:99]) / 98
        self.assertAlmostEqual(self.difference("render")["t"], (render[99] - mean) / math.sqrt(variance * (1 + 1 / 99)), delta=1e-6)

    def test_a_function_that_only_the_one_slow_request_has(self):
        """Nothing tells how much of that is chance; the largest difference heads the list."""
        page = self.open("endpoint=GET+/list")
        self.compared()
        found = page.eval(f"{VIEW}.compared.comparison.differences({VIEW}.compared.comparison.measure([0]), "
                          f"{VIEW}.compared.comparison.measure([1, 2])).map((one) => [one.name, one.difference, String(one.t)])")
        self.assertNotIn("Infinity", [t.lstrip("-") for _, _, t in found])
        sizes = [abs(difference) for _, difference, _ in found]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        self.assertEqual(page.eval("[welch(1, 5, 25, 9, 0, 0), welch(1, 0, 0, 9, 0, 0)].map(String)"), ["NaN", "0"])

    def test_the_surest_come_first(self):
        page = self.open("tail=10")
        self.compared()
        scores = page.eval(f"{VIEW}.compared.differences.map((one) => Math.min(Math.abs(one.t), 1e9))")
        self.assertEqual(scores, sorted(scores, reverse=True))

    def test_fast_requests_that_the_file_leaves_out_count(self):
        data = requests_page()
        data.head["endpoints"][0]["count"] = 1000
        page = self.show(data, "view=requests")
        self.compared()
        self.assertIn("slowest 1 % (10): ", page.eval(rows("endpoints"))[0][8])
        self.assertIn("10 requests of", page.eval(text_of("section[aria-label^=slowest] .why")))

    def test_a_range_of_latencies_against_the_rest(self):
        page = self.open(f"latency={11 * MS},{12 * MS}&endpoint=GET+/list")
        self.compared()
        self.assertIn("10 requests of 11.450 ms in the mean, against 90 requests", page.eval(text_of("section .why + div, section[aria-label^=slowest] .why")))

    def test_graph(self):
        page = self.open()
        self.compared()
        boxes = {box["name"]: box for box in page.eval(f"{VIEW}.compared.graph.boxes")}
        width = page.eval(f"{VIEW}.compared.graph.canvas.getBoundingClientRect().width")
        self.assertAlmostEqual(boxes["all"]["width"], width, delta=1)
        self.assertAlmostEqual(boxes["recv"]["width"], width * 40 / 60, delta=1)
        self.assertAlmostEqual(boxes["recv"]["rest"], 2 * MS, delta=1)
        box = boxes["recv"]
        pixel = page.eval(f"[...{VIEW}.compared.graph.canvas.getContext('2d').getImageData({box['x'] + box['width'] / 2} * devicePixelRatio, "
                          f"{box['y'] + 7} * devicePixelRatio, 1, 1).data]")
        self.assertGreater(pixel[0], pixel[2] + 30, "red: more in the slow ones")
        x, y, _, _ = page.place(f"({VIEW}.compared.graph.canvas)")
        page.click(x + box["x"] + 20, y + box["y"] + 7)
        self.assertEqual(page.eval(f"{VIEW}.compared.graph.boxes[0].name"), "recv")
        page.key("Escape")
        page.key("ArrowUp")
        page.key("ArrowUp")
        self.assertIn("handle: 60.000 ms of a slow request, 14.900 ms of one of the rest: +45.100 ms", page.eval(f"{VIEW}.compared.graph.details.textContent"))

    def test_how_many_are_slow_is_chosen(self):
        page = self.open()
        self.compared()
        page.click_on("([...document.querySelectorAll('section[aria-label^=slowest] button')].find((one) => one.textContent === '10 %'))")
        page.wait("document.querySelector('section[aria-label^=slowest] h2').textContent.startsWith('The slowest 10 % against')")
        self.assertEqual(self.selection("tail"), "10")
        self.assertIn("10 requests of", page.eval(text_of("section[aria-label^=slowest] .why")))

    def test_what_would_make_it_faster(self):
        page = self.open("endpoint=PUT+/item")
        self.compared()
        total = sum(latency(one) for one in PUT)
        levers = {one["name"]: one for one in page.eval(f"{VIEW}.compared.levers")}
        self.assertEqual({name: (one["gain"], one["present"]) for name, one in levers.items()}, {"fsync": (MS, 1), "handle": (MS, 1), "parse": (MS / 2, 1)})
        self.assertAlmostEqual(levers["fsync"]["self"], 10 * MS / total)
        self.assertAlmostEqual(levers["handle"]["share"], 1)
        self.assertEqual(page.eval("document.querySelector('.levers li:nth-child(3)').textContent"),
                         "1 ms less in parse makes PUT /item up to 500.000 µs faster on average: it is on the critical path of 100.0 % of its requests, "
                         "9.1 % of their latency lies under it; in it they worked or waited for 9.1 %.")

    def test_what_is_ready_is_no_lever(self):
        page = self.open("endpoint=GET+/list")
        self.compared()
        self.assertEqual(page.eval(f"{VIEW}.compared.levers.map((one) => one.name)"), ["render", "recv"])

    def test_a_function_opens_the_flame_graph(self):
        page = self.open()
        self.compared()
        page.click_on("section[aria-label^=slowest] tbody tr")
        self.assertEqual([self.selection(key) for key in ("view", "weight", "search")], ["flame", "path", "^query$"])


class Anywhere(RequestsCase):
    def test_addresses_that_make_no_sense(self):
        for hash in ("request=1.5", "request=-3", "request=9999", "request=x,2", "tail=x", "tail=-1", "latency=x", "latency=5", "sort=x", "row=x", "endpoint=x"):
            with self.subTest(hash):
                page = self.open(hash)
                self.assertEqual(page.eval(f"[{VIEW}.chosen(), {VIEW}.key]"), [-1, "requests"])
                self.assertEqual(page.errors, [])

    def test_narrow_and_dark(self):
        self.browser.dark()
        for width in (360, 3840):
            page = self.open("request=99", width=width)
            self.compared()
            for canvas in page.eval(f"[...{VIEW}.element.querySelectorAll('canvas')].map((one) => one.getBoundingClientRect().width)"):
                self.assertGreater(canvas, 100)
                self.assertLessEqual(canvas, width)

    def test_a_new_size_draws_canvases_anew(self):
        page = self.open("request=99")
        self.compared()
        before = page.eval(f"{VIEW}.compared.graph.boxes[0].width")
        page.resize(700, 800)
        page.wait(f"{VIEW}.compared.graph.boxes[0].width < {before} - 300 && {VIEW}.chart.boxes.at(-1).x < 700")


if __name__ == "__main__":
    main()
