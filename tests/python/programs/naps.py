# SPDX-License-Identifier: MIT
"""Green threads that end right after the one wait of their lives."""
import eventlet


def naps():
    eventlet.sleep(0.03)


for thread in [eventlet.spawn(naps) for _ in range(20)]:
    thread.wait()
