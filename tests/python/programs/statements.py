# SPDX-License-Identifier: MIT
"""Statements of which SQLAlchemy tells greenprof and OSProfiler. Argument: who listens first. Prints the events of OSProfiler."""
import contextlib
import json
import sys

import osprofiler.sqlalchemy
import sqlalchemy
from osprofiler import notifier, profiler

import greenprof
import greenprof.libraries

events = []
notifier.set(lambda info, **more: events.append({key: info[key] for key in ("name", "trace_id", "parent_id")}))
engine = sqlalchemy.create_engine("sqlite://")
if sys.argv[1] == "greenprof":
    greenprof.libraries.instrument()
osprofiler.sqlalchemy.add_tracing(sqlalchemy, engine, "db")
if sys.argv[1] == "osprofiler":
    # As where the engine is made, and traced, before the listeners of all engines are there.
    greenprof.libraries.instrument()


def use(connection):
    for statement in ("SELECT 1", "SELECT 1", "SELECT nope", "SELECT 2"):
        with contextlib.suppress(sqlalchemy.exc.OperationalError):
            connection.execute(sqlalchemy.text(statement)).fetchall()


with engine.connect() as connection:
    connection.execute(sqlalchemy.text("SELECT 0"))  # what the dialect asks first
    profiler.init("SECRET")
    events.clear()
    with greenprof.span("request", "of greenprof"):
        use(connection)
    profiler.init("SECRET")
    profiler.start("wsgi", info={"request": {"method": "GET", "path": "/"}})
    use(connection)
    profiler.stop()
print(json.dumps(events))
