"""A second, independent reader of the capture file (src/capture/format.h): counters, threads, samples, ledger, end."""
import collections
import struct

MAGIC = b"GRNPROF\n"
CHUNK_MAGIC = 0x4B435047
META, MODULES, THREADS, COROS, TRACES, STACKS, SAMPLES, LEDGER, COUNTERS, END = range(1, 11)
COUNTER_NAMES = ["signals", "samples", "ring_full", "reentered", "foreign", "no_thread", "idle", "switching",
                 "truncated", "incomplete", "outside", "timer_failed", "lost_marks", "unsampled_ns"]
DROPS = COUNTER_NAMES[2:7]
TRUNCATED, INCOMPLETE, SWITCHING = 1, 2, 4  # enum gp_stack_flag

Sample = collections.namedtuple("Sample", "time_ns weight_ns coro thread stack trace")
Thread = collections.namedtuple("Thread", "index tid start_ns end_ns cpu_ns coro name")
Coro = collections.namedtuple("Coro", "id parent entry stack_lo stack_bytes birth_ns kind thread name")


class Capture:
    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        if data[:8] != MAGIC:
            raise ValueError(f"{path}: no capture")
        (self.version, header_bytes, _, self.start_realtime_ns, self.start_monotonic_ns, self.pid, self.ppid,
         self.frequency_hz, self.engine, _, _, self.session, _) = struct.unpack_from("<IIQQQIIIIII16sQ", data, 8)
        self.meta, self.threads, self.coros = {}, {}, {}
        self.stack_flags, self.samples = {}, []
        self.ledger = collections.defaultdict(lambda: [0, 0])  # coroutine -> CPU ns, switches
        self.counters, self.process_cpu_ns, self.own_cpu_ns, self.end = {}, 0, 0, None
        self.whole = True  # every chunk intact and in sequence
        self._read_chunks(data, header_bytes)

    def _read_chunks(self, data, at):
        expected = 0
        while at + 24 <= len(data):
            magic, kind, _, length, sequence, _ = struct.unpack_from("<IHHIIQ", data, at)
            if magic != CHUNK_MAGIC or at + 24 + length > len(data):
                self.whole = False
                return
            self.whole &= sequence == expected
            expected = sequence + 1
            self._read_payload(kind, data[at + 24:at + 24 + length])
            at += 24 + (length + 7 & ~7)
        self.whole &= at == len(data)

    def _read_payload(self, kind, data):
        if kind == SAMPLES:
            for item in struct.iter_unpack("<QQQIIII", data):
                self.samples.append(Sample(*item[:6]))
        elif kind == THREADS:
            for item in struct.iter_unpack("<IIQQQQ24s", data):
                self.threads[item[0]] = Thread(*item[:6], item[6].split(b"\0")[0].decode())
        elif kind == COROS:
            for item in struct.iter_unpack("<QQQQQQII48s", data):
                self.coros[item[0]] = Coro(*item[:8], item[8].split(b"\0")[0].decode())
        elif kind == LEDGER:
            for coro, _, _, cpu_ns, switches, _ in struct.iter_unpack("<QIIQQQ", data):
                self.ledger[coro][0] += cpu_ns
                self.ledger[coro][1] += switches
        elif kind == COUNTERS:
            _, self.process_cpu_ns, self.own_cpu_ns, count = struct.unpack_from("<QQQQ", data)
            values = struct.unpack_from(f"<{count}Q", data, 32)
            self.counters = dict(zip(COUNTER_NAMES, values))
        elif kind == END:
            self.end = struct.unpack_from("<QI", data)[1]
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
