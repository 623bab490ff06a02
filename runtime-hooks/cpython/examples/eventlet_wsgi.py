# SPDX-License-Identifier: MIT
"""A service on eventlet.wsgi that writes a .prof for each request.

    python3 eventlet_wsgi.py PORT DIRECTORY
    curl http://127.0.0.1:PORT/servers; python3 -m pstats DIRECTORY/000001-GET_servers.prof
"""
import eventlet
eventlet.monkey_patch()

import hashlib
import sys

import eventlet.wsgi
import greenprof.wsgi


def check(item):
    eventlet.sleep(0.01)  # a database, say
    return hashlib.pbkdf2_hmac("sha256", b"secret", item.encode(), 20000).hex()


def application(environ, start_response):
    pool = eventlet.GreenPool()
    found = list(pool.imap(check, ["first", "second", "third"]))
    start_response("200 OK", [("Content-Type", "text/plain")])
    return ["\n".join(found).encode() + b"\n"]


if __name__ == "__main__":
    port, directory = int(sys.argv[1]), sys.argv[2]
    site = greenprof.wsgi.Middleware(application, directory)  # the one line that a service of your own needs
    eventlet.wsgi.server(eventlet.listen(("127.0.0.1", port)), site)
