# SPDX-License-Identifier: MIT
"""What is between a shipper and its store: TLS with a CA of one's own, tokens that are renewed, proxies; and a store whose
disk is full, or whose network is cut.
"""
import os
import shutil
import socket
import ssl
import subprocess
import threading
import unittest

from captures import Capture, check
from clickhouse_server import ClickHouse
from proxy import Proxy
from receiver import Receiver
from shipping import ShipTest, Store, until

DISK_BYTES = 160 << 20
by_hand = unittest.skipUnless(os.environ.get("FLEET_NET"), "by hand: FLEET_NET=1")


def make_authority(folder):
    """A CA, another one, and certificates for the store and for a shipper by the first."""
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, cwd=folder, capture_output=True, timeout=120)

    for name in ("ca", "other"):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")
    for name, san in (("store", "IP:127.0.0.1"), ("shipper", "DNS:shipper")):
        with open(os.path.join(folder, name + ".ext"), "w", encoding="ascii") as file:
            file.write(f"subjectAltName={san}\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                "-keyout", f"{name}.key", "-out", f"{name}.csr")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30",
                "-extfile", f"{name}.ext", "-out", f"{name}.pem")


class Front:
    """A server that is before another one: a thread with serve() for each connection."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def copy(self, server, client):
        """Both ways, until both have ended."""
        back = threading.Thread(target=self.copy_one_way, args=(server, client), daemon=True)
        back.start()
        self.copy_one_way(client, server)
        back.join(60)

    @staticmethod
    def copy_one_way(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


class Tls(Front):
    """Takes TLS off the connections to a port of the loopback interface."""

    def __init__(self, port, folder, wants_client=False):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(os.path.join(folder, "store.pem"), os.path.join(folder, "store.key"))
        if wants_client:
            self.context.load_verify_locations(os.path.join(folder, "ca.pem"))
            self.context.verify_mode = ssl.CERT_REQUIRED
        self.target, self.links = port, 0
        super().__init__()

    def serve(self, client):
        try:
            with self.context.wrap_socket(client, server_side=True) as inner, \
                    socket.create_connection(("127.0.0.1", self.target)) as server:
                self.links += 1
                self.copy(server, inner)
        except OSError:
            client.close()


class Tunnel(Front):
    """An HTTP proxy that knows CONNECT; asked for a name, it goes to the loopback interface."""

    def __init__(self):
        self.asked = []
        super().__init__()

    def serve(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            data = client.recv(4096)
            if not data:
                return
            head += data
        method, target, _ = head.split(b"\r\n")[0].decode().split()
        self.asked.append((method, target))
        with client, socket.create_connection(("127.0.0.1", int(target.rpartition(":")[2]))) as server:
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            self.copy(server, client)


class Secured(Store, ShipTest):
    def setUp(self):
        super().setUp()
        make_authority(self.folder)
        self.capture = Capture(self.path("a.greenprof"), 1, chunks=20).finish()

    def url(self, port, *names, host="127.0.0.1"):
        files = "".join(f"&{name}={self.folder}/{file}" for name, file in names)
        return self.store.url(f"?tls=1{files}", port=port).replace("127.0.0.1", host)

    def test_certificates(self):
        with Tls(self.store.http, self.folder) as front:
            for names in ((), (("ca_file", "other.pem"),)):
                said = self.ship("--to", self.url(front.port, *names), status=1)
                self.assertRegex(said, "certificate|SSL")
            self.assertEqual(self.store.query("SHOW TABLES"), [])
            self.ship("--to", self.url(front.port, ("ca_file", "ca.pem")))
            check(self, self.store, [self.capture])
            self.state += "2"  # and another name than the certificate's
            said = self.ship("--to", self.url(front.port, ("ca_file", "ca.pem"), host="localhost"), status=1)
            self.assertRegex(said, "certificate|SSL")
            self.ship("--to", self.url(front.port, host="localhost") + "&insecure=1&tenant=b")

    @by_hand
    def test_certificate_of_this_end(self):
        with Tls(self.store.http, self.folder, wants_client=True) as front:
            own = (("cert_file", "shipper.pem"), ("key_file", "shipper.key"))
            self.ship("--to", self.url(front.port, ("ca_file", "ca.pem")), status=1)
            self.assertEqual(self.store.query("SHOW TABLES"), [])
            self.ship("--to", self.url(front.port, ("ca_file", "ca.pem"), *own))
            check(self, self.store, [self.capture])

    @by_hand
    def test_proxy(self):
        """https_proxy, by CONNECT; no_proxy goes by it."""
        with Tls(self.store.http, self.folder) as front, Tunnel() as tunnel:
            url, proxy = self.url(front.port, ("ca_file", "ca.pem")), f"http://127.0.0.1:{tunnel.port}"
            self.ship("--to", url, https_proxy=proxy, no_proxy="127.0.0.1")
            self.assertEqual(tunnel.asked, [])
            shutil.rmtree(self.state)
            self.ship("--to", url + "&tenant=b", https_proxy=proxy)
            self.assertEqual(set(tunnel.asked), {("CONNECT", f"127.0.0.1:{front.port}")})
        self.assertEqual(self.store.query("SELECT tenant, sum(samples) FROM greenprof_samples WHERE measure = 0 GROUP BY tenant ORDER BY tenant"),
                         [["", str(self.capture.count)], ["b", str(self.capture.count)]])

    def test_token_is_renewed(self):
        """The file is read again for each request: a token is replaced while the shipper runs."""
        token = os.path.join(self.folder, "token")
        with open(token, "w", encoding="ascii") as file:
            file.write("one\n")
        with Receiver() as there:
            self.start("--to", f"otlp+http://127.0.0.1:{there.port}?token_file={token}&signals=traces")
            until(lambda: there.requests, "a request")
            self.assertEqual(there.requests[0].headers["authorization"], "Bearer one")
            with open(token + ".new", "w", encoding="ascii") as file:
                file.write("two\n")
            os.rename(token + ".new", token)
            Capture(self.path("b.greenprof"), 2, chunks=20).finish()
            until(lambda: there.requests[-1].headers["authorization"] == "Bearer two", "the new token")

    @by_hand
    def test_network_is_cut(self):
        """For as long as it likes: nothing arrives, then all of it does, once."""
        with Proxy(self.store.http) as network:
            process = self.start("--to", self.store.url(port=network.port))
            until(lambda: self.store.query("EXISTS TABLE greenprof_batches") == [["1"]], "tables")
            network.arm(0, lambda: None)
            more = Capture(self.path("b.greenprof"), 2, chunks=40)
            more.write(len(more.bytes) // 2)
            self.wait_for_log("trying again")
            network.disarm()
            more.finish()
            self.wait_for_log("arrives again")
            until(lambda: self.store.paths() == 2, "all of it")
            self.kill(process)
        check(self, self.store, [self.capture, more])


class DiskIsFull(ShipTest):
    def test_store(self):
        folder = os.path.join(self.folder, "disk")
        os.mkdir(folder)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", folder], capture_output=True,
                                 text=True, check=False)
        if mounted.returncode != 0:
            self.skipTest(f"no tmpfs to be had here: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=False)
        files = [Capture(self.path(f"{seed}.greenprof"), seed) for seed in (1, 2)]
        store = ClickHouse(folder=os.path.join(folder, "store"))
        self.addCleanup(store.close)
        store.start()
        for capture in files:
            capture.write(len(capture.bytes) // 3)
        self.ship("--to", store.url())
        rows = store.number("SELECT count() FROM greenprof_samples")
        filler = os.path.join(folder, "filler")
        free = os.statvfs(folder)
        with open(filler, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize)
        for capture in files:
            capture.finish()
        self.start("--to", store.url())
        self.wait_for_log("trying again")
        self.assertRegex(self.log(), "No space left|enough space|Cannot reserve|Cannot write file")
        self.assertEqual(store.number("SELECT count() FROM greenprof_samples"), rows)
        os.unlink(filler)
        self.wait_for_log("arrives again")
        until(lambda: store.paths() == 2, "all of it")
        check(self, store, files)


if __name__ == "__main__":
    unittest.main()
