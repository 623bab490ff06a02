# SPDX-License-Identifier: MIT
"""A small HTTP server that keeps what it is sent, and fails when it is told to."""
import gzip, http.server, threading, time, urllib.parse


class Request:
    def __init__(self, handler, body):
        url = urllib.parse.urlsplit(handler.path)
        self.method, self.path, self.query = handler.command, url.path, dict(urllib.parse.parse_qsl(url.query))
        self.headers = {key.lower(): value for key, value in handler.headers.items()}
        self.body = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body


class Receiver:
    """`faults`: what to do with the next requests instead of taking them: a status, (status, headers), "cut" (close without
    an answer), "lost" (take it, then close without an answer), "slow" (take it, and answer in small pieces)."""

    def __init__(self, answer=b""):
        self.requests, self.faults, self.refused, self.answer = [], [], 0, answer
        self.lock = threading.Condition()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def take(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                with receiver.lock:
                    fault = receiver.faults.pop(0) if receiver.faults else None
                    if fault in (None, "lost", "slow"):
                        receiver.requests.append(Request(self, body))
                    else:
                        receiver.refused += 1
                    receiver.lock.notify_all()
                if fault in ("cut", "lost"):
                    self.close_connection = True
                    return
                status, headers = fault if isinstance(fault, tuple) else (fault, {})
                self.answer_with(200 if fault in (None, "slow") else status, headers, fault == "slow")

            def answer_with(self, status, headers, slowly):
                text = receiver.answer if status == 200 else b"not now\nplease"
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                for at in range(0, len(text), 1 if slowly else max(len(text), 1)):
                    self.wfile.write(text[at:at + (1 if slowly else len(text))])
                    self.wfile.flush()
                    time.sleep(0.01 if slowly else 0)

            do_POST = take

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(60)
