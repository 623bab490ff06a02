# SPDX-License-Identifier: MIT
"""Nova's scheduler behind a socket: each connection is a select_destinations(), and is told the host.

Argument: the port."""
import nova_case  # first of all: it patches as nova's commands do
import sys
import unittest
import uuid
from unittest import mock

import eventlet
from nova.scheduler import host_manager, manager

HOSTS = 4
select_destinations = manager.SchedulerManager.select_destinations


class Service(nova_case.Case):
    def asked(self):
        """What the API and the conductor ask the scheduler for one server."""
        found = []

        def keep(scheduler, *args, **kw):
            found.append((scheduler, args, kw))
            return select_destinations(scheduler, *args, **kw)

        with mock.patch.object(manager.SchedulerManager, "select_destinations", keep):
            self.state(self.create(0))
        return found[0]

    def test(self):
        self.start(HOSTS)
        scheduler, args, kw = self.asked()

        def schedule():
            server = str(uuid.uuid4())
            spec = kw["spec_obj"].obj_clone()
            spec.instance_uuid = server
            try:
                (selection, *_), = select_destinations(scheduler, *args, **{**kw, "spec_obj": spec, "instance_uuids": [server]})
                return selection.service_host
            finally:
                scheduler.placement_client.delete_allocation_for_instance(args[0], server, force=True)

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
