# SPDX-License-Identifier: MIT
"""11. The HTML page of a large profile: opening it, beside Speedscope; filters, searches and zooms.

CPU time counts: of the tab's process until the profile is seen, and of its main thread for all that a change brings about,
layout and painting included. Beside it stands the time on the clock.
"""
import functools
import http.server
import json
import os
import shutil
import sys
import threading

from . import table
from .rounds import Estimate

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path += [os.path.join(ROOT, "tests/page"), os.path.join(ROOT, "tests/formats")]
import npm_package  # noqa: E402
import page_data  # noqa: E402
import speedscope_reader  # noqa: E402
from big_page import PERIOD_NS, BigPage  # noqa: E402
from browser import Browser  # noqa: E402

TURNS = 9
OPTIONS = ["--enable-unsafe-swiftshader", "--disable-frame-rate-limit", "--disable-gpu-vsync"]
# performance.now() when the frame in which a condition was true is done: counted from the start of the navigation
PAINTED = """window.painted = new Promise((done) => {
    const look = () => requestAnimationFrame(() => (%s) ? setTimeout(() => done(performance.now())) : look());
    look();
});"""
PAGE_SHOWS = "document.documentElement.dataset.ready === '1'"
SPEEDSCOPE_SHOWS = "document.title.startsWith('large - ') && document.querySelectorAll('canvas').length > 1"
# Until something of the page is seen, be it that it reads: what the browser itself calls first paint
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
CHANGE = """new Promise((done) => {
    const start = performance.now();
    greenprofApp.set(%s);
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})"""


class Speedscope:
    """Its page, and a profile for it, served from this machine."""

    def __init__(self, release, profile):
        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *arguments):
                pass

            def translate_path(self, path):
                return profile if path == "/large.json" else super().translate_path(path)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=release))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/index.html#profileURL=/large.json"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def write_speedscope(page, path):
    """The same stacks and weights, on the CPU, in Speedscope's own format."""
    stacks = [()]
    for node in range(1, len(page.parent)):
        stacks.append(stacks[page.parent[node]] + (page.frame[node],))
    rows = [row for row in page.rows if row[2] == 0]
    profile = {"type": "sampled", "name": "large", "unit": "nanoseconds", "startValue": 0, "endValue": sum(row[3] for row in rows) * PERIOD_NS,
               "samples": [stacks[row[0]] for row in rows], "weights": [row[3] * PERIOD_NS for row in rows]}
    with open(path, "w", encoding="ascii") as file:
        json.dump({"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": name} for name in page.names]},
                   "profiles": [profile]}, file)


def new_browser():
    return Browser(1600, 1000, OPTIONS)


def opened(url, condition):
    """(ms of CPU, ms on the clock) from the navigation until the frame is done that shows the profile, and until first paint, which may
    be None; a browser of its own each time.
    """
    browser = new_browser()
    try:
        browser.call("Page.addScriptToEvaluateOnNewDocument", source=PAINTED % condition)
        before = browser.cpu_ms("ProcessTime")
        browser.call("Page.navigate", url=url)
        clock = browser.eval("painted")
        return (browser.cpu_ms("ProcessTime") - before, clock), browser.eval(FIRST_PAINT)
    finally:
        browser.close()


def changed(browser, selection):
    """ms of CPU, ms on the clock."""
    before = browser.cpu_ms()
    clock = browser.eval(CHANGE % json.dumps(selection))
    return browser.cpu_ms() - before, clock


# A patch that takes all other filters and shapes away
ALL = {key: "" for key in ("coro", "name", "entry", "spawn", "trace", "endpoint", "thread", "state", "from", "to", "search", "focus", "hide", "hideModule",
                           "native", "collapse", "root", "stitch", "invert", "sandwich", "zoom", "weight")}


def changes(sandwiched):
    """The timed changes: {name: (bound in ms, selections)}. A shape is new each time where it can be: kept ones cost less."""
    words = ("parse", "commit", "visit", "flush", "merge", "lookup", "encode", "render", "fetch")
    traces = [f"{i + 1:032x}" for i in range(TURNS)]

    def each(key, values):
        return 60, [{**ALL, key: value} for value in values]

    def beside(key, value):
        """A filter beside a shape: the first turn, which makes the tree, is a line of its own."""
        return 60, [{**ALL, key: value, "trace": trace} for trace in traces]
    shapes = {"inverted": ("invert", "1"), "rooted by coroutine": ("root", "coroutine"), "rooted by trace": ("root", "trace"),
              "rooted by thread": ("root", "thread"), "stitched": ("stitch", "1"), "recursion as one box": ("collapse", "1"),
              "native frames folded": ("native", "fold")}
    return {"filter: trace": each("trace", traces), "filter: coroutine": each("coro", [str(i) for i in range(TURNS)]),
            "filter: name of coroutines": each("name", ["handle", ""] * 4), "filter: thread": each("thread", ["worker", ""] * 4),
            "filter: state": (60, [{**ALL, "weight": "wall", "state": str(i % 2 * 2)} for i in range(TURNS)]),
            "filter: another weight": each("weight", ("wall", "parked", "cpu") * 3),
            "filter: stacks with a function": each("focus", words), "filter: without functions": each("hide", words),
            "filter: without a library": each("hideModule", [f"libshop_{i}.so" for i in range(TURNS)]),
            "sandwich of a function": each("sandwich", sandwiched),
            **{f"{name}, first": (60, [{**ALL, key: value}]) for name, (key, value) in shapes.items()},
            **{f"{name}: another trace": beside(key, value) for name, (key, value) in shapes.items()},
            "search": (20, [{**ALL, "search": text} for text in ("parse", "commit", "visit", "_77", "flush", "lookup1", "x", "y", "z")]),
            "zoom": (20, None)}


def heavy(browser):
    """Names of functions that are heavy, less heavy and light."""
    return browser.eval("""(() => {
        const { tree, total } = greenprofApp.weights(), nodes = [...tree.parent.keys()].slice(1).sort((a, b) => total[b] - total[a]);
        return [1, 3, 10, 30, 100, 300, 1000, 3000, 10000].map((at) => greenprofApp.trees.nameOf(tree, tree.frame[nodes[at]]));
    })()""")


def zooms(browser):
    """Boxes on the root, heaviest first, and back."""
    names = browser.eval("""(() => {
        const { tree, total } = greenprofApp.weights();
        return [...tree.parent.keys()].filter((node) => node > 0 && tree.parent[node] === 0).sort((a, b) => total[b] - total[a]).slice(0, 5)
            .map((node) => JSON.stringify([greenprofApp.trees.nameOf(tree, tree.frame[node])]));
    })()""")
    return [{"search": "", "zoom": zoom} for name in names for zoom in (name, "")][:TURNS]


def use_page_of(build):
    """Measure the page of the sources from which a build tree was made."""
    try:
        with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
            source = next(line.split("=", 1)[1].strip() for line in file if line.startswith("CMAKE_HOME_DIRECTORY"))
    except FileNotFoundError:
        source = ROOT
    page_data.WEB = os.path.join(source, "src/page/web")


def run(bench):
    table.heading("11. the HTML page of 100,000 distinct stacks, 337,000 nodes, 10 million samples")
    if shutil.which("chromium") is None:
        return table.line("there is no chromium")
    use_page_of(bench.build)
    turns = max(3, round(TURNS * min(1.0, bench.effort)))
    page, path, profile = BigPage(), os.path.join(bench.scratch, "large.html"), os.path.join(bench.scratch, "large.json")
    page.write(path)
    table.figure("file", Estimate.of_values([os.path.getsize(path) / 1e6]), "MB", bound=(3, "<= 3"))
    open_both(bench, page, path, profile, turns)
    browser = new_browser()
    browser.open(path)
    for name, (bound, selections) in changes(heavy(browser)).items():
        figure(name, [changed(browser, selection) for selection in (selections or zooms(browser))[:turns]], bound)
        settle(browser)
    browser.close()


def settle(browser):
    """Nothing is chosen, and what was put off is done: the next line is not to pay for it."""
    changed(browser, ALL)
    browser.eval("new Promise((done) => setTimeout(done, 300))")


def figure(name, took, bound=None, ratio=None):
    """took: [(ms of CPU, ms on the clock)]."""
    cpu, clock = (Estimate.of_values(values) for values in zip(*took))
    table.figure(name, cpu, "ms of CPU", digits=0, ratio=ratio, bound=bound and (bound, f"<= {bound}"), note=f"({clock.value:.0f} on the clock)")


def open_both(bench, page, path, profile, turns):
    """In turns, so that a busy moment meets both."""
    try:
        peer = Speedscope(speedscope_reader.find_page(os.path.join(bench.build, "npm")), profile)
    except npm_package.Missing as missing:
        table.line(f"without Speedscope: {missing}")
        peer = None
    if peer:
        write_speedscope(page, profile)
        size = os.path.getsize(profile) / 1e6
    ours, theirs, firsts = [], [], []
    for _ in range(turns):
        took, first = opened("file://" + path, PAGE_SHOWS)
        ours.append(took)
        firsts.append(took[1] if first is None else first)
        if peer:
            theirs.append(opened(peer.url, SPEEDSCOPE_SHOWS)[0])
    table.figure("first paint: that it reads", Estimate.of_values(firsts), "ms on the clock", digits=0, bound=(500, "<= 500"))
    table.figure("opened and drawn", Estimate.of_values([clock for _, clock in ours]), "ms on the clock", digits=0, bound=(500, "<= 500"))
    figure("opened and drawn", ours, 500)
    if peer:
        ratio = Estimate.of_values([b[0] / a[0] for a, b in zip(ours, theirs)]).value
        figure(f"Speedscope {speedscope_reader.VERSION}, the same profile ({size:.0f} MB)", theirs, ratio=ratio)
        peer.close()
