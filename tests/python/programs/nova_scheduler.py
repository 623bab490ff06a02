# SPDX-License-Identifier: MIT
"""The Nova guide's example (runtime-hooks/cpython/NOVA.md) on nova's own services and fixtures, all in one process: API, conductor,
scheduler, placement, computes with the fake driver, SQLite. 12 servers are asked for at once; select_destinations() of each is
profiled into a file of its own.

Arguments: a directory; "sample", "exact", "eventlet" or "none". Prints as JSON how the requests ended.
"""
import nova_case  # first of all: it patches as nova's commands do
import json
import os
import sys
import unittest
from unittest import mock

import eventlet
from nova.scheduler import host_manager, manager

import greenprof

HOSTS, REQUESTS = 8, 12
directory, kind = sys.argv[1:]
select_destinations = manager.SchedulerManager.select_destinations
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


class Service(nova_case.Case):
    def test(self):
        self.start(HOSTS)
        with mock.patch.object(manager.SchedulerManager, "select_destinations", profiled), \
                mock.patch.object(host_manager.HostManager, "_get_instance_info", nova_case.slow):
            threads = [eventlet.spawn(self.create, number) for number in range(REQUESTS)]
            states = [self.state(thread.wait()) for thread in threads]
        print(json.dumps({"states": states, "raised": raised}))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
