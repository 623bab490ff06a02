# SPDX-License-Identifier: MIT
"""A second, independent reader of the capture file (src/capture/format.h): counters, threads, samples, ledger, end."""
import array
import collections
import ctypes
import itertools
import os
import re
import struct

MAGIC = b"GRNPROF\n"
CHUNK_MAGIC = 0x4B435047
META, MODULES, THREADS, COROS, TRACES, STACKS, SAMPLES, LEDGER, COUNTERS, END = range(1, 11)
HOGS, ORIGINS, SPANS = 12, 18, 19
RECORD_BYTES = {LEDGER: 112, ORIGINS: 24}  # of those that have grown
# The list that the program is made of: number, ID, key, what is lost.
with open(os.path.join(os.path.dirname(__file__), "../../src/model/counters.h")) as counters_list:
    LISTED = re.findall(r"X\( ?(\d+), \w+, (?:drop_)?(\w+), (\w+),", counters_list.read())
COUNTER_NAMES = {int(number): name for number, name, _ in LISTED}
DROPS = [name for _, name, lost in LISTED if lost in ("SIGNAL", "NO_SAMPLE")]
PACKED, ZSTD = 1, 2  # enum gp_chunk_flag
TRUNCATED, INCOMPLETE, SWITCHING = 1, 2, 4  # enum gp_stack_flag

Wait = collections.namedtuple("Wait", "kind time_ns weight_ns coro thread stack trace")
Sample = collections.namedtuple("Sample", "time_ns weight_ns coro thread stack trace")
Thread = collections.namedtuple("Thread", "index tid start_ns end_ns cpu_ns coro name")
Span = collections.namedtuple("Span", "id parent coro end_coro start_ns end_ns cpu_ns slice_ns blocked_ns ready_ns parked_ns"
                              " waiting_ns switches trace thread stack kind flags name fields")
Hog = collections.namedtuple("Hog", "id coro start_ns duration_ns trace thread")
Coro = collections.namedtuple("Coro", "id parent entry stack_lo stack_bytes birth_ns kind thread name")


def decompress(data):
    """One zstd frame; Debian's Python 3.11 has no module for it, but dpkg needs the library."""
    library = ctypes.CDLL("libzstd.so.1")
    library.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
    library.ZSTD_decompress.restype = ctypes.c_size_t
    size = library.ZSTD_getFrameContentSize(data, ctypes.c_size_t(len(data)))
    out = ctypes.create_string_buffer(max(size, 1))
    got = library.ZSTD_decompress(out, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data)))
    if got != size:
        raise ValueError("bad zstd frame")
    return out.raw[:size]


def unpack(data):
    """Packed columns back into records, with their size."""
    count, record_bytes, _ = struct.unpack_from("<IHH", data)
    words = record_bytes // 4
    at = 8 + 8 * words
    records = array.array("I", bytes(count * record_bytes))
    for word in range(words):
        base, width, is_delta, _ = struct.unpack_from("<IBBH", data, 8 + 8 * word)
        kept = bytearray(4 * count)
        for plane in range(width):
            kept[plane::4] = data[at:at + count]
            at += count
        column = array.array("I", kept)
        if is_delta:
            column = list(itertools.accumulate((step >> 1 ^ -(step & 1) for step in column), initial=base))[1:]
            base = 0
        if base or is_delta:
            column = array.array("I", [base + value & 0xFFFFFFFF for value in column])
        records[word::words] = column
    if at != len(data):
        raise ValueError("bad columns")
    return records.tobytes(), record_bytes


def widen(data, record_bytes, now_bytes):
    """Records of an earlier version, which are shorter, with zeros at their ends."""
    return b"".join(data[at:at + record_bytes].ljust(now_bytes, b"\0") for at in range(0, len(data), record_bytes))


class Capture:
    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        if data[:8] != MAGIC:
            raise ValueError(f"{path}: no capture")
        (self.version, header_bytes, _, self.start_realtime_ns, self.start_monotonic_ns, self.pid, self.ppid,
         self.frequency_hz, self.engine, _, _, self.session, _) = struct.unpack_from("<IIQQQIIIIII16sQ", data, 8)
        self.meta, self.threads, self.coros = {}, {}, {}
        self.origins = {}  # coroutine -> stack of its creator
        self.traces, self.spans = {0: ""}, []  # trace ids in hex by number
        self.stack_flags, self.samples, self.waits = {}, [], []
        self.ledger = collections.defaultdict(lambda: [0, 0])  # coroutine -> CPU ns, switches
        self.longest_ns = collections.defaultdict(int)  # coroutine -> its longest slice
        self.hogs = []
        self.counters, self.process_cpu_ns, self.own_cpu_ns, self.end, self.end_ns = {}, 0, 0, None, 0
        self.whole = True  # every chunk intact and in sequence
        self._read_chunks(data, header_bytes)

    def _read_chunks(self, data, at):
        expected = 0
        while at + 24 <= len(data):
            magic, kind, flags, length, sequence, _ = struct.unpack_from("<IHHIIQ", data, at)
            if magic != CHUNK_MAGIC or at + 24 + length > len(data):
                self.whole = False
                return
            self.whole &= sequence == expected
            expected = sequence + 1
            payload = data[at + 24:at + 24 + length]
            payload = decompress(payload) if flags & ZSTD else payload
            record_bytes = 0
            if flags & PACKED:
                payload, record_bytes = unpack(payload)
            if 0 < record_bytes < RECORD_BYTES.get(kind, 0):
                payload = widen(payload, record_bytes, RECORD_BYTES[kind])
            self._read_payload(kind, payload)
            at += 24 + (length + 7 & ~7)
        self.whole &= at == len(data)

    def _read_payload(self, kind, data):
        if kind == SAMPLES:
            for item in struct.iter_unpack("<QQQIIII", data):
                if item[6] == 0:  # on-CPU
                    self.samples.append(Sample(*item[:6]))
                else:
                    self.waits.append(Wait(item[6], *item[:6]))
        elif kind == THREADS:
            for item in struct.iter_unpack("<IIQQQQ24s", data):
                self.threads[item[0]] = Thread(*item[:6], item[6].split(b"\0")[0].decode())
        elif kind == COROS:
            for item in struct.iter_unpack("<QQQQQQII48s", data):
                self.coros[item[0]] = Coro(*item[:8], item[8].split(b"\0")[0].decode())
        elif kind == ORIGINS:
            self.origins.update((coro, stack) for coro, stack, *_ in struct.iter_unpack("<QIIQ", data))
        elif kind == LEDGER:
            for coro, _, _, cpu_ns, switches, *_, longest_ns, _, _ in struct.iter_unpack("<QIIqQQQQQQQQQQQ", data):  # CPU: a difference
                self.longest_ns[coro] = max(self.longest_ns[coro], longest_ns)
                self.ledger[coro][0] += cpu_ns
                self.ledger[coro][1] += switches
        elif kind == COUNTERS:
            _, self.process_cpu_ns, self.own_cpu_ns, count = struct.unpack_from("<QQQQ", data)
            values = struct.unpack_from(f"<{count}Q", data, 32)
            self.counters = {COUNTER_NAMES[i]: value for i, value in enumerate(values)}
        elif kind == END:
            self.end_ns, self.end = struct.unpack_from("<QI", data)
        elif kind == TRACES:
            for number, _, trace in struct.iter_unpack("<II16s", data):
                self.traces[number] = trace.hex()
        elif kind == SPANS:
            self._read_spans(data)
        elif kind == HOGS:
            self._read_hogs(data)
        elif kind == STACKS:
            self._read_stacks(data)
        elif kind == META:
            self._read_meta(data)

    def _read_stacks(self, data):
        at = 0
        while at < len(data):
            number, depth, flags = struct.unpack_from("<IHH", data, at)
            self.stack_flags[number] = flags
            at += 8 + 8 * depth

    def _read_hogs(self, data):
        at = 0
        while at < len(data):
            *item, stacks, _ = struct.unpack_from("<QQQQIIII", data, at)
            self.hogs.append(Hog(*item))
            at += 48 + 16 * stacks

    def _read_spans(self, data):
        at = 0
        while at < len(data):
            *item, name_len, _, fields_len = struct.unpack_from("<13QIIIHHHHI", data, at)
            name, fields = data[at + 128:at + 128 + name_len], data[at + 128 + name_len:at + 128 + name_len + fields_len]
            texts = fields.decode().split("\0")[:-1]
            item[13] = self.traces[item[13]]
            self.spans.append(Span(*item, name.decode(), dict(zip(texts[::2], texts[1::2]))))
            at += 128 + (name_len + fields_len + 7 & ~7)

    def _read_meta(self, data):
        at = 0
        while at < len(data):
            key_len, _, value_len = struct.unpack_from("<HHI", data, at)
            key = data[at + 8:at + 8 + key_len].decode()
            self.meta[key] = data[at + 8 + key_len:at + 8 + key_len + value_len]
            at += 8 + (key_len + value_len + 7 & ~7)

    @property
    def drops(self):
        return sum(self.counters.get(name, 0) for name in DROPS)

    @property
    def sampled_ns(self):
        return sum(sample.weight_ns for sample in self.samples)
