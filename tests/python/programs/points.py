# SPDX-License-Identifier: MIT
"""OSProfiler's points, with a driver that keeps its events. Prints these, in the order in which they came."""
import json

import greenprof
import greenprof.libraries
from osprofiler import notifier, profiler

TRACE = "0af76519-16cd-43dd-8448-eb211c80319c"
PARENT = "00000000-0000-0000-00f0-67aa0ba902b7"
events = []
notifier.set(lambda event, *_, **__: events.append({key: event[key] for key in ("name", "base_id", "trace_id", "parent_id")}))


@profiler.trace("compute")
def fail():
    raise ValueError("no host")


def points(**init):
    profiler.clean()
    profiler.init("SECRET_KEY", **init)
    profiler.start("rpc", info={"function": {"name": "select_destinations"}})
    with profiler.Trace("db", info={"db": {"statement": "SELECT x FROM t WHERE y = :y", "params": {"y": "secret"}}}):
        try:
            fail()
        except ValueError:
            pass
    profiler.stop()


greenprof.libraries.instrument("osprofiler")
points(base_id=TRACE, parent_id=PARENT)
with greenprof.span("request", "around"):
    points()
try:
    profiler.stop()
except IndexError:  # as OSProfiler does of a stop too many
    pass
greenprof.libraries.restore()
points()
print(json.dumps(events))
