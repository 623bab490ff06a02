# SPDX-License-Identifier: MIT
"""Garbage is collected while an exact profile that runs is read: its finalizers call functions that were never called before."""
import gc
import os
import pstats
import sys

import greenprof


def call(name):
    exec(compile(f"def {name}():\n  return len('x')\n{name}()", name, "exec"), {})


class Garbage:
    def __init__(self, number):
        self.me, self.number = self, number

    def __del__(self):
        for i in range(8):
            call(f"finalized_{self.number}_{i}")


path = os.path.join(sys.argv[1], "profile.prof")
profile = greenprof.Profile(mode="exact")
profile.start()
for i in range(300):
    call(f"function_{i}")
for i in range(40):
    gc.collect()
    gc.disable()
    Garbage(i)
    gc.set_threshold(gc.get_count()[0] + 20 + 30 * i)  # a little later each time
    gc.enable()
    profile.dump(path, "pstats")
    assert gc.isenabled()
    gc.disable()
    rows = {key[2]: row for key, row in pstats.Stats(path).stats.items()}
    assert all(rows[f"function_{i}"][:2] == (1, 1) for i in range(300))
    for name, row in rows.items():
        assert sum(counts[0] for counts in row[4].values()) <= row[1], (name, row)
profile.stop()
print("end")
