# SPDX-License-Identifier: MIT
"""What a process has in memory that greenprof might have changed: its code, and where it calls by way of pointers."""
import functools
import hashlib
import os
import struct
import subprocess
import types

WORD, CHUNK, LOAD = 8, 1 << 20, 1
CORE = "libgreenprof-core"
SLOT_TYPES = ("R_X86_64_JUMP_SLOT", "R_X86_64_GLOB_DAT")
KERNELS = ("[vvar]", "[vvar_vclock]", "[vsyscall]")  # not to be read, or not the process' own


@functools.lru_cache(None)
def relocated(path):
    """Addresses in a module's file at which it keeps what the loader binds: its GOT."""
    text = subprocess.run(["readelf", "-rW", path], capture_output=True, text=True, check=False).stdout
    found = (line.split() for line in text.splitlines())
    return [int(words[0], 16) for words in found if len(words) > 2 and words[2] in SLOT_TYPES]


class Memory:
    """As it is at this moment."""

    def __init__(self, pid):
        self.mappings = []
        with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
            for line in file:
                fields = line.rstrip("\n").split(None, 5)
                low, high = (int(part, 16) for part in fields[0].split("-"))
                path = fields[5] if len(fields) > 5 else ""
                self.mappings.append(types.SimpleNamespace(low=low, high=high, rights=fields[1], offset=int(fields[2], 16), path=path))
        self.file = os.open(f"/proc/{pid}/mem", os.O_RDONLY)

    def close(self):
        os.close(self.file)

    def read(self, low, size):
        return os.pread(self.file, size, low)

    def word(self, at):
        return int.from_bytes(self.read(at, WORD), "little")

    def where(self, address):
        """The mapping that has an address, None if there is none."""
        return next((mapping for mapping in self.mappings if mapping.low <= address < mapping.high), None)

    def texts(self):
        """The bytes of every executable mapping but the core's."""
        sums = {}
        for mapping in self.mappings:
            if "x" in mapping.rights and CORE not in mapping.path and mapping.path not in KERNELS:
                total = hashlib.sha256()
                for low in range(mapping.low, mapping.high, CHUNK):
                    total.update(self.read(low, min(CHUNK, mapping.high - low)))
                sums[mapping.low, mapping.high, mapping.path] = total.hexdigest()
        return sums

    def modules(self):
        """Where each file is loaded that is a module, but the core."""
        return {mapping.path: mapping.low for mapping in self.mappings
                if mapping.offset == 0 and mapping.path.startswith("/") and CORE not in mapping.path and
                self.read(mapping.low, 4) == b"\x7fELF"}

    def slots(self):
        """What is in every slot of every module's GOT."""
        found = {}
        for path, low in self.modules().items():
            is_fixed = self.read(low + 16, 2) == b"\x02\0"  # ET_EXEC: its addresses are absolute
            for at in relocated(path):
                found[path, at] = self.word(at + (0 if is_fixed else low))
        return found

    def ends(self, low):
        """Where a module ends that is loaded at `low`, .bss included."""
        header = self.read(low, 64)
        is_fixed = header[16:18] == b"\2\0"
        at, size, count = int.from_bytes(header[32:40], "little"), *struct.unpack_from("<HH", header, 54)
        loaded = (struct.unpack("<II6Q", self.read(low + at + size * i, 56)) for i in range(count))
        return max(entry[3] + entry[6] for entry in loaded if entry[0] == LOAD) + (0 if is_fixed else low)

    def data(self):
        """The modules' data, as (from, to, file)."""
        for path, low in self.modules().items():
            high = self.ends(low)
            for mapping in self.mappings:
                start, end = max(mapping.low, low), min(mapping.high, high)
                if start < end and mapping.rights[0] == "r" and mapping.rights[2] != "x":
                    yield start, end, path

    def into_core(self):
        """Where the modules' data point into the core's code: (file, address)."""
        spans = [(mapping.low, mapping.high) for mapping in self.mappings if CORE in mapping.path and "x" in mapping.rights]
        found = []
        for start, end, path in self.data():
            for low in range(start, end & -WORD, CHUNK):
                words = memoryview(self.read(low, min(CHUNK, (end & -WORD) - low))).cast("Q")
                for first, last in spans:
                    found += [(os.path.basename(path), low + WORD * i) for i, word in enumerate(words) if first <= word < last]
        return found
