# SPDX-License-Identifier: MIT
"""An unknown thread is the one that starts to sample again, after a rest."""
import signal
import threading
import time

import greenprof

REST_SECONDS = 0.8  # samplers stay for 0.5 s after the last profile


def profiled():
    with greenprof.Profile():
        pass
    print("profiled")


with greenprof.Profile():
    pass
time.sleep(REST_SECONDS)
signal.alarm(20)
thread = threading.Thread(target=profiled)
thread.start()
thread.join()
