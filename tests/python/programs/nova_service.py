# SPDX-License-Identifier: MIT
"""Nova's scheduler behind a socket: each connection is a select_destinations(), and is told the host.

Argument: the port."""
import nova_case  # first of all: it patches as nova's commands do
import sys
import unittest
from unittest import mock

import eventlet
from nova.scheduler import host_manager

HOSTS = 4


class Service(nova_case.Case):
    def test(self):
        self.start(HOSTS)
        schedule = self.requests()

        def answer(connection, _address):
            try:
                text = schedule()
            except Exception as error:  # the asker is to see it, and the service goes on
                text = repr(error)
            connection.sendall(text.encode() + b"\n")
            connection.close()

        with mock.patch.object(host_manager.HostManager, "_get_instance_info", nova_case.slow):
            eventlet.serve(eventlet.listen(("127.0.0.1", int(sys.argv[1])), backlog=1000), answer)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
