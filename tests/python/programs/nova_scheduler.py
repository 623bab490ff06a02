# SPDX-License-Identifier: MIT
"""The Nova guide's example (runtime-hooks/cpython/NOVA.md) on nova's own services and fixtures, all in one process: API, conductor,
scheduler, placement, computes with the fake driver, SQLite. 12 servers are asked for at once; select_destinations() of each is
profiled into a file of its own.

Arguments: a directory; "sample", "exact", "eventlet" or "none". Prints as JSON how the requests ended.
"""
import nova.monkey_patch  # noqa: as nova's commands do, first of all
import json
import os
import sys
import unittest
from unittest import mock

import eventlet
import nova
from nova.scheduler import host_manager, manager
from nova.tests.functional import integrated_helpers

import greenprof

HOSTS, REQUESTS = 8, 12
directory, kind = sys.argv[1:]
select_destinations = manager.SchedulerManager.select_destinations
get_instance_info = host_manager.HostManager._get_instance_info
raised = []


def make():
    if kind == "eventlet":
        from eventlet.green import profile
        return profile.Profile()
    return greenprof.Profile(mode=kind)


def profiled(self, context, *args, **kw):
    if kind == "none":
        return select_destinations(self, context, *args, **kw)
    profile = make()
    profile.start()
    try:
        return select_destinations(self, context, *args, **kw)
    except Exception as error:
        raised.append(repr(error))
        raise
    finally:
        profile.stop()
        profile.dump_stats(os.path.join(directory, f"{len(os.listdir(directory))}.prof"))


def slow(self, *args, **kw):
    eventlet.sleep(0.002)  # a round trip to a database: SQLite never lets another green thread run
    return get_instance_info(self, *args, **kw)


class Service(integrated_helpers.ProviderUsageBaseTestCase):
    compute_driver = "fake.MediumFakeDriver"

    def setUp(self):
        share = os.path.join(os.path.dirname(nova.__file__), "../../../../share/nova-common/api-paste.ini")  # Debian's place
        real = nova.test.TestCase.setUp

        def with_paste(case):
            real(case)
            case.flags(api_paste_config=os.path.abspath(share), group="wsgi")

        with mock.patch.object(nova.test.TestCase, "setUp", with_paste):
            super().setUp()

    def create(self, number):
        server = {"name": f"s{number}", "imageRef": "155d900f-4e14-4e4c-a73d-069cbf4541e6", "networks": "none",
                  "flavorRef": self.flavor}
        return self.api.post_server({"server": server})["id"]

    def state(self, server):
        for _ in range(1200):
            state = self.api.get_server(server)["status"]
            if state != "BUILD":
                return state
            eventlet.sleep(0.1)

    def test(self):
        for number in range(HOSTS):
            self._start_compute(f"host{number}")
        self.flavor = self.api.get_flavors()[0]["id"]
        with mock.patch.object(manager.SchedulerManager, "select_destinations", profiled), \
                mock.patch.object(host_manager.HostManager, "_get_instance_info", slow):
            threads = [eventlet.spawn(self.create, number) for number in range(REQUESTS)]
            states = [self.state(thread.wait()) for thread in threads]
        print(json.dumps({"states": states, "raised": raised}))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
