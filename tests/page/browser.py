# SPDX-License-Identifier: MIT
"""A headless Chromium without a network that tests look into and type at.

Model: DevTools is the process and its protocol: JSON messages over two pipes. Browser is one tab of it: it opens a page, waits until
the page says that it is ready, asks it with eval(), and sends it keys and clicks. What goes wrong in the page meanwhile is kept:
`errors` has its exceptions and what is written to the console as an error, `requests` what it asked the network for.
PageCase is a test case with one Browser a class: a test in which the page went wrong, or asked for anything, fails.
"""
import atexit
import base64
import fcntl
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
import unittest
import urllib.parse

LIMIT = 120  # seconds: not a measure of anything, but an end to waiting for what does not come
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars", "--proxy-server=127.0.0.1:9", "--remote-debugging-pipe"]
MODIFIERS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}
READY = "document.documentElement.dataset.ready === '1' || document.querySelector('.failure') !== null"
# Keys that do something by themselves: code of the key, text that it types
KEYS = {"Enter": (13, "\r"), "Tab": (9, ""), "Escape": (27, ""), "Backspace": (8, ""), "Delete": (46, ""), " ": (32, " "), "Home": (36, ""), "End": (35, ""),
        "PageUp": (33, ""), "PageDown": (34, ""), "ArrowLeft": (37, ""), "ArrowUp": (38, ""), "ArrowRight": (39, ""), "ArrowDown": (40, "")}


class PageError(AssertionError):
    """The page, or the browser, did not do as it was told."""


class DevTools:
    """A Chromium process, its pipes and its messages."""

    def __init__(self, on_event, options):
        self.on_event = on_event
        self.profile = tempfile.mkdtemp(prefix="page-browser-")
        theirs_in, self.to = self.pipe()
        self.come, theirs_out = self.pipe()
        actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                   (os.POSIX_SPAWN_OPEN, 2, os.path.join(self.profile, "stderr"), os.O_WRONLY | os.O_CREAT, 0o600),
                   (os.POSIX_SPAWN_DUP2, theirs_in, 3), (os.POSIX_SPAWN_DUP2, theirs_out, 4)]
        environment = {**os.environ, "HOME": self.profile, "XDG_CONFIG_HOME": self.profile, "XDG_CACHE_HOME": self.profile}
        self.pid = os.posix_spawnp("chromium", ["chromium", *ARGUMENTS, *options, f"--user-data-dir={self.profile}", "about:blank"], environment,
                                   file_actions=actions, setpgroup=0)
        os.close(theirs_in)
        os.close(theirs_out)
        atexit.register(self.close)
        self.buffer, self.number, self.answers = b"", 0, {}

    @staticmethod
    def pipe():
        """A pipe whose ends are beyond the numbers that the browser wants its own at."""
        ends = os.pipe()
        high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
        for end in ends:
            os.close(end)
        return high

    def close(self):
        if self.pid is None:
            return
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)
        self.pid = None
        os.close(self.to)
        os.close(self.come)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, session=None, **parameters):
        """Send a command and wait for its answer: its result, or PageError."""
        self.number += 1
        number, message = self.number, {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
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
        if not select.select([self.come], [], [], seconds)[0]:
            return
        data = os.read(self.come, 1 << 20)
        if not data:
            raise PageError("chromium has ended:\n" + self.stderr())
        *messages, self.buffer = (self.buffer + data).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self.answers[message["id"]] = message
            else:
                self.on_event(message["method"], message["params"])

    def stderr(self):
        with open(os.path.join(self.profile, "stderr"), errors="replace") as file:
            return file.read()[-2000:]


class Browser:
    """One tab of a Chromium of its own. options: more of its command line's."""

    def __init__(self, width=1200, height=800, options=()):
        self.errors, self.requests, self.features, self.url = [], [], {}, "about:blank"
        self.tools = DevTools(self.event, options)
        target = self.tools.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.tools.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Performance.enable", timeDomain="threadTicks")
        self.resize(width, height)

    def close(self):
        self.tools.close()

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

    def wheel(self, x, y, dy, dx=0, modifiers=()):
        """Turn the wheel; dy > 0 is downwards."""
        self.mouse("mouseWheel", x, y, modifiers, deltaX=dx, deltaY=dy)

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
