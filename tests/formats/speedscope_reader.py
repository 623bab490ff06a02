# SPDX-License-Identifier: MIT
"""Speedscope itself as a reader: its page in a headless Chromium loads files and saves them again.

The page is served from this machine only. A script that is put into it presses Ctrl+S until the profile is there, sends
what would have been saved back, and goes on to the next file.
"""
import http.server, json, os, shutil, subprocess, tempfile, threading

import npm_package

VERSION = "1.25.0"
HOOK = b"""<script>
const send = (path, body) => fetch(path, {method: 'POST', body}).then(answer => answer.text()).then(next => {
    if (next) location.href = next;
});
window.addEventListener('error', event => send('/error', String(event.message)));
window.addEventListener('unhandledrejection', event => send('/error', String(event.reason)));
console.log = text => /^Failed/.test(text) && send('/error', text);
window.alert = text => send('/error', String(text));
URL.createObjectURL = blob => { clearInterval(timer); blob.text().then(text => send('/saved', text)); return '#'; };
const timer = setInterval(() => window.dispatchEvent(
    new KeyboardEvent('keydown', {key: 's', code: 'KeyS', ctrlKey: true, bubbles: true})), 50);
</script>
"""
BROWSER_OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader", "--disable-quic",
                   "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]


def find_page(directory):
    return os.path.join(npm_package.fetch(directory, "speedscope", VERSION), "dist", "release")


def make_handler(page, files, results, done):
    def address(number):
        name = os.path.basename(files[number]) if number < len(files) else ""
        return name and f"/?n={number}#profileURL=/file/{number}/{name}"

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=page)

        def log_message(self, *arguments):
            pass

        def answer(self, body, kind):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            path = self.path.split("?")[0]
            if path.startswith("/file/"):
                with open(files[int(path.split("/")[2])], "rb") as file:
                    return self.answer(file.read(), "application/octet-stream")
            if path in ("/", "/index.html"):
                with open(os.path.join(page, "index.html"), "rb") as file:
                    return self.answer(file.read().replace(b"<head>", b"<head>" + HOOK, 1), "text/html")
            return super().do_GET()

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if len(results) < len(files):
                results.append(json.loads(body) if self.path == "/saved" else body.decode(errors="replace"))
            self.answer(address(len(results)).encode(), "text/plain")
            if len(results) == len(files):
                done.set()

    return Handler


def load(files, directory):
    """What Speedscope makes of each file: its own JSON as an object, or a message as a text.

    directory: where speedscope is kept.
    """
    browser = shutil.which("chromium")
    if browser is None:
        raise npm_package.Missing("there is no chromium")
    results, done = [], threading.Event()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0),
                                             make_handler(find_page(directory), files, results, done))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        first = f"http://127.0.0.1:{server.server_port}/?n=0#profileURL=/file/0/{os.path.basename(files[0])}"
        process = subprocess.Popen([browser, *BROWSER_OPTIONS, "--remote-debugging-port=0", "--user-data-dir=" + profile,
                                    first], env=dict(os.environ, HOME=profile), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            done.wait(45)
        finally:
            process.terminate()
            process.wait()
            server.shutdown()
            server.server_close()
    return results + ["not loaded in time"] * (len(files) - len(results))


def self_weights(group, profile):
    """{frame name: own weight} of one profile of what load() gave."""
    frames, sums = group["shared"]["frames"], {}

    def add(frame, weight):
        name = frames[frame]["name"]
        sums[name] = sums.get(name, 0) + weight

    if profile["type"] == "sampled":
        for stack, weight in zip(profile["samples"], profile["weights"]):
            add(stack[-1], weight)
        return sums
    stack, last = [], profile["startValue"]
    for event in profile["events"]:
        if stack:
            add(stack[-1], event["at"] - last)
        last = event["at"]
        if event["type"] == "O":
            stack.append(event["frame"])
        else:
            assert stack.pop() == event["frame"]
    return {name: weight for name, weight in sums.items() if weight}
