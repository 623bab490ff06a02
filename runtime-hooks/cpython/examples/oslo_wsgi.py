# SPDX-License-Identifier: MIT
"""A service as OpenStack's are: a Paste pipeline served by oslo.service, a .prof for each request, nothing changed in its code.

    python3 oslo_wsgi.py PORT DIRECTORY
    curl http://127.0.0.1:PORT/servers; python3 -m pstats DIRECTORY/000001-GET_servers.prof
"""
import eventlet
eventlet.monkey_patch()

import hashlib
import os
import sys
import tempfile

from oslo_config import cfg
from oslo_service import service, wsgi

PIPELINE = """
[pipeline:main]
pipeline = greenprof hashes

[filter:greenprof]
paste.filter_factory = greenprof.wsgi:filter_factory
directory = {directory}

[app:hashes]
paste.app_factory = __main__:application_factory
"""


def check(item):
    eventlet.sleep(0.01)  # a database, say
    return hashlib.pbkdf2_hmac("sha256", b"secret", item.encode(), 20000).hex()


def application(environ, start_response):
    pool = eventlet.GreenPool()
    found = list(pool.imap(check, ["first", "second", "third"]))
    start_response("200 OK", [("Content-Type", "text/plain")])
    return ["\n".join(found).encode() + b"\n"]


def application_factory(global_conf):
    return application


class Service(service.ServiceBase):
    def __init__(self, conf, port):
        self.server = wsgi.Server(conf, "hashes", wsgi.Loader(conf).load_app("main"), host="127.0.0.1", port=port)

    def start(self):
        self.server.start()

    def stop(self):
        self.server.stop()

    def wait(self):
        self.server.wait()

    def reset(self):
        self.server.reset()


if __name__ == "__main__":
    port, directory = int(sys.argv[1]), sys.argv[2]
    conf = cfg.ConfigOpts()
    conf([])
    with tempfile.NamedTemporaryFile("w", suffix=".ini") as paste:
        paste.write(PIPELINE.format(directory=os.path.abspath(directory)))
        paste.flush()
        wsgi.register_opts(conf)
        conf.set_override("api_paste_config", paste.name)
        server = Service(conf, port)
    service.launch(conf, server, restart_method="mutate").wait()
