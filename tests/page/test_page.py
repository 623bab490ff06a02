# SPDX-License-Identifier: MIT
"""The page as a page: what holds in all views, whatever the data and the window."""
import base64
import json
import os
import struct
import zlib

from browser import PageCase, main
from page_data import PageData, html_of
from rich_page import rich_page

EVIL = "<img src=x onerror=\"window.hit=1\">&amp;'\"`${window.hit=2}</script><script>window.hit=3</script><!--<script>\0\ud800\ufffd\u202e\u2067\u05d0"
VIEWS = "greenprofApp.views.map((view) => view.key)"
SETTLED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
SEEN = "(one) => one.checkVisibility() && one.getBoundingClientRect().width > 0"

# [[text, contrast], ...] of texts that are hard to read: less than 4.5 to 1, or 3 to 1 where they are large
FAINT = """(() => {
    const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (colour) => {
        context.clearRect(0, 0, 1, 1);
        context.fillStyle = colour;
        context.fillRect(0, 0, 1, 1);
        return [...context.getImageData(0, 0, 1, 1).data].map((part) => part / 255);
    };
    const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
    const light = (colour) => {
        const [r, g, b] = colour.map((part) => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
        return .2126 * r + .7152 * g + .0722 * b;
    };
    const contrast = (a, b) => (Math.max(light(a), light(b)) + .05) / (Math.min(light(a), light(b)) + .05);
    const papers = (element) => {
        const layers = [], images = [];
        for (let one = element; one; one = one.parentElement) {
            const style = getComputedStyle(one), colour = rgba(style.backgroundColor);
            images.push(...(style.backgroundImage.match(/rgba?\\([^)]*\\)/g) ?? []).map(rgba));
            layers.unshift(colour);
            if (colour[3] === 1 || one.matches("dialog, [popover]"))
                break;
        }
        const paper = layers.reduce((under, top) => over(top, under), [1, 1, 1, 1]);
        return [paper, ...images.map((image) => over(image, paper))];
    };
    const found = [];
    const check = (element, colour, text) => {
        let opacity = 1;
        for (let one = element; one; one = one.parentElement)
            opacity *= Number(getComputedStyle(one).opacity);
        const style = getComputedStyle(element), size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
        const [r, g, b, a] = rgba(colour);
        for (const paper of papers(element)) {
            const got = contrast(over([r, g, b, a * opacity], paper), paper);
            if (got < (large ? 3 : 4.5))
                found.push([text.trim().slice(0, 60), Number(got.toFixed(2))]);
        }
    };
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const text = walker.currentNode.nodeValue, element = walker.currentNode.parentElement;
        if (text.trim() !== "" && element.checkVisibility() && !element.closest(":disabled, script, style, noscript, canvas"))
            check(element, getComputedStyle(element).color, text);
    }
    for (const input of document.querySelectorAll("input:not(:disabled), textarea, select"))
        if (input.checkVisibility()) {
            check(input, getComputedStyle(input).color, input.value);
            if (input.placeholder)
                check(input, getComputedStyle(input, "::placeholder").color, input.placeholder);
        }
    return found;
})()"""

NEED_NAMES = {"button", "checkbox", "combobox", "image", "img", "link", "listbox", "menu", "menuitem", "option", "radio", "searchbox", "slider", "spinbutton",
              "switch", "tab", "tabpanel", "textbox", "toggle button", "dialog", "Canvas"}


class Every(PageCase):
    """Tests that go through all views."""
    view = None

    def in_views(self):
        """Each view's key, after it is drawn."""
        for key in self.browser.eval(VIEWS):
            self.browser.eval(f"greenprofApp.set({{ view: {json.dumps(key)} }})")
            self.browser.eval(SETTLED)
            self.view = key
            yield key

    def _formatMessage(self, msg, standardMsg):
        return super()._formatMessage(f"view {self.view}{': ' + msg if msg else ''}" if self.view else msg, standardMsg)

    def open_file(self, html, name="page.html", **options):
        path = os.path.join(self.work, f"{self.id()}.{name}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(html)
        return self.browser.open(path, 1200, 800, **options)


class Texts(Every):
    def test_names_are_text(self):
        browser = self.show(rich_page(lambda name: EVIL + name))
        self.assertTrue(browser.eval(f"greenprofApp.store.names.includes({json.dumps(EVIL + 'render')})"))
        self.assertTrue(browser.eval(f"document.title.includes({json.dumps(EVIL[:20])})"))
        seen = "[...document.querySelectorAll('body *')].filter((one) => !/^(SCRIPT|STYLE|NOSCRIPT)$/.test(one.tagName)).map((one) => one.textContent).join()"
        shown = set()
        for key in self.in_views():
            self.assertEqual(browser.eval("document.querySelectorAll('img, iframe, object, embed, body script[src]').length"), 0)
            self.assertEqual(browser.eval("document.querySelectorAll('script').length"), 1)
            self.assertIsNone(browser.eval("window.hit ?? null"))
            shown |= {name for name in ("shop", "GET /slow", "samples that found the ring full", "parse")
                      if browser.eval(f"({seen}).includes({json.dumps(EVIL + name)})")}
            self.assertFalse(browser.eval(f"({seen}).includes('&lt;')"), "a name is escaped twice")
        self.assertEqual(shown, {"shop", "GET /slow", "samples that found the ring full", "parse"})

    def test_long_names(self):
        """A name of a template, or of a generated query, is as wide as the page at most."""
        browser = self.show(rich_page(lambda name: name + "<std::vector>" * 1500), width=800)
        for key in self.in_views():
            self.assertLessEqual(browser.eval("document.documentElement.scrollWidth"), 800)
            self.assertLess(browser.eval("document.querySelector('.sentence')?.getBoundingClientRect().height ?? 0"), 400)

    def test_nothing_of_the_network(self):
        html = rich_page().html()
        self.assertNotRegex(html, r"(?i)(src|href|action)\s*=\s*[\"'](?!data:)|@import|(?<!Object)url\((?!data:|#)")
        self.assertIn("default-src 'none'", html)


class Damage(Every):
    def damaged(self, data):
        """Open a page with other data: the message."""
        browser = self.open_file(html_of(data))
        text = browser.eval("document.querySelector('.failure[role=alert]')?.innerText ?? ''")
        self.assertLessEqual(len(browser.errors), 1, "the failure itself may be told to the console, nothing else")
        browser.errors.clear()
        self.assertIsNone(browser.eval("document.documentElement.dataset.ready ?? null"))
        return text

    def test_damaged_data(self):
        plain = rich_page().encode()
        packed = zlib.compress(plain, 9)
        header, = struct.unpack_from("<I", plain)
        flipped = bytearray(packed)
        flipped[len(packed) // 2] ^= 0x55
        swapped = plain[4:4 + header].replace(b'"row.node", "d", ', b'"row.node", "d", 9')
        assert swapped != plain[4:4 + header]
        for what, data in {
                "nothing": b"", "noise": b"noise, not zlib", "cut": packed[:-20], "flipped": bytes(flipped), "more": packed + b"x",
                "empty": zlib.compress(b""), "no header": zlib.compress(b"\xff\xff\xff\x7f{}"), "half a header": zlib.compress(plain[:4 + header // 2]),
                "not JSON": zlib.compress(struct.pack("<I", 3) + b"{,}"), "null": zlib.compress(struct.pack("<I", 4) + b"null"),
                "columns cut": zlib.compress(plain[:-5]), "columns and more": zlib.compress(plain + b"\0"),
                "count": zlib.compress(struct.pack("<I", len(swapped)) + swapped + plain[4 + header:])}.items():
            with self.subTest(what):
                self.assertRegex(self.damaged(base64.b64encode(data).decode()), "^This page's data cannot be read: .{8,}")
        with self.subTest("not base64"):
            self.assertRegex(self.damaged("%%%"), "^This page's data cannot be read: .{8,}")

    def test_unknown_version(self):
        data = rich_page()
        data.head["version"] = 99
        self.assertRegex(self.damaged(base64.b64encode(zlib.compress(data.encode())).decode()), "version 99")

    def test_file_is_cut(self):
        html = rich_page().html()
        for end in (html.index('id="data"') + 500, len(html) - 3000):
            browser = self.open_file(html[:end], ready=False)
            browser.wait("document.readyState === 'complete'")
            self.assertRegex(browser.eval("document.body.innerText"), "not complete")
            browser.errors.clear()


class States(Every):
    def test_empty_profile(self):
        browser = self.show(PageData())
        for key in self.in_views():
            why = browser.eval("greenprofApp.view.empty()")
            if key == "about":
                continue
            self.assertRegex(why, r"\w+ \w+ \w+.*\.$", "an empty view says why, and what to do")
            self.assertIn(why.split("\n")[0], browser.eval("document.body.innerText"))

    def test_sentences(self):
        for diff in (False, True):
            browser = self.show(rich_page(diff=diff))
            for key in self.in_views():
                sentence = browser.eval("greenprofApp.view.sentence()")
                self.assertRegex(sentence, r"\w+ \w+ \w+")
                self.assertNotRegex(sentence, r"undefined|NaN|\[object|Infinity|null")
                self.assertIsNone(browser.eval("greenprofApp.view.empty()"))
                self.assertEqual(browser.eval("document.querySelector('.sentence').textContent"), sentence)
                self.assertNotRegex(browser.eval("document.body.innerText"), r"\bundefined\b|\bNaN\b|\[object|\bInfinity\b")

    def test_view_by_letter_and_tab(self):
        browser = self.show(rich_page())
        views = browser.eval("greenprofApp.views.map((view) => [view.key, view.letter, view.title])")
        self.assertEqual(len({letter for _, letter, _ in views}), len(views))
        for key, letter, title in reversed(views):
            browser.key(letter)
            self.assertEqual(browser.eval("greenprofApp.view.key"), key)
            self.assertEqual(browser.eval("greenprofApp.views.filter((view) => view.element.checkVisibility()).map((view) => view.key)"), [key])
        for key, _, title in views:
            browser.click_on(f"([...document.querySelectorAll('nav button')].find((one) => one.textContent.startsWith({json.dumps(title)})))")
            self.assertEqual(browser.eval("greenprofApp.view.key"), key)
        self.assertIn(f"view={views[-1][0]}", browser.eval("location.hash"))

    def test_view_begins_at_its_top(self):
        browser = self.show(rich_page(), height=300)
        for key in self.in_views():
            self.assertEqual(browser.eval("scrollY"), 0)
            browser.eval("scrollTo(0, 1e6)")
            browser.eval("greenprofApp.set({ search: greenprofApp.selection.search ? '' : 'json' })")
            browser.eval(SETTLED)
            self.assertGreater(browser.eval("scrollY"), 0, "another search does not take the reader away")

    def test_link_reopens(self):
        chosen = {"weight": "parked", "name": "handle", "trace": f"{3:032x}", "endpoint": "GET /slow", "state": "2,3", "from": "20000000", "to": "60000000",
                  "search": "que.y|<b>", "hide": "serve", "root": "coroutine", "collapse": "1", "zoom": '["main"]', "sort": "-Total"}
        browser = self.show(rich_page())
        plain = browser.eval("greenprofApp.weights().sum")
        for key in self.in_views():
            browser.eval(f"greenprofApp.set({json.dumps(chosen)})")
            hash, selection, total = browser.eval("[location.hash, greenprofApp.selection, greenprofApp.weights().sum]")
            self.assertLess(total, plain)
            self.assertGreater(total, 0)
            browser.open(browser.url.removeprefix("file://"), hash=hash)
            self.assertEqual(browser.eval("[location.hash, greenprofApp.selection, greenprofApp.weights().sum]"), [hash, selection, total])
            self.assertEqual(browser.eval("greenprofApp.view.key"), key)

    def test_address_changes(self):
        """Another link in the same window, and links that make no sense."""
        browser = self.show(rich_page())
        for key in browser.eval(VIEWS):
            for rest in ("", "&zoom=%7B", "&zoom=5", "&zoom=%5B%22nothing%22%5D", "&coro=x", "&coro=999999", "&request=77", "&search=(", "&focus=%5B",
                         "&weight=none", "&state=9", "&from=abc&to=-5", "&from=9e99", "&trace=zz", "&root=nothing", "&sort=-nothing", "&row=99999",
                         "&side=nothing", "&sandwich=nothing", "&__proto__=1&constructor=2", "&toString=x"):
                with self.subTest(view=key, rest=rest):
                    hash = json.dumps(f"#view={key}{rest}")
                    browser.eval(f"new Promise((done) => {{ addEventListener('hashchange', done, {{ once: true }}); location.hash = {hash}; }})")
                    browser.eval(SETTLED)
                    self.assertEqual(browser.eval("greenprofApp.view.key"), key)
                    errors, browser.errors[:] = browser.errors[:], []
                    self.assertEqual(errors, [])

    def test_undo(self):
        browser = self.show(rich_page())
        before = browser.eval("greenprofApp.selection")
        changes = [{"weight": "cpu"}, {"search": "json"}, {"trace": f"{2:032x}"}, {"view": browser.eval(VIEWS)[1]}]
        states = [before]
        for change in changes:
            browser.eval(f"greenprofApp.set({json.dumps(change)})")
            states.append(browser.eval("greenprofApp.selection"))
            self.assertEqual(states[-1], {**states[-2], **change})
        for state in reversed(states[:-1]):
            browser.key("u")
            self.assertEqual(browser.eval("greenprofApp.selection"), state)
        browser.key("u")
        self.assertEqual(browser.eval("greenprofApp.selection"), before)

    def test_keys_are_told(self):
        browser = self.show(rich_page())
        for key in self.in_views():
            browser.key("?")
            text = browser.wait("document.querySelector('dialog[open]')?.innerText ?? ''")
            for what, _ in browser.eval("Object.values({ ...greenprofApp.chrome.keys, ...greenprofApp.view.keys })"):
                self.assertIn(what, text)
            browser.key("Escape")
            browser.wait("document.querySelector('dialog[open]') === null")


class Everyone(Every):
    """Without a mouse, without colours, on any screen."""

    def nameless(self):
        nodes = self.browser.call("Accessibility.getFullAXTree")["nodes"]
        found = []
        for node in nodes:
            role, name = node.get("role", {}).get("value"), node.get("name", {}).get("value", "")
            if not node["ignored"] and role in NEED_NAMES and not name.strip():
                found.append((role, self.browser.call("DOM.describeNode", backendNodeId=node["backendDOMNodeId"])["node"].get("attributes")))
        self.assertGreater(len(nodes), 20)
        return found

    def test_controls_have_names(self):
        browser = self.show(rich_page())
        for key in self.in_views():
            self.assertEqual(self.nameless(), [])
            self.assertEqual(browser.eval(f"""[...document.querySelectorAll("canvas")].filter({SEEN}).filter((one) => !one.ariaHidden &&
                !(one.ariaLabel && one.getAttribute("role"))).map((one) => one.outerHTML)"""), [])
            browser.key("?")
            self.assertEqual(self.nameless(), [], "in the help")
            browser.key("Escape")
        self.assertEqual(browser.eval("[document.documentElement.lang, document.querySelectorAll('main').length, document.querySelectorAll('h1').length > 0]"),
                         ["en", 1, True])

    def test_focus_is_seen(self):
        browser = self.show(rich_page())
        for key in self.in_views():
            browser.eval("document.activeElement?.blur(); scrollTo(0, 0)")
            reached = 0
            for _ in range(60):
                browser.key("Tab")
                seen = browser.eval("""(() => {
                    const one = document.activeElement, style = getComputedStyle(one);
                    return one === document.body ? null : [one.outerHTML.slice(0, 100), (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) ||
                        style.boxShadow !== "none"];
                })()""")
                if seen is None:
                    break
                reached += 1
                self.assertTrue(seen[1], seen[0])
            self.assertGreater(reached, 5)

    def test_contrast(self):
        for diff in (False, True):
            for dark in (False, True):
                browser = self.show(rich_page(diff=diff))
                browser.dark(dark)
                browser.wait(f"document.documentElement.classList.contains('dark') === {json.dumps(dark)}")
                for key in self.in_views():
                    self.assertEqual(browser.eval(FAINT), [], f"dark: {dark}")
                browser.key("?")
                self.assertEqual(browser.eval(FAINT), [], f"help, dark: {dark}")

    def test_contrast_of_boxes(self):
        """Names stand on the colours of states, whatever their shade."""
        browser = self.show(rich_page())
        check = FAINT.replace("const found = [];", """const found = [];
            for (const dark of [false, true]) {
                const looks = new Looks(dark), ink = rgba(looks.ink), fills = [];
                for (const [what, under] of [["on paper", looks.paper], ["below letters", dark ? "#000" : "#fff"]])
                    if (contrast(rgba(looks.match), rgba(under)) < 4.5)
                        found.push([`dark ${dark}: match ${what}`, contrast(rgba(looks.match), rgba(under))]);
                for (let state = 0; state < 6; state++)
                    for (let i = 0; i < 300; i++)
                        fills.push([`state ${state} of name ${i}`, stateColour(state, `name ${i}`, dark)]);
                for (const [what, fill] of fills)
                    if (contrast(ink, rgba(fill)) < 4.5)
                        found.push([`dark ${dark}: ${what}: ${fill}`, contrast(ink, rgba(fill))]);
            }
            return found.slice(0, 5);""")
        self.assertEqual(browser.eval(check), [])

    def test_any_width(self):
        for diff in (False, True):
            browser = self.show(rich_page(diff=diff))
            for width, height in ((320, 640), (768, 1024), (1920, 1080), (3840, 2160)):
                browser.resize(width, height)
                for key in self.in_views():
                    with self.subTest(width=width, diff=diff):
                        self.assertLessEqual(browser.eval("document.documentElement.scrollWidth"), width)
                        self.assertTrue(browser.eval("greenprofApp.view.element.getBoundingClientRect().width") > .8 * min(width, 900))

    def test_reduced_motion(self):
        browser = self.show(rich_page())
        browser.media(prefers_reduced_motion="reduce")
        for key in self.in_views():
            self.assertEqual(browser.eval("""[...document.querySelectorAll("*")].filter((one) => {
                const style = getComputedStyle(one);
                return parseFloat(style.transitionDuration) > 0 || parseFloat(style.animationDuration) > 0 || style.scrollBehavior === "smooth";
            }).map((one) => one.outerHTML.slice(0, 100))"""), [])
            self.assertEqual(browser.eval("document.getAnimations().length"), 0)

    def test_print(self):
        browser = self.show(rich_page())
        for dark in (False, True):
            browser.dark(dark)
            browser.media("print")
            for key in self.in_views():
                self.assertEqual(browser.eval("document.querySelector('.sentence').checkVisibility()"), True)
                self.assertEqual(browser.eval("greenprofApp.view.element.checkVisibility()"), True)
                self.assertEqual(browser.eval(f"[...document.querySelectorAll('nav button')].filter({SEEN}).length"), 0)
                self.assertEqual(browser.eval(FAINT), [])
            data = base64.b64decode(browser.call("Page.printToPDF")["data"])
            self.assertEqual(data[:5], b"%PDF-")
            browser.reset()


if __name__ == "__main__":
    main()
