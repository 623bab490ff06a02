# SPDX-License-Identifier: MIT
"""ClickHouse servers of Debian's package for tests: each in a folder of its own, on free ports of the loopback interface.

    with ClickHouse() as store:
        store.query("SELECT 1")                 # rows, as lists of texts
        store.url("?tenant=a")                  # clickhouse://127.0.0.1:PORT/default?tenant=a
        store.kill(); store.start()             # SIGKILL; the same data and ports
    store = Database()                          # the same, but for kill(): a database in the one store of all tests of a run
    with Cluster(shards=2) as cluster:          # with a ZooKeeper; cluster.name, cluster.servers
        ...
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from helpers import free_ports, need, until  # noqa: E402
from kept import die_with_parent, kept  # noqa: E402

SERVER = shutil.which("clickhouse-server", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin")
ZOOKEEPER_JARS = "/usr/share/java/zookeeper.jar"

CONFIG = """<?xml version="1.0"?>
<yandex>
  <logger><level>warning</level><log>{folder}/server.log</log><errorlog>{folder}/error.log</errorlog></logger>
  <http_port>{http}</http_port>
  <tcp_port>{tcp}</tcp_port>
  <interserver_http_port>{interserver}</interserver_http_port>
  <interserver_http_host>127.0.0.1</interserver_http_host>
  <listen_host>127.0.0.1</listen_host>
  <max_concurrent_queries>100</max_concurrent_queries>
  <uncompressed_cache_size>0</uncompressed_cache_size>
  <mark_cache_size>268435456</mark_cache_size>
  <path>{folder}/data/</path>
  <tmp_path>{folder}/tmp/</tmp_path>
  <user_files_path>{folder}/files/</user_files_path>
  <format_schema_path>{folder}/schemas/</format_schema_path>
  <users_config>users.xml</users_config>
  <default_profile>default</default_profile>
  <default_database>default</default_database>
  <timezone>UTC</timezone>
  {cluster}
</yandex>
"""

USERS = """<?xml version="1.0"?>
<yandex>
  <profiles><default><max_memory_usage>2000000000</max_memory_usage><load_balancing>random</load_balancing></default></profiles>
  <quotas><default></default></quotas>
  <users>
    <default><password></password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota></default>
    <shipper><password>secret</password><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota></shipper>
  </users>
</yandex>
"""


def need_clickhouse():
    need(SERVER is not None, "no clickhouse-server (tools/setup test)")


class QueryError(Exception):
    pass


class ClickHouse:
    """One server. `cluster` is XML of its configuration: remote_servers, zookeeper, macros."""

    database = "default"

    def __init__(self, cluster="", ports=None, folder=None):
        need_clickhouse()
        self.folder = folder or tempfile.mkdtemp(prefix="greenprof-clickhouse-")
        self.http, self.tcp, self.interserver = ports or free_ports(3)
        self.process = None
        for name in ("data", "tmp", "files", "schemas"):
            os.makedirs(os.path.join(self.folder, name), exist_ok=True)
        with open(os.path.join(self.folder, "config.xml"), "w", encoding="utf-8") as config:
            config.write(CONFIG.format(folder=self.folder, http=self.http, tcp=self.tcp, interserver=self.interserver,
                                       cluster=cluster))
        with open(os.path.join(self.folder, "users.xml"), "w", encoding="utf-8") as users:
            users.write(USERS)

    def start(self, wait=True):
        with open(os.path.join(self.folder, "stderr"), "ab") as errors:
            self.process = subprocess.Popen([SERVER, f"--config-file={self.folder}/config.xml"], cwd=self.folder,
                                            stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                                            start_new_session=True, preexec_fn=die_with_parent)
        if wait:
            until(self.answers, f"ClickHouse on port {self.http}")
        return self

    def answers(self):
        if self.process.poll() is not None:
            with open(os.path.join(self.folder, "stderr"), encoding="utf-8", errors="replace") as errors:
                raise AssertionError(f"clickhouse-server ended: {errors.read()[-2000:]}")
        try:
            return self.query("SELECT 1") == [["1"]]
        except (OSError, QueryError):
            return False

    def query(self, text, **settings):
        """Rows of an answer, each a list of texts."""
        url = f"http://127.0.0.1:{self.http}/?" + urllib.parse.urlencode({"database": self.database, **settings})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(url, data=text.encode(), timeout=120) as answer:
                lines = answer.read().decode().splitlines()
        except urllib.error.HTTPError as error:
            raise QueryError(error.read().decode(errors="replace")) from None
        return [line.split("\t") for line in lines]

    def number(self, text):
        return int(self.query(text)[0][0])

    def known(self, text):
        """The same; -1 where there is no table yet, or no server."""
        try:
            return self.number(text)
        except (OSError, QueryError):
            return -1

    def rows(self):
        return self.known("SELECT sum(samples) FROM greenprof_samples WHERE measure = 0")

    def paths(self):
        """How many processes have critical paths."""
        return self.known("SELECT countDistinct(process) FROM greenprof_samples WHERE measure = 1")

    def url(self, options="", database=None, user="", port=None):
        return f"clickhouse://{user}127.0.0.1:{port or self.http}/{database or self.database}{options}"

    def kill(self):
        """SIGKILL, as a crash would."""
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def pause(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def close(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_):
        self.close()


    def told(self):
        return {"http": self.http}


def started():
    return ClickHouse().__enter__()


class Database(ClickHouse):
    """A database, which is empty after make(), in the store that the tests of a run share."""

    def __init__(self):
        need_clickhouse()
        self.http = kept("clickhouse_server", "started")["http"]
        self.database, self.made = f"test_{os.getpid()}", set()

    def make(self, more=""):
        """Its name; with `more` that of another database beside it."""
        name = self.database + more
        self.made.add(name)
        self.query(f"DROP DATABASE IF EXISTS {name}", database="default")
        self.query(f"CREATE DATABASE {name}", database="default")
        return name

    def close(self):
        for name in self.made:
            self.query(f"DROP DATABASE {name}", database="default")


class ZooKeeper:
    """One ZooKeeper, standalone."""

    def __init__(self):
        self.java = shutil.which("java")
        need(self.java is not None and os.path.exists(ZOOKEEPER_JARS), "no zookeeper (tools/setup test)")
        self.folder = tempfile.mkdtemp(prefix="greenprof-zookeeper-")
        self.port, = free_ports(1)
        self.process = None
        with open(os.path.join(self.folder, "zoo.cfg"), "w", encoding="utf-8") as config:
            config.write(f"tickTime=2000\ndataDir={self.folder}/data\nclientPort={self.port}\n"
                         "clientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=ruok\n"
                         "maxClientCnxns=0\n")

    def start(self):
        # Only one way to log for SLF4J: two of them may call each other.
        jars = ":".join(os.path.join("/usr/share/java", name) for name in sorted(os.listdir("/usr/share/java"))
                        if name.endswith(".jar") and "-over-slf4j" not in name
                        and (not name.startswith("slf4j-") or re.match("slf4j-(api|nop)[.-]", name)))
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                [self.java, "-Xmx256m", "-cp", jars, "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                 f"{self.folder}/zoo.cfg"], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, preexec_fn=die_with_parent)
        until(self.answers, "ZooKeeper")
        return self

    def answers(self):
        if self.process.poll() is not None:
            with open(os.path.join(self.folder, "log"), encoding="utf-8", errors="replace") as log:
                raise AssertionError(f"ZooKeeper ended: {log.read()[-2000:]}")
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as link:
                link.sendall(b"ruok")
                return link.recv(16) == b"imok"
        except OSError:
            return False

    def close(self):
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Cluster:
    """Shards of one replica each (or more), and the ZooKeeper that they need. `name` is for ?cluster=."""

    name = "fleet"

    def __init__(self, shards=2, replicas=1):
        need_clickhouse()
        self.keeper = ZooKeeper()
        ports = [[free_ports(3) for _ in range(replicas)] for _ in range(shards)]
        remote = "".join(
            "<shard><internal_replication>true</internal_replication>" +
            "".join(f"<replica><host>127.0.0.1</host><port>{tcp}</port></replica>" for _, tcp, _ in shard) + "</shard>"
            for shard in ports)
        self.servers = []
        for number, shard in enumerate(ports, 1):
            for replica, each in enumerate(shard, 1):
                self.servers.append(ClickHouse(ports=each, cluster=(
                    f"<remote_servers><{self.name}>{remote}</{self.name}></remote_servers>"
                    f"<zookeeper><node><host>127.0.0.1</host><port>{self.keeper.port}</port></node></zookeeper>"
                    f"<macros><shard>{number}</shard><replica>r{replica}</replica></macros>"
                    "<distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl>")))

    def url(self, options=""):
        hosts = ",".join(f"127.0.0.1:{server.http}" for server in self.servers)
        return f"clickhouse://{hosts}/default?cluster={self.name}{options}"

    def __enter__(self):
        try:
            self.keeper.start()
            for server in self.servers:
                server.start(wait=False)
            for server in self.servers:
                until(server.answers, f"ClickHouse on port {server.http}")
            return self
        except BaseException:
            self.close()
            raise

    def close(self):
        for server in self.servers:
            server.close()
        self.keeper.close()

    def __exit__(self, *_):
        self.close()
