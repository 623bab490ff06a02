# SPDX-License-Identifier: MIT
"""A reader outside of the process, as OTEP 4719 and OTEP 4947 describe it: it knows nothing of greenprof.

Threads are stopped by ptrace(2); the thread-local is found by its name in .dynsym and by the TLS relocation of its library.
Source: the x86-64 psABI; Drepper: ELF Handling For Thread-Local Storage; Oliva: RFC TLSDESC-x86.
"""
import collections
import ctypes
import os
import re
import struct

POINTER = b"otel_thread_ctx_v1"
R_DTPMOD64, R_TLSDESC = 16, 36
PTRACE_PEEKUSER, PTRACE_CONT, PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 3, 7, 17, 0x4206, 0x4207
FS_BASE = 21 * 8  # in struct user
WALL = 0x40000000  # __WALL: threads, too

Mapping = collections.namedtuple("Mapping", "low name")
Record = collections.namedtuple("Record", "trace span valid flags attributes")

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request, tid, address=0):
    ctypes.set_errno(0)
    result = libc.ptrace(request, tid, address, 0)
    if result == -1 and ctypes.get_errno():
        raise OSError(ctypes.get_errno(), f"ptrace({request:#x}): {os.strerror(ctypes.get_errno())}")
    return result & (1 << 64) - 1


class Memory:
    def __init__(self, pid):
        self.pid = pid
        self.file = os.open(f"/proc/{pid}/mem", os.O_RDONLY)

    def close(self):
        os.close(self.file)

    def read(self, address, size):
        data = os.pread(self.file, size, address)
        assert len(data) == size
        return data

    def word(self, address):
        return struct.unpack("<Q", self.read(address, 8))[0]

    def mappings(self):
        with open(f"/proc/{self.pid}/maps", encoding="utf-8") as lines:
            for line in lines:
                words = line.split(maxsplit=5)
                yield Mapping(int(words[0].split("-")[0], 16), words[5].strip() if len(words) > 5 else "")


# --- the thread-local

Section = collections.namedtuple("Section", "name type flags address offset size link info align entry")


def sections(image):
    start, = struct.unpack_from("<Q", image, 0x28)
    size, count = struct.unpack_from("<HH", image, 0x3a)
    return [Section(*struct.unpack_from("<IIQQQQIIQQ", image, start + size * i)) for i in range(count)]


def symbol_number(image, listed):
    """The number in .dynsym of the thread-local; None: this file has none."""
    for table in (section for section in listed if section.type == 11):  # SHT_DYNSYM
        names = listed[table.link].offset
        for number in range(table.size // table.entry):
            name, info, _, index, _, _ = struct.unpack_from("<IBBHQQ", image, table.offset + number * table.entry)
            start = names + name
            if index != 0 and info & 15 == 6 and image[start:image.index(b"\0", start)] == POINTER:  # STT_TLS
                return number
    return None


def relocation(image):
    """(type, offset from the load address) of the words by which the library itself finds the thread-local."""
    listed = sections(image)
    number = symbol_number(image, listed)
    for table in (section for section in listed if section.type == 4 and number is not None):  # SHT_RELA
        for at in range(table.offset, table.offset + table.size, 24):
            offset, info, _ = struct.unpack_from("<QQq", image, at)
            if info >> 32 == number and info & 0xffffffff in (R_DTPMOD64, R_TLSDESC):
                return info & 0xffffffff, offset
    return None


class ThreadLocal:
    """Where each thread of a process has its pointer."""

    def __init__(self, memory):
        self.memory = memory
        for mapping in memory.mappings():
            if mapping.name.startswith("/") and ".so" in mapping.name and os.path.exists(mapping.name):
                with open(mapping.name, "rb") as file:
                    image = file.read()
                found = relocation(image) if image.startswith(b"\x7fELF") and POINTER in image else None
                if found:
                    self.kind, self.words = found[0], mapping.low + found[1]
                    return
        raise LookupError("no library has the thread-local")

    def address(self, tid):
        """Of a thread that is stopped; None: it has none yet."""
        base = ptrace(PTRACE_PEEKUSER, tid, FS_BASE)
        module, offset = self.memory.word(self.words), self.memory.word(self.words + 8)
        if self.kind == R_TLSDESC:
            if offset >= 1 << 63:  # in static TLS: the second word is its place, below the thread's
                return (base + offset) & (1 << 64) - 1
            module, offset = self.memory.word(offset), self.memory.word(offset + 8)
        block = self.memory.word(self.memory.word(base + 8) + 16 * module)  # of the dynamic thread vector
        return block + offset if block != (1 << 64) - 1 else None

    def record(self, tid):
        """The record of a thread that is stopped; None: it has none."""
        address = self.address(tid)
        record = self.memory.word(address) if address else 0
        if record == 0:
            return None
        trace, span, valid, flags, size = struct.unpack("<16s8sBBH", self.memory.read(record, 28))
        return Record(trace, span, valid, flags, self.memory.read(record + 28, size))


class Stopped:
    """Threads that are traced, each stopped for as long as a `with` lasts."""

    def __init__(self, tids):
        self.tids = tids
        for tid in tids:
            ptrace(PTRACE_SEIZE, tid)

    def stop(self, tid):
        ptrace(PTRACE_INTERRUPT, tid)
        _, status = os.waitpid(tid, WALL)
        return os.WSTOPSIG(status) if os.WIFSTOPPED(status) and status >> 16 == 0 else 0

    def go_on(self, tid, signal):
        if libc.ptrace(PTRACE_CONT, tid, 0, signal) != 0:
            raise OSError(ctypes.get_errno(), "PTRACE_CONT")

    def end(self):
        for tid in self.tids:
            signal = self.stop(tid)
            if libc.ptrace(PTRACE_DETACH, tid, 0, signal) != 0:
                raise OSError(ctypes.get_errno(), "PTRACE_DETACH")


# --- the process context

def fields(message):
    """[(number, value)] of a protobuf message; all that stands in a context has a length."""
    at, found = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if not byte & 0x80:
                return value

    while at < len(message):
        key = varint()
        assert key & 7 == 2, key
        size = varint()
        assert at + size <= len(message)
        found.append((key >> 3, message[at:at + size]))
        at += size
    return found


def any_value(message):
    (number, value), = fields(message)
    return value.decode() if number == 1 else [any_value(item) for _, item in fields(value)] if number == 5 else None


def attributes(messages):
    pairs = [dict(fields(message)) for message in messages]
    named = {pair[1].decode(): any_value(pair[2]) for pair in pairs}
    assert len(named) == len(pairs), "a key twice"
    return named


def process_contexts(memory):
    """[(resource, attributes)] of all process contexts that there are: one at most, if all is well."""
    found = []
    for mapping in memory.mappings():
        if not re.match(r"(\[anon_shmem:OTEL_CTX\]|\[anon:OTEL_CTX\]|/memfd:OTEL_CTX)", mapping.name):
            continue
        signature, version, size, published, payload = struct.unpack("<8sIIQQ", memory.read(mapping.low, 32))
        assert (signature, version) == (b"OTEL_CTX", 2) and published != 0
        message = fields(memory.read(payload, size))
        resource, = [value for number, value in message if number == 1]
        found.append((attributes(value for number, value in fields(resource) if number == 1),
                      attributes(value for number, value in message if number == 2)))
    return found
