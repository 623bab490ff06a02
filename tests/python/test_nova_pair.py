# SPDX-License-Identifier: MIT
"""A service behind OSProfiler's middleware and Nova's scheduler, with RabbitMQ between them and OSProfiler's own driver to a
Redis: `osprofiler trace show` and `greenprof trace show` list the same tree, and the captures of both say what its spans did."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.request
import uuid

import support

support.require_package()
support.require("nova", "placement", "osprofiler", "redis")
RABBIT = "/usr/lib/rabbitmq/bin/rabbitmq-server"
for program in (RABBIT, "redis-server", "osprofiler"):
    if shutil.which(program) is None:
        support.helpers.skip(f"{program} is not installed")

HOSTS, LIMIT = 4, 120
CONF = """
[DEFAULT]
transport_url = rabbit://guest:guest@127.0.0.1:{rabbit}/
host = scheduler-host
state_path = {folder}
service_down_time = 100000
rpc_response_timeout = 100
log_file = {folder}/nova.log
[api_database]
connection = sqlite:///{folder}/api.sqlite
[database]
connection = sqlite:///{folder}/cell1.sqlite
[profiler]
enabled = True
trace_sqlalchemy = True
hmac_keys = SECRET_KEY
connection_string = redis://127.0.0.1:{redis}
[placement]
auth_type = admin_token
endpoint = http://127.0.0.1:{placement}
token = admin
[scheduler]
workers = 1
[oslo_concurrency]
lock_path = {folder}
"""


class Deployment:
    def __init__(self, folder):
        self.folder, self.processes = folder, []
        self.epmd, self.rabbit, self.redis = support.helpers.free_ports(3)

    def path(self, name):
        return os.path.join(self.folder, name)

    def log(self, name):
        with contextlib.suppress(OSError), open(self.path(name + ".out"), errors="replace") as file:
            return file.read()[-2000:]
        return ""

    def start(self, name, *command, **environment):
        with open(self.path(name + ".out"), "w") as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=self.folder,
                                       env={**os.environ, **environment}, start_new_session=True)
        self.processes.append(process)
        return process

    def wait(self, name, process, is_up):
        end = time.monotonic() + LIMIT
        while not is_up():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{name} does not start: {self.log(name)}")
            time.sleep(.1)

    def listens(self, port):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    def start_servers(self):
        rabbit = self.start(
            "rabbit", RABBIT, HOME=self.folder, RABBITMQ_NODENAME="greenprof@localhost", RABBITMQ_NODE_IP_ADDRESS="127.0.0.1",
            RABBITMQ_NODE_PORT=str(self.rabbit), RABBITMQ_DIST_PORT=str(*support.helpers.free_ports(1)), ERL_EPMD_PORT=str(self.epmd),
            ERL_EPMD_ADDRESS="127.0.0.1", RABBITMQ_MNESIA_BASE=self.folder, RABBITMQ_LOG_BASE=self.folder,
            RABBITMQ_ENABLED_PLUGINS_FILE=self.path("plugins"), RABBITMQ_CONFIG_FILE=self.path("none"),
            RABBITMQ_PID_FILE=self.path("rabbit.pid"),
            RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1}")
        redis = self.start("redis", "redis-server", "--port", str(self.redis), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
        placement, port_file = self.start("placement", *self.part("placement", self.folder, "placement.port")), self.path("placement.port")
        self.wait("placement", placement, lambda: os.path.exists(port_file))
        with open(port_file) as file:
            self.placement = int(file.read())
        with open(self.path("nova.conf"), "w") as file:
            file.write(CONF.format(**vars(self)))
        self.wait("redis", redis, lambda: self.listens(self.redis))
        self.wait("rabbit", rabbit, lambda: self.listens(self.rabbit))

    def part(self, role, *arguments):
        return [support.PYTHON, "-B", "-W", "ignore", os.path.join(support.PROGRAMS, "nova_pair.py"), role, *arguments]

    def once(self, role, *arguments):
        done = subprocess.run(self.part(role, "nova.conf", *arguments), cwd=self.folder, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=LIMIT)
        if done.returncode != 0:
            raise RuntimeError(f"{role} {arguments}: {done.stdout[-1000:]} {done.stderr[-2000:]}")

    def make_databases(self):
        self.once("manage", "api_db", "sync")
        self.once("manage", "cell_v2", "map_cell0", "--database_connection", f"sqlite:///{self.folder}/cell0.sqlite")
        self.once("manage", "db", "sync")
        self.once("manage", "cell_v2", "create_cell", "--name", "cell1", "--database_connection", f"sqlite:///{self.folder}/cell1.sqlite",
                  "--transport-url", f"rabbit://guest:guest@127.0.0.1:{self.rabbit}/")
        self.once("hosts", f"http://127.0.0.1:{self.placement}", str(HOSTS))

    def is_served(self):
        """Does a scheduler wait for calls? What is sent before that is lost."""
        import amqp
        with contextlib.suppress(amqp.exceptions.AMQPError, OSError), amqp.Connection(f"127.0.0.1:{self.rabbit}", connect_timeout=10) as link:
            return link.channel().queue_declare("scheduler", passive=True).consumer_count > 0
        return False

    def start_pair(self):
        def profiled(role, *arguments):
            return self.start(role, support.GREENPROF, "run", "-o", self.path(role + ".greenprof"), "--clock", "wall", "--",
                              *self.part(role, "nova.conf", *arguments), GREENPROF_SERVICE=role)
        self.pair = [profiled("api", "api.port"), profiled("scheduler")]
        self.wait("api", self.pair[0], lambda: os.path.exists(self.path("api.port")))
        self.wait("scheduler", self.pair[1], self.is_served)
        with open(self.path("api.port")) as file:
            self.api = int(file.read())

    def stop(self, processes):
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        for process in processes:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def end(self):
        self.stop(self.processes)
        subprocess.run(["epmd", "-port", str(self.epmd), "-kill"], capture_output=True)

    def ask(self):
        """As a client of OSProfiler's does. The trace's id, and the answer."""
        from osprofiler import _utils
        trace = str(uuid.uuid4())
        info, mac = (text.decode() if isinstance(text, bytes) else text
                     for text in _utils.signed_pack({"base_id": trace, "parent_id": trace}, "SECRET_KEY"))
        request = urllib.request.Request(f"http://127.0.0.1:{self.api}/servers", headers={"X-Trace-Info": info, "X-Trace-HMAC": mac})
        with urllib.request.urlopen(request, timeout=LIMIT) as response:
            return trace, response.read().decode()


def nodes_of(report):
    """What `osprofiler trace show --json` says: span: (parent, service, name of the point)."""
    found, todo = {}, [(None, node) for node in report["children"]]
    while todo:
        parent, node = todo.pop()
        found[node["trace_id"]] = parent, node["info"]["service"], node["info"]["name"]
        todo += [(node["trace_id"], child) for child in node["children"]]
    return found


def as_uuid(span):
    return None if span is None else str(uuid.UUID(span if len(span) > 16 else span.zfill(32)))


class Pair(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="greenprof-nova-", ignore_cleanup_errors=True)
        self.addCleanup(folder.cleanup)
        self.nova = Deployment(folder.name)
        self.addCleanup(self.nova.end)
        self.nova.start_servers()
        self.nova.make_databases()
        self.nova.start_pair()

    def show(self, trace, *sources):
        return json.loads(support.command("trace", "show", trace, *sources, "--json"))["spans"]

    def test_one_tree(self):
        nova, redis = self.nova, f"redis://127.0.0.1:{self.nova.redis}"
        try:
            trace, answer = nova.ask()
        except urllib.error.HTTPError:
            self.fail(nova.log("api") + nova.log("scheduler"))
        self.assertRegex(answer, r"^host[0-3]$")
        nova.stop(nova.pair)
        shown = subprocess.run(["osprofiler", "trace", "show", trace, "--json", "--connection-string", redis],
                               capture_output=True, text=True, timeout=LIMIT, check=True)
        theirs = nodes_of(json.loads(shown.stdout))
        self.assertEqual(sorted((service, name) for _, service, name in theirs.values() if name != "db"),
                         [("nova-api", "wsgi"), ("nova-scheduler", "rpc")])
        self.assertIn(("nova-scheduler", "db"), {value[1:] for value in theirs.values()})
        ours = {as_uuid(one["span"]): (as_uuid(one["parent"]), one["service"]) for one in self.show(trace, redis)}
        self.assertEqual(ours, {span: (parent, service) for span, (parent, service, _) in theirs.items()})
        # With the captures each of them has its times, and is the same.
        captures = [nova.path(role + ".greenprof") for role in ("api", "scheduler")]
        spans = {as_uuid(one["span"]): one for one in self.show(trace, redis, *captures)}
        self.assertLessEqual(set(theirs), set(spans))
        for id, (parent, service, _) in theirs.items():
            self.assertEqual((as_uuid(spans[id]["parent"]), "nova-" + spans[id]["service"]), (parent, service))
        flags = {flag for one in spans.values() for flag in one["flags"]} - {"critical", "remote_parent"}
        self.assertEqual(flags, set())
        dispatch = next(one for one in spans.values() if one["kind"] == "rpc_dispatch")
        self.assertGreater(dispatch["cpu_ns"], 0)
        self.assertGreater(dispatch["switches"], 1)
        path = support.command("report", captures[1], "--by", "critical-path", "--trace", trace)
        self.assertIn("[coroutine ", path)


if __name__ == "__main__":
    unittest.main(verbosity=2)
