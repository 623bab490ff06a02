# SPDX-License-Identifier: MIT
"""What the page of `greenprof trace show --html` draws, in a headless Chromium without a network."""
import html
import os
import re
import shutil
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "page"))
from browser import Browser
from support import TRACE, Trace, main, skip, span

if shutil.which("chromium") is None:
    skip("there is no chromium")

EVIL = "</script><script>document.title='hit'</script><img src=x onerror=\"document.title='hit'\">"


class Page(Trace):
    def dom(self, *arguments):
        self.succeed("show", *arguments, "--html", "-o", self.path("page.html"))
        browser = Browser(1200, 900)
        self.addCleanup(browser.close)
        browser.open(self.path("page.html"), ready=False).wait("document.readyState === 'complete'")
        return browser.eval("document.documentElement.outerHTML")

    def rows(self, dom):
        """{span id: (classes, text of the name, left and width of the bar in percent)} of the drawn tree."""
        found = {}
        for classes, id, rest in re.findall(r'<div class="(row[^"]*)"[^>]*?data-span="([^"]*)"[^>]*>(.*?)(?=<div class="row|<div id="details")', dom, re.S):
            name = re.search(r'<div class="name"[^>]*>(.*?)</div>', rest, re.S)[1]
            style = re.search(r'<div class="bar"[^>]*style="([^"]*)"', rest)[1]
            left, width = (float(re.search(rf"{key}: ([0-9.]+)%", style)[1]) for key in ("left", "width"))
            found[id] = (classes.split(), html.unescape(re.sub(r"<[^>]*>", "", name)), left, width)
        return found

    def test_tree_and_flame_graph(self):
        root = "d/" + TRACE
        self.lines(span(1, None, 0, 100, kind="rest_dispatch", name="GET /" + EVIL), span(2, 1, 20, 80, kind="rest_call", name="GET /y"),
                   span(4, 1, 25, 35), name=root + "/spans-api-h-7.jsonl")
        self.lines(span(3, 2, 25, 75, service="db", name="serve", flags=["failed"], fields={"error.type": EVIL}),
                   name=root + "/spans-db-h-8.jsonl")
        self.put(root + "/profile-api-7-0000000000000001.folded", f"main;{EVIL.replace(';', ':')} 40000\nmain;call;[parked] 60000\n")
        self.put(root + "/profile-db-7-0000000000000003.folded", "serve;sort 45000\nserve;[ready] 5000\n")
        dom = self.dom(TRACE, self.path("d"))
        self.assertRegex(dom, r"<title>trace " + TRACE)
        rows = self.rows(dom)
        self.assertEqual(list(rows), [f"{i:016x}" for i in (1, 2, 3, 4)])
        self.assertIn("api rest_dispatch GET /" + EVIL, rows[f"{1:016x}"][1])
        self.assertEqual(rows[f"{3:016x}"][2:], (25, 50))
        self.assertEqual([("critical" in classes) for classes, *_ in rows.values()], [True, True, True, False])
        self.assertIn("(failed)", rows[f"{3:016x}"][1])
        self.assertIn("chosen", rows[f"{1:016x}"][0])
        flame = dom[dom.index('<div id="flame"'):]
        boxes = {}
        for attributes in re.findall(r"<div ([^>]*style=[^>]*)>", flame):
            title, width = re.search(r'title="([^"]*)"', attributes), re.search(r"width: ([0-9.]+)px", attributes)
            if title:
                boxes[html.unescape(title[1]).split("\n")[0]] = float(width[1])
        whole = boxes["api: rest_dispatch GET /" + EVIL]
        self.assertGreater(whole, 500)
        shares = {name: round(width / whole, 3) for name, width in boxes.items()}
        self.assertEqual(shares["main"], 1)
        self.assertEqual(shares[EVIL.replace(";", ":")], .4)
        self.assertEqual(shares["call"], .6)
        self.assertEqual(shares["[db: task serve]"], .5)  # where the call waited
        self.assertEqual(shares["[parked]"], .1)          # what is left of it
        self.assertEqual((shares["sort"], shares["[ready]"]), (.45, .05))

    def test_many_spans(self):
        """Only what is seen is made."""
        dom = self.dom(TRACE, self.lines(span(1, None, 0, 1000), *[span(i, i - 1, i / 1000, 900) for i in range(2, 20001)]))
        rows = self.rows(dom)
        self.assertIn(f"{1:016x}", rows)
        self.assertLess(len(rows), 200)
        self.assertIn("20000 spans", dom)
        self.assertIn("No samples of this span", dom)


if __name__ == "__main__":
    main()
