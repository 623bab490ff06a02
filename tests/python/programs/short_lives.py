# SPDX-License-Identifier: MIT
"""20,000 green threads that end after one wait. Argument: eventlet or gevent."""
import sys

LIVES = 20000


def live():
    sleep(0)


if sys.argv[1] == "eventlet":
    import eventlet
    sleep = eventlet.sleep
    pool = eventlet.GreenPool(8)
    for _ in range(LIVES):
        pool.spawn_n(live)
    pool.waitall()
else:
    import gevent
    import gevent.pool
    sleep = gevent.sleep
    pool = gevent.pool.Pool(8)
    for _ in range(LIVES):
        pool.spawn(live)
    pool.join()
