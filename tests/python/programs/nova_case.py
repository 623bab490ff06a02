# SPDX-License-Identifier: MIT
"""Nova's own services and fixtures in one process: API, conductor, scheduler, placement, computes with the fake driver, SQLite."""
import nova.monkey_patch  # noqa: as nova's commands do, first of all
import os
import uuid
from unittest import mock

import eventlet
import nova
from nova.scheduler import host_manager, manager
from nova.tests.functional import integrated_helpers

IMAGE = "155d900f-4e14-4e4c-a73d-069cbf4541e6"  # of the fake image service
get_instance_info = host_manager.HostManager._get_instance_info
select_destinations = manager.SchedulerManager.select_destinations


def slow(self, *args, **kw):
    eventlet.sleep(0.002)  # a round trip to a database: SQLite never lets another green thread run
    return get_instance_info(self, *args, **kw)


class Case(integrated_helpers.ProviderUsageBaseTestCase):
    compute_driver = "fake.MediumFakeDriver"

    def setUp(self):
        share = os.path.join(os.path.dirname(nova.__file__), "../../../../share/nova-common/api-paste.ini")  # Debian's place
        real = nova.test.TestCase.setUp

        def with_paste(case):
            real(case)
            case.flags(api_paste_config=os.path.abspath(share), group="wsgi")

        with mock.patch.object(nova.test.TestCase, "setUp", with_paste):
            super().setUp()

    def start(self, hosts):
        for number in range(hosts):
            self._start_compute(f"host{number}")
        self.flavor = self.api.get_flavors()[0]["id"]

    def create(self, number):
        server = {"name": f"s{number}", "imageRef": IMAGE, "networks": "none", "flavorRef": self.flavor}
        return self.api.post_server({"server": server})["id"]

    def state(self, server):
        for _ in range(1200):
            state = self.api.get_server(server)["status"]
            if state != "BUILD":
                return state
            eventlet.sleep(0.1)

    def asked(self):
        """What the API and the conductor ask the scheduler for one server."""
        found = []

        def keep(scheduler, *args, **kw):
            found.append((scheduler, args, kw))
            return select_destinations(scheduler, *args, **kw)

        with mock.patch.object(manager.SchedulerManager, "select_destinations", keep):
            self.state(self.create(0))
        return found[0]

    def requests(self, call=select_destinations):
        """A function that has the scheduler find a host for one more server, and returns its name.

        call: in the place of select_destinations()
        """
        scheduler, args, kw = self.asked()

        def schedule():
            server = str(uuid.uuid4())
            spec = kw["spec_obj"].obj_clone()
            spec.instance_uuid = server
            try:
                (selection, *_), = call(scheduler, *args, **{**kw, "spec_obj": spec, "instance_uuids": [server]})
                return selection.service_host
            finally:
                scheduler.placement_client.delete_allocation_for_instance(args[0], server, force=True)

        return schedule
