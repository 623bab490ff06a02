"""What people do with cProfile.Profile and eventlet.green.profile.Profile, with greenprof.Profile. Argument: a directory."""
import cProfile
import io
import os
import pstats
import sys
import threading
import time
from contextlib import redirect_stdout

import greenprof

directory = sys.argv[1]


def work(ms=30):
    end = time.thread_time() + ms / 1000
    while time.thread_time() < end:
        pass
    return ms


def names(stats):
    return {function[2] for function in stats.stats}


for make in (greenprof.Profile, cProfile.Profile):  # the same calls, both ways
    profile = make()
    profile.enable()
    work()
    profile.disable()
    profile.create_stats()
    assert "work" in names(pstats.Stats(profile)), names(pstats.Stats(profile))
    assert profile.runcall(work, 20) == 20
    assert make().run("work(20)") is not None
    assert make().runctx("x = work(n)", globals(), {"n": 20}) is not None
    with make() as profile:
        work()
    profile.dump_stats(os.path.join(directory, "with.prof"))
    assert "work" in names(pstats.Stats(os.path.join(directory, "with.prof")))
    with redirect_stdout(io.StringIO()) as out:
        profile.print_stats("cumulative")
    assert "(work)" in out.getvalue()

profile = greenprof.Profile(time.perf_counter)  # eventlet.green.profile.Profile(timer)
profile.start()
work()
profile.stop()
assert profile.total > 0.02, profile.total
profile.start()
work()
profile.stop()
assert profile.total > 0.05, profile.total


@greenprof.Profile()
def decorated():
    return work(10)


assert decorated() == 10 and decorated.__name__ == "decorated"

# Of the thread, of the process, and several at once.
other = threading.Thread(target=work, args=(200,))
whole, mine = greenprof.Profile(scope="process"), greenprof.Profile(scope="thread")
whole.start()
mine.start()
other.start()
work(100)
mine.stop()
other.join()
whole.stop()
assert 0.09 < mine.total < 0.16, mine.total
assert 0.28 < whole.total < 0.4, whole.total
assert "work" in names(pstats.Stats(whole_path)) if (whole_path := os.path.join(directory, "whole.prof")) and \
    whole.dump_stats(whole_path) is None else False

# Children of fork go on for themselves; greenprof does not survive exec as a signal that kills.
profile = greenprof.Profile(scope="process")
profile.start()
child = os.fork()
if child == 0:
    work(50)
    profile.stop()
    os._exit(0 if profile.total >= 0.05 else 1)
assert os.waitpid(child, 0)[1] == 0
for _ in range(20):
    child = os.fork()
    if child == 0:
        work(3)
        os.execv(sys.executable, [sys.executable, "-S", "-E", "-c", "pass"])
    assert os.waitpid(child, 0)[1] == 0
profile.stop()

for wrong in ({"scope": "all"}, {"frequency": 0}, {"frequency": 1.5}, {"clock": "sun"}, {"mode": "some"}):
    try:
        greenprof.Profile(**wrong)
        raise SystemExit(f"accepted {wrong}")
    except ValueError as error:
        assert str(error)
try:
    greenprof.Profile().dump("/tmp/none.prof")
    raise SystemExit("dumped what never ran")
except ValueError:
    pass
try:
    profile.dump("/nonexistent/directory/x.prof")
    raise SystemExit("dumped into nowhere")
except FileNotFoundError as error:
    assert error.filename == "/nonexistent/directory/x.prof"
print("all as expected")
