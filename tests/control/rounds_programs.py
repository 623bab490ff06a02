# SPDX-License-Identifier: MIT
"""Programs that are attached to many times while they work, and what asks them for work.

Each is a class with `command(directory)`, `request()`, which returns whether the answer is right, and the `target`
process. A request opens its own connection, so that one that is dropped is a failure that is seen."""
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import fastcgi  # noqa: E402

PYTHON = "/usr/bin/python3"
LIMIT_SECONDS = 20

WSGI = """
import sys, eventlet
eventlet.monkey_patch()
import eventlet.wsgi
from oslo_config import cfg
from oslo_service import service

def part(n):
    eventlet.sleep(0)
    return sum(range(n))

def app(environ, start_response):
    total = sum(thread.wait() for thread in [eventlet.spawn(part, 500) for _ in range(4)])
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(total).encode()]

class Server(service.Service):
    def start(self):
        listener = eventlet.listen(("127.0.0.1", int(sys.argv[1])), backlog=1000)
        self.tg.add_thread(eventlet.wsgi.server, listener, app, None, log_output=False)

service.launch(cfg.ConfigOpts(), Server()).wait()
"""

LUA = """
require('socket').tcp_server('127.0.0.1', PORT, function(peer)
    local line = peer:read('\\n')
    if line then
        require('fiber').yield()
        peer:write(line)
    end
end)
"""

PHP = """<?php
$fibers = [];
for ($i = 0; $i < 4; $i++) { $fibers[] = new Fiber(function () { $sum = 0;
    for ($j = 0; $j < 500; $j++) { $sum += $j; if ($j % 100 == 0) Fiber::suspend(); } return $sum; }); }
foreach ($fibers as $fiber) $fiber->start();
for ($live = true; $live;) { $live = false;
    foreach ($fibers as $fiber) if (!$fiber->isTerminated()) { $fiber->resume(); $live = true; } }
echo "sum " . array_sum(array_map(fn($fiber) => $fiber->getReturn(), $fibers)) . "\\n";
"""


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as it:
        it.bind(("127.0.0.1", 0))
        return it.getsockname()[1]


def write(directory, name, text):
    path = os.path.join(directory, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def program(name, *more):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    return [path, *more] if path else None


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


class Program:
    stdin = subprocess.DEVNULL

    def target(self, process):
        return process.pid

    def wait(self, process):
        """Until it is what it is going to be, where no request says so."""

    def failures(self, process):
        """Of work that the program checks itself."""
        return 0


class Oslo(Program):
    """oslo.service, as Nova's scheduler is started, with eventlet's WSGI server: 4 green threads for each request."""

    def command(self, directory):
        self.port = free_port()
        return [PYTHON, "-W", "ignore", write(directory, "service.py", WSGI), str(self.port)]

    def request(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=LIMIT_SECONDS) as answer:
            return answer.read() == b"499000"


class Nova(Program):
    """Debian's nova-scheduler with its placement, database and message bus in one process: each request schedules a server."""

    def command(self, directory):
        self.port = free_port()
        if not os.path.exists("/usr/share/nova-common/api-paste.ini"):
            return None
        service = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../python/programs/nova_service.py")
        return [PYTHON, "-W", "ignore", "-B", service, str(self.port)]

    def request(self):
        with socket.create_connection(("127.0.0.1", self.port), LIMIT_SECONDS) as connection:
            return re.fullmatch(rb"host[0-3]\n", connection.makefile("rb").read()) is not None


class Tarantool(Program):
    """A TCP server, a fiber for each connection."""

    def command(self, directory):
        self.port = free_port()
        return program("tarantool", write(directory, "server.lua", LUA.replace("PORT", str(self.port))))

    def request(self):
        with socket.create_connection(("127.0.0.1", self.port), LIMIT_SECONDS) as connection:
            connection.sendall(b"0123456789\n")
            got = b""
            while part := connection.recv(100):
                got += part
            return got == b"0123456789\n"


class Recursor(Program):
    """pdns-recursor, that answers from a zone of its own, without its cache of packets: a coroutine for each question."""

    def command(self, directory):
        self.port = free_port(socket.SOCK_DGRAM)
        zone = write(directory, "zone", "@ 60 IN SOA ns.a.test. x.a.test. 1 60 60 60 60\n@ 60 IN NS ns.a.test.\n"
                                        "ns 60 IN A 127.0.0.1\n* 60 IN A 192.0.2.7\n")
        write(directory, "recursor.conf", "")
        return program("pdns_recursor", f"--config-dir={directory}", f"--socket-dir={directory}",
                       "--local-address=127.0.0.1", f"--local-port={self.port}", f"--auth-zones=a.test={zone}",
                       "--disable-packetcache=yes", "--daemon=no", "--write-pid=no", "--security-poll-suffix=",
                       "--dnssec=off", "--quiet=yes", "--threads=2", "--setuid=0", "--setgid=0")

    def request(self):
        question = b"\x04name\x01a\x04test\x00" + struct.pack("!HH", 1, 1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as it:
            it.settimeout(LIMIT_SECONDS)
            it.connect(("127.0.0.1", self.port))
            it.send(struct.pack("!6H", 7, 0x0100, 1, 0, 0, 0) + question)
            answer = it.recv(600)
            number, flags, _, answers, _, _ = struct.unpack("!6H", answer[:12])
            return (number, flags & 15, answers) == (7, 0, 1) and answer.endswith(bytes([192, 0, 2, 7]))


class Fpm(Program):
    """php-fpm with one worker, which is attached to: four fibers for each request."""

    def command(self, directory):
        self.path, self.script = os.path.join(directory, "fpm.sock"), write(directory, "page.php", PHP)
        user = "user = root\ngroup = root\n" if os.geteuid() == 0 else ""
        conf = write(directory, "fpm.conf", f"[global]\nerror_log = {directory}/log\n[www]\nlisten = {self.path}\n"
                                            f"{user}listen.backlog = 500\npm = static\npm.max_children = 1\n")
        return program("php-fpm8.2", "-n", "-F", "-R", "-y", conf)

    def target(self, process):
        return children(process.pid)[0]

    def request(self):
        return b"sum 499000\n" in fastcgi.ask(self.path, self.script, limit=LIMIT_SECONDS)


class Threads(Program):
    """500 threads: they allocate, compute, load libraries, and wait in epoll_wait() without expecting EINTR."""
    stdin = subprocess.PIPE

    def command(self, directory):
        return [os.environ["BUSY"], "125"]

    request = None

    def wait(self, process):
        assert process.stdout.readline() == b"ready\n"

    def failures(self, process):
        process.stdin.write(b"\n")
        process.stdin.flush()
        while not (words := process.stdout.readline().split()) or words[0] != b"rounds":
            assert process.poll() is None
        return int(words[3])


PROGRAMS = {"oslo": Oslo, "nova": Nova, "tarantool": Tarantool, "pdns": Recursor, "fpm": Fpm, "threads": Threads}
