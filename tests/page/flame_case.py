# SPDX-License-Identifier: MIT
"""Tests that look at the boxes of the flame graph, click on them and walk between them."""
from browser import PageCase

VIEW = "greenprofApp.views.find((view) => view.key === 'flame')"


class FlameCase(PageCase):
    def boxes(self):
        """What is drawn: boxes by row from the root, then from left to right."""
        return self.browser.eval(VIEW + ".boxes")

    def drawn(self):
        """Names of what is drawn, with their milliseconds."""
        return {box["name"]: round(box["total"] / 1e6, 6) for box in self.boxes()}

    def names(self):
        return [box["name"] for box in self.boxes()]

    def box(self, name, number=0):
        return [box for box in self.boxes() if box["name"] == name][number]

    def focus(self):
        return next((box["name"] for box in self.boxes() if box["focus"]), None)

    def click_box(self, name, number=0, **how):
        box = self.box(name, number)
        canvas = f"({VIEW}.{box['pane'] or 'main'}.canvas)"
        self.browser.click_on(canvas, box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, **how)
        if how.get("button") == "right":
            self.browser.wait("document.querySelector('.menu') !== null")

    def hover_box(self, name):
        """Point at a box; the text of the details."""
        box, (x, y, _, _) = self.box(name), self.browser.place(f"({VIEW}.main.canvas)")
        self.browser.move(x + box["x"] + 5, y + box["y"] + 5)
        self.browser.wait(f"document.querySelector('.details b')?.textContent === {name!r}")
        return self.text(".details")

    def keys(self, *names):
        for name in names:
            self.browser.key(name)

    def selection(self, key):
        return self.browser.eval(f"greenprofApp.selection.{key}")

    def text(self, selector):
        return self.browser.eval(f"document.querySelector({selector!r})?.textContent ?? null")

    def texts(self, selector):
        return self.browser.eval(f"[...document.querySelectorAll({selector!r})].filter((one) => one.offsetParent).map((one) => one.textContent)")

    def rows(self):
        """Rows of the table of functions: name and place -> the other cells."""
        self.browser.wait(VIEW + ".functions.waiting === undefined")
        cells = self.browser.eval("[...document.querySelectorAll('.flame-side tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
        return {row[0]: row[1:] for row in cells}

    def colour(self, name, dx=2, dy=2):
        """Red, green, blue of a box near its corner."""
        box = self.box(name)
        pane = f"{VIEW}.{box['pane'] or 'main'}"
        return self.browser.eval(f"[...{pane}.context.getImageData(Math.round({box['x'] + dx} * devicePixelRatio), "
                                 f"Math.round({box['y'] + dy} * devicePixelRatio), 1, 1).data].slice(0, 3)")
