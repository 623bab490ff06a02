# SPDX-License-Identifier: MIT
"""GREENPROF_OTEL_CONTEXT=1, as readers outside of the process see it: what runs on each thread, and what the process is."""
import collections
import os
import re
import struct
import subprocess
import sys
import unittest

import outside

HOST, GREENPROF = os.environ["OTEL_HOST"], os.environ["GREENPROF"]
THREADS, ENOUGH, CHANGING_MAX = 4, 500, 200000  # contexts of each kind that are compared
LIMIT_S = 120

Truth = collections.namedtuple("Truth", "tid changing shown trace span")


class Host:
    def __init__(self, *arguments, command=(), **environment):
        variables = {name: value for name, value in os.environ.items() if not name.startswith("GREENPROF_")}
        variables.update(environment)
        self.process = subprocess.Popen([*command, HOST, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env=variables)
        self.said = self.process.stdout.readline().split()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.communicate()

    def end(self):
        """Returns how many checks of its own were right, and how many wrong; and what it said on standard error."""
        out, error = self.process.communicate(timeout=LIMIT_S)
        right, wrong = map(int, out.split())
        return right, wrong, error


def truth(memory, address, thread):
    tid, changing, shown, trace, span = struct.unpack("<iii16s8s", memory.read(address + 40 * thread, 36))
    return Truth(tid, changing, shown, trace, span)


class Contexts(unittest.TestCase):
    def check(self, record, expected):
        if expected.shown:
            self.assertEqual(record, (expected.trace, expected.span, 1, 1, b""))
        else:
            self.assertTrue(record is None or record.valid != 1, record)

    def look(self, memory, address, pointers, stopped, threads):
        """Stop each thread, and compare what is shown of it with the truth. Returns {shown: how often}."""
        seen = collections.Counter()
        for thread, tid in enumerate(threads):
            signal = stopped.stop(tid)
            expected = truth(memory, address, thread)
            if expected.changing:
                seen["changing"] += 1
            else:
                self.check(pointers.record(tid), expected)
                seen[expected.shown] += 1
            stopped.go_on(tid, signal)
        return seen

    def test_threads_with_migrating_coroutines(self):
        with Host(str(THREADS), "60", GREENPROF_OTEL_CONTEXT="1") as host:
            address = int(host.said[1], 16)
            memory = outside.Memory(host.process.pid)
            threads = []
            while len(threads) < THREADS or 0 in threads:
                threads = [truth(memory, address, thread).tid for thread in range(THREADS)]
            try:
                stopped = outside.Stopped(threads)
            except PermissionError as error:
                print(f"SKIP: {error}")
                sys.exit(77)
            pointers, seen = outside.ThreadLocal(memory), collections.Counter()
            while min(seen[0], seen[1]) < ENOUGH and seen["changing"] < CHANGING_MAX:
                seen += self.look(memory, address, pointers, stopped, threads)
            stopped.end()
            right, wrong, error = host.end()
            memory.close()
        self.assertEqual(wrong, 0, error)
        self.assertGreater(right, ENOUGH)
        self.assertLess(seen["changing"], CHANGING_MAX, seen)

    def test_process_context(self):
        with Host("1", "3", GREENPROF_OTEL_CONTEXT="1", GREENPROF_SERVICE="shop api") as host:
            memory = outside.Memory(host.process.pid)
            (resource, attributes), = outside.process_contexts(memory)
            memory.close()
        instance = resource.pop("service.instance.id")
        self.assertRegex(instance, re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"))
        self.assertEqual(resource.pop("telemetry.sdk.version")[:1].isdigit(), True)
        self.assertEqual(resource, {"service.name": "shop_api", "telemetry.sdk.name": "greenprof",
                                    "telemetry.sdk.language": "cpp"})
        self.assertEqual(attributes, {"threadlocal.schema_version": "tlsdesc_v1_dev",
                                      "threadlocal.attribute_key_map": []})

    def test_forked_child(self):
        """It has a process context of its own, and its thread that of the thread that forked."""
        with Host("fork", GREENPROF_OTEL_CONTEXT="1") as host:
            child = int(host.said[2])
            memories = [outside.Memory(pid) for pid in (host.process.pid, child)]
            contexts = [outside.process_contexts(memory) for memory in memories]
            for memory in memories:
                memory.close()
            right, wrong, error = host.end()
        self.assertEqual([len(found) for found in contexts], [1, 1])
        names = [found[0][0]["service.name"] for found in contexts]
        self.assertEqual(names, [os.path.basename(HOST)] * 2)
        self.assertNotEqual(*(found[0][0]["service.instance.id"] for found in contexts))
        self.assertEqual((right, wrong), (1, 0), error)

    def test_under_run(self):
        """With a capture, under `greenprof run`: the same contexts."""
        capture = f"otel-{os.getpid()}.greenprof"
        self.addCleanup(lambda: os.path.exists(capture) and os.unlink(capture))
        with Host("2", "12", command=(GREENPROF, "run", "--quiet", "-o", capture, "--"), GREENPROF_OTEL_CONTEXT="1") as host:
            right, wrong, error = host.end()
        self.assertEqual(wrong, 0, error)
        self.assertGreater(right, 0)

    def test_not_asked_for(self):
        with Host("fork") as host:
            self.assertEqual(host.said, ["no", "contexts"])
            self.assertEqual(host.process.wait(LIMIT_S), 3)


if __name__ == "__main__":
    unittest.main()
