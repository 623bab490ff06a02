# SPDX-License-Identifier: MIT
"""A network between a shipper and a store that fails when so many bytes have passed."""
import socket
import threading


class Proxy:
    """Forwards TCP connections to a port of the loopback interface. Armed, it does something after so many bytes, in
    both directions together, and passes on nothing of these connections any more."""

    def __init__(self, target, port=0):
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.left, self.action, self.fired = None, None, threading.Event()
        self.links = set()
        self.open = True
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, count, action):
        """After `count` bytes: action(), in the thread that forwards; then the connections are cut."""
        with self.lock:
            self.left, self.action = count, action
            self.fired.clear()

    def disarm(self):
        with self.lock:
            self.left = None

    def _accept(self):
        while self.open:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target), timeout=30)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            with self.lock:
                self.links |= {client, server}
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._forward, args=(source, sink), daemon=True).start()

    def _forward(self, source, sink):
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                passed = self._pass(len(data))
                sink.sendall(data[:passed])
                if passed < len(data):
                    self._fire()
                    break
        except OSError:
            pass
        for link in (source, sink):
            try:
                link.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _pass(self, count):
        with self.lock:
            if self.left is None:
                return count
            passed = min(count, self.left)
            self.left -= passed
            return passed

    def _fire(self):
        with self.lock:
            action, self.action = self.action, None
        if action is not None:
            action()
            self.fired.set()
        self.cut()

    def cut(self):
        """Cut all connections."""
        with self.lock:
            links, self.links = self.links, set()
        for link in links:
            try:
                link.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            link.close()

    def close(self):
        self.open = False
        self.listener.close()
        self.cut()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
