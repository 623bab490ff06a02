# SPDX-License-Identifier: MIT
"""The peer: gperftools' CPU profiler, preloaded."""
import glob
import struct

LIBRARY = "libprofiler.so.0"


def library():
    """Where it is, or None."""
    found = glob.glob("/usr/lib/*/" + LIBRARY) + glob.glob("/usr/lib/" + LIBRARY)
    return found[0] if found else None


def environment(path, hz):
    return {"CPUPROFILE": path, "CPUPROFILE_FREQUENCY": str(hz)}


def total_ns(path):
    """Samples times period, which is what pprof --text prints as the total.
    Source: gperftools docs/cpuprofile-fileformat.html: five header words, then records of count, depth, pcs."""
    with open(path, "rb") as file:
        data = file.read()
    words = struct.unpack_from(f"={len(data) // 8}Q", data)
    header, period_us, at, samples = words[1], words[3], 2 + words[1], 0
    assert words[0] == 0 and header >= 3
    while at + 2 < len(words) and words[at] != 0: # the trailer has count 0
        samples += words[at]
        at += 2 + words[at + 1]
    return samples * period_us * 1000
