# SPDX-License-Identifier: MIT
"""Other tools beside a profile that samples: each has what it has alone, and greenprof has its time. Argument: which came first."""
import cProfile
import pstats
import sys
import time

import greenprof

CALLS = 200


def leaf():
    end = time.thread_time() + 0.0005
    while time.thread_time() < end:
        pass


def work():
    for _ in range(CALLS):
        leaf()


def with_cprofile():
    profile = cProfile.Profile()
    profile.enable()
    yield
    profile.disable()
    assert {key[2]: row[1] for key, row in pstats.Stats(profile).stats.items()}["leaf"] == CALLS


def with_setprofile():
    calls = []
    sys.setprofile(lambda frame, event, argument: event == "call" and calls.append(frame.f_code.co_name))
    yield
    sys.setprofile(None)
    assert calls.count("leaf") == CALLS


def with_settrace():
    calls = []
    sys.settrace(lambda frame, event, argument: calls.append(frame.f_code.co_name))
    yield
    sys.settrace(None)
    assert calls.count("leaf") == CALLS


def with_yappi():
    import yappi
    yappi.set_clock_type("cpu")
    yappi.start()
    yield
    yappi.stop()
    assert [row.ncall for row in yappi.get_func_stats() if row.name == "leaf"] == [CALLS]


def with_coverage():
    import coverage
    cover = coverage.Coverage(data_file=None)
    cover.start()
    yield
    cover.stop()
    lines = cover.get_data().lines(__file__)
    assert leaf.__code__.co_firstlineno + 1 in lines, lines


def with_faulthandler_and_timer():
    import faulthandler
    import signal
    hits = []
    before = signal.signal(signal.SIGALRM, lambda *unused: hits.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    faulthandler.dump_traceback_later(60)
    yield
    faulthandler.cancel_dump_traceback_later()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    assert len(hits) > 3, len(hits)


def run(tool, first):
    profile, other = greenprof.Profile(), tool()
    if first == "greenprof":
        profile.start()
    next(other)
    if first != "greenprof":
        profile.start()
    work()
    if first != "greenprof":
        profile.stop()
    next(other, None)
    if first == "greenprof":
        profile.stop()
    profile.create_stats()
    rows = {key[2]: row for key, row in profile.stats.items()}
    assert 0.09 < rows["leaf"][3] < 1, rows["leaf"]
    assert rows["work"][3] >= rows["leaf"][3], rows


for name in sorted(name for name in globals() if name.startswith("with_")):
    try:
        run(globals()[name], sys.argv[1])
        print(name)
    except ImportError as error:
        print(f"{name}: not here ({error})")
