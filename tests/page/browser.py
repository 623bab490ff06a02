# SPDX-License-Identifier: MIT
"""A headless Chromium without a network that tests look into and type at.

Model: Chromium is the process, one for all tests of a run (kept.py). DevTools is a connection to it and its protocol: JSON messages
over a WebSocket; with its end the tab goes, and what its pages have stored. Browser is one tab: it opens a page, waits until
the page says that it is ready, asks it with eval(), and sends it keys and clicks. What goes wrong in the page meanwhile is kept:
`errors` has its exceptions and what is written to the console as an error, `requests` what it asked the network for.
PageCase is a test case with one Browser a class: a test in which the page went wrong, or asked for anything, fails.
"""
import base64
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from helpers import until  # noqa: E402
from kept import die_with_parent, kept  # noqa: E402

LIMIT = 120  # seconds: not a measure of anything, but an end to waiting for what does not come
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--proxy-server=127.0.0.1:9", "--remote-debugging-port=0"]
MODIFIERS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}
READY = "document.documentElement.dataset.ready === '1' || document.querySelector('.failure') !== null"
# Keys with an effect by themselves: code of the key, text that it types
KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), "Escape": (27, ""), "Backspace": (8, ""), "Delete": (46, ""), " ": (32, " "), "Home": (36, ""), "End": (35, ""),
        "PageUp": (33, ""), "PageDown": (34, ""), "ArrowLeft": (37, ""), "ArrowUp": (38, ""), "ArrowRight": (39, ""), "ArrowDown": (40, "")}


class PageError(AssertionError):
    """The page, or the browser, did not do as it was told."""


class Chromium:
    """A browser's process. options: more of its command line's."""

    def __init__(self, options=()):
        self.profile = tempfile.mkdtemp(prefix="page-browser-")
        environment = {**os.environ, "HOME": self.profile, "XDG_CONFIG_HOME": self.profile, "XDG_CACHE_HOME": self.profile}
        with open(os.path.join(self.profile, "stderr"), "wb") as errors:
            self.process = subprocess.Popen(["chromium", *ARGUMENTS, *options, f"--user-data-dir={self.profile}", "about:blank"], env=environment,
                                            stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, start_new_session=True,
                                            preexec_fn=die_with_parent)
        until(lambda: self.told()["place"], "chromium listens", self.process)

    def told(self):
        """Where it can be reached, and by which path, as it writes itself; else the path is empty."""
        try:
            with open(os.path.join(self.profile, "DevToolsActivePort"), encoding="ascii") as file:
                port, _, place = file.read().partition("\n")
        except FileNotFoundError:
            port, place = 0, ""
        return {"port": port, "place": place, "profile": self.profile}

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


class DevTools:
    """A connection to a browser and its messages, each a text frame of a WebSocket (RFC 6455)."""

    def __init__(self, on_event, port, place, profile, **_):
        self.on_event, self.profile = on_event, profile
        self.link = socket.create_connection(("127.0.0.1", int(port)))
        self.link.sendall(f"GET {place} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                          "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.buffer, self.number, self.answers = b"", 0, {}
        while b"\r\n\r\n" not in self.buffer:
            self.read()
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 101 "):
            raise PageError(head.decode())

    def close(self):
        self.link.close()

    def read(self):
        data = self.link.recv(1 << 20)
        if not data:
            raise PageError("chromium has ended:\n" + self.stderr())
        self.buffer += data

    def send(self, data):
        """What a client sends is masked, here by zeros."""
        size = len(data)
        length = bytes([128 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big") if size < 1 << 16 else b"\xff" + size.to_bytes(8, "big")
        self.link.sendall(b"\x81" + length + bytes(4) + data)

    def frames(self):
        """Contents of the frames that have come whole."""
        while len(self.buffer) > 1:
            size, at = self.buffer[1], 2
            if size > 125:
                at = 4 if size == 126 else 10
                size = int.from_bytes(self.buffer[2:at], "big")
            if len(self.buffer) < at + size:
                return
            kind, data, self.buffer = self.buffer[0], self.buffer[at:at + size], self.buffer[at + size:]
            if kind != 0x81:
                raise PageError(f"a frame of kind {kind:#x}")
            yield data

    def call(self, method, session=None, **parameters):
        """Send a command and wait for its answer: its result, or PageError."""
        self.number += 1
        number, message = self.number, {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        self.send(json.dumps(message).encode())
        end = time.monotonic() + LIMIT
        while number not in self.answers:
            if time.monotonic() > end:
                raise PageError(f"no answer to {method} in {LIMIT} s")
            self.receive(1)
        answer = self.answers.pop(number)
        if "error" in answer:
            raise PageError(f"{method}: {answer['error'].get('message')} {answer['error'].get('data', '')}")
        return answer["result"]

    def receive(self, seconds):
        """Take in what has come, waiting for it `seconds` at most."""
        if not select.select([self.link], [], [], seconds)[0]:
            return
        self.read()
        for message in map(json.loads, self.frames()):
            if "id" in message:
                self.answers[message["id"]] = message
            else:
                self.on_event(message["method"], message["params"])

    def stderr(self):
        with open(os.path.join(self.profile, "stderr"), errors="replace") as file:
            return file.read()[-2000:]


class Browser:
    """One tab, in a window of its own, of the Chromium that the tests of a run share; with options of one that has them, for itself."""

    def __init__(self, width=1200, height=800, options=()):
        self.errors, self.requests, self.features, self.url = [], [], {}, "about:blank"
        self.own = Chromium(options) if options else None
        self.tools = DevTools(self.event, **(self.own.told() if options else kept("browser", "Chromium")))
        context = self.tools.call("Target.createBrowserContext", disposeOnDetach=True)["browserContextId"]
        target = self.tools.call("Target.createTarget", url="about:blank", newWindow=True, browserContextId=context)["targetId"]
        self.session = self.tools.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Performance.enable", timeDomain="threadTicks")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.resize(width, height)

    def close(self):
        self.tools.close()
        if self.own:
            self.own.close()

    def call(self, method, **parameters):
        """A command of the DevTools protocol."""
        return self.tools.call(method, self.session, **parameters)

    def event(self, method, event):
        if method == "Runtime.exceptionThrown":
            self.errors.append(exception_text(event["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "assert"):
            self.errors.append("console: " + " ".join(str(one.get("value", one.get("description"))) for one in event["args"]))
        elif method == "Log.entryAdded" and event["entry"]["level"] == "error":
            self.errors.append(f"log: {event['entry']['text']} {event['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            url = event["request"]["url"]
            if url.split("#")[0] != self.url and not url.startswith(("data:", "blob:", "about:")):
                self.requests.append(url)

    def open(self, path, width=None, height=None, hash="", ready=True):
        """Open a page file. ready: wait until it has drawn, or shows why it cannot."""
        if width:
            self.resize(width, height or 800)
        self.call("Page.navigate", url="about:blank")
        self.errors, self.requests = [], []
        self.url = "file://" + urllib.parse.quote(os.path.abspath(path))
        answer = self.call("Page.navigate", url=self.url + (hash and "#" + hash.lstrip("#")))
        if "errorText" in answer:
            raise PageError(f"{self.url}: {answer['errorText']}")
        if ready and not self.wait(READY, or_error=True) and not self.eval(READY):
            raise PageError(f"the page does not start: {self.errors}")
        return self

    def resize(self, width, height, scale=1):
        """Size of the window in CSS pixels, and how many of the screen's pixels make one of them."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)

    def media(self, kind=None, **features):
        """Emulate a medium ("print", "screen") and features: prefers_color_scheme="dark", prefers_reduced_motion="reduce"."""
        self.features.update(features)
        self.call("Emulation.setEmulatedMedia", media=kind or "",
                  features=[{"name": name.replace("_", "-"), "value": value} for name, value in self.features.items()])

    def cpu_ms(self, metric="TaskDuration"):
        """CPU time so far: "TaskDuration" of the tab's main thread, "ProcessTime" of its process."""
        return 1e3 * next(one["value"] for one in self.call("Performance.getMetrics")["metrics"] if one["name"] == metric)

    def reset(self):
        """The media of a new browser."""
        self.features = {}
        self.media()

    def dark(self, on=True):
        self.media(prefers_color_scheme="dark" if on else "light")

    def eval(self, expression):
        """Value of an expression, as JSON has it; promises are awaited. What it throws is raised as PageError."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True, userGesture=True)
        if "exceptionDetails" in answer:
            raise PageError(f"{exception_text(answer['exceptionDetails'])}\nin {expression}")
        return answer["result"].get("value")

    def wait(self, condition, limit=LIMIT, or_error=False):
        """Wait until an expression is true, or, where that is asked for, the page has an error; the expression's value."""
        end, said = time.monotonic() + limit, ""
        while True:
            try:
                value = self.eval(condition)
            except PageError as error:  # e.g. the page is not that far
                value, said = None, f": {error}"
            if value or (or_error and self.errors):
                return value
            if time.monotonic() > end:
                raise PageError(f"not true in {limit} s: {condition}{said}; errors: {self.errors}")
            self.tools.receive(.02)

    def key(self, name, modifiers=()):
        """Press and release a key by its name ("ArrowDown", "Enter", "a", "?"); modifiers: names, e.g. ["Shift"]."""
        code, text = KEYS.get(name, (ord(name.upper()) if len(name) == 1 and name.isalnum() else 0, name if len(name) == 1 else ""))
        bits = modifier_bits(modifiers)
        options = {"key": name, "windowsVirtualKeyCode": code, "modifiers": bits}
        if text and not bits & ~MODIFIERS["Shift"]:
            self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **options)
        else:
            self.call("Input.dispatchKeyEvent", type="rawKeyDown", **options)
        self.call("Input.dispatchKeyEvent", type="keyUp", **options)

    def type(self, text):
        """Type a text into what has the focus."""
        for letter in text:
            self.key(letter)

    def mouse(self, kind, x, y, modifiers=(), **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, modifiers=modifier_bits(modifiers), **more)

    def move(self, x, y, modifiers=()):
        self.mouse("mouseMoved", x, y, modifiers)

    def click(self, x, y, button="left", count=1, modifiers=()):
        """Click at a place in CSS pixels of the window; count 2 is a double click."""
        self.move(x, y, modifiers)
        for number in range(1, count + 1):
            self.mouse("mousePressed", x, y, modifiers, button=button, clickCount=number)
            self.mouse("mouseReleased", x, y, modifiers, button=button, clickCount=number)

    def click_on(self, expression, dx=None, dy=None, **how):
        """Click on an element: a CSS selector, or an expression in parentheses; in its middle, or dx, dy from its upper left corner."""
        x, y, width, height = self.place(expression)
        self.click(x + (width / 2 if dx is None else dx), y + (height / 2 if dy is None else dy), **how)

    def place(self, expression):
        """[x, y, width, height] of an element in the window; it is scrolled to where it can be seen."""
        element = expression if expression.startswith("(") else f"document.querySelector({json.dumps(expression)})"
        return self.eval(f"""(() => {{
            const element = {element};
            element.scrollIntoView({{ block: "nearest", inline: "nearest", behavior: "instant" }});
            const {{ x, y, width, height }} = element.getBoundingClientRect();
            return [x, y, width, height];
        }})()""")

    def drag(self, x0, y0, x1, y1, steps=8, modifiers=()):
        self.move(x0, y0, modifiers)
        self.mouse("mousePressed", x0, y0, modifiers, button="left", clickCount=1)
        for step in range(1, steps + 1):
            self.mouse("mouseMoved", x0 + (x1 - x0) * step / steps, y0 + (y1 - y0) * step / steps, modifiers, button="left", buttons=1)
        self.mouse("mouseReleased", x1, y1, modifiers, button="left", clickCount=1)

    def drawn(self):
        """Wait until the compositor has the page as it is now: wheels and fingers go by where it knows of a listener."""
        self.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def wheel(self, x, y, dy, dx=0, modifiers=()):
        """Turn the wheel; dy > 0 is downwards."""
        self.drawn()
        self.mouse("mouseWheel", x, y, modifiers, deltaX=dx, deltaY=dy)

    def touch(self, kind, *places):
        """Put fingers down ("touchStart"), move or lift them; places: x, y of each that is down."""
        if kind == "touchStart":
            self.drawn()
        self.call("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y, "id": at} for at, (x, y) in enumerate(places)])

    def screenshot(self, path, full=False):
        """Write a PNG of the window, or of the full page."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=full)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
        return path


def exception_text(details):
    return details.get("exception", {}).get("description") or f"{details['text']} {details.get('exception', {}).get('value', '')}"


def modifier_bits(names):
    return sum(MODIFIERS[name] for name in names)


class PageCase(unittest.TestCase):
    """Tests of pages. A test that expects errors of the page takes them out of self.browser.errors."""
    longMessage = True

    @classmethod
    def setUpClass(cls):
        folder = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else os.path.join(tempfile.gettempdir(), "page-tests")
        cls.work = os.path.join(folder, os.path.splitext(os.path.basename(sys.argv[0]))[0])
        os.makedirs(cls.work, exist_ok=True)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def run(self, result=None):
        before = result and len(result.failures) + len(result.errors)
        self.browser.reset()
        super().run(result)
        if result and len(result.failures) + len(result.errors) > before:
            self.keep_screenshot()

    def keep_screenshot(self):
        path = os.path.join(self.work, f"{self.id()}.png")
        try:
            print("screenshot:", self.browser.screenshot(path), file=sys.stderr)
        except PageError as error:
            print("no screenshot:", error, file=sys.stderr)

    def tearDown(self):
        self.assertEqual(self.browser.errors, [], "errors of the page")
        self.assertEqual(self.browser.requests, [], "the page asked the network")

    def show(self, data, hash="", width=1200, height=800):
        """Open the page of a PageData; the Browser."""
        path = data.write(os.path.join(self.work, f"{self.id()}.html"))
        return self.browser.open(path, width, height, hash)


def main():
    """test_x.py [FOLDER [unittest's arguments]]"""
    if shutil.which("chromium") is None:
        print("SKIP: there is no chromium")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
