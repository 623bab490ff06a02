# SPDX-License-Identifier: MIT
"""Processes with keys: requests that none of them signed are refused and counted, and switch and show nothing."""
import errno
import os
import random
import subprocess
import unittest

from support import SERVICE, Service
from wire import DETACH, DUMP, HELLO, MAC_BYTES, NONCE_BYTES, START, STATUS, STOP, TOP, VERSION, Asking, error_of, request, sign

KEY, OLD, WRONG = "new key of the service", "old", "none of them"
# Sets its own keys by prof_hmac_keys() in between, and forks.
PROGRAM = """
import ctypes, os, sys
library = ctypes.CDLL(os.environ["LIBRARY"])
if len(sys.argv) > 1 and os.fork() == 0:
    os.read(0, 1)
    os._exit(0)
print("ready", flush=True)
for line in sys.stdin:
    print("done", -library.prof_hmac_keys(line.strip().encode()), flush=True)
"""


class Keys(Asking):
    def setUp(self):
        super().setUp()
        for variable in ("GREENPROF_HMAC_KEYS", "GREENPROF_HMAC_KEYS_FILE"):
            self.env.pop(variable, None)

    def have(self, keys=None, file=None):
        """What the next commands have."""
        for variable, value in (("GREENPROF_HMAC_KEYS", keys), ("GREENPROF_HMAC_KEYS_FILE", file)):
            self.env.pop(variable, None)
            if value is not None:
                self.env[variable] = value

    def write(self, name, text, mode=0o600):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def service(self, *options, keys=KEY, **environment):
        if keys is not None:
            environment["GREENPROF_HMAC_KEYS"] = keys
        return Service(self, SERVICE, *(options or ("--control", "-o", "capture")), **environment)

    def greet(self, service):
        """A connection, and its nonce."""
        one = self.connect(service)
        reply = self.exchange(one, request(HELLO))
        self.assertEqual((error_of(reply), len(reply) > NONCE_BYTES), (0, True))
        return one, reply[-NONCE_BYTES:]

    def ask(self, service, packet, key=KEY.encode()):
        """The error of the reply to a signed request."""
        one, nonce = self.greet(service)
        reply = self.exchange(one, sign(key, nonce, packet))
        one.close()
        return error_of(reply)

    def refused_count(self, service):
        self.have(KEY)
        return self.status(service.pid)["refused_requests"]

    def check_all_refused(self, text, pid, *more):
        """Each command that asks by the socket."""
        commands = (["start", pid, "-o", "other"], ["status", pid], ["status", pid, "--json"], ["dump", pid], ["top", pid, "--once"],
                    ["stop", pid], ["detach", pid], *more)
        for command in commands:
            self.refused(text, *command)
        self.assertFalse(os.path.exists(os.path.join(self.dir, "other")))
        return len(commands)

    def test_right_key(self):
        service = self.service("--stopped", "-o", "capture")
        for place in ({"keys": KEY}, {"file": self.write("keys", f"{KEY}\n")}, {"file": self.write("keys.640", f" {KEY} ,x", 0o640)}):
            self.have(**place)
            self.do("start", service.pid)
            self.assertEqual(self.status(service.pid)["state"], "recording")
            self.do("top", service.pid, "--once", "--interval", 10)
            self.do("dump", service.pid)
            self.do("stop", service.pid)
        self.assertEqual(self.refused_count(service), 0)
        self.assertNotIn("refused", self.do("status", service.pid))

    def test_no_key_and_a_wrong_one(self):
        service = self.service()
        self.have()
        count = self.check_all_refused("it asks for a key: set GREENPROF_HMAC_KEYS_FILE", service.pid, ["attach", service.pid])
        self.have(WRONG)
        count += self.check_all_refused("none of those that it accepts", service.pid, ["attach", service.pid])
        self.assertEqual(self.refused_count(service), count)
        self.assertIn(f"  refused  {count} requests", self.do("status", service.pid))
        self.assertEqual(self.status(service.pid)["state"], "recording")

    def test_nothing_is_shown(self):
        service = self.service()
        for packet in (request(), request(TOP), request(STOP), request(DUMP), request(START), request(DETACH)):
            one = self.connect(service)
            reply = self.exchange(one, packet)
            self.assertEqual(error_of(reply), -errno.ENOKEY)
            self.assertEqual(reply[12:], bytes(len(reply) - 12))
            self.assertEqual(self.exchange(one, packet), b"")  # it hung up
        self.assertEqual(self.refused_count(service), 6)

    def test_two_keys(self):
        """Keys that are changed without a gap: all are accepted, and the first of the command's signs."""
        service = self.service(keys=f"{KEY}, {OLD}")
        for keys in (KEY, OLD, f"{OLD},{WRONG}", f"{KEY},{OLD}"):
            self.have(keys)
            self.assertEqual(self.status(service.pid)["state"], "recording")
        self.have(f"{WRONG},{KEY}")
        self.refused("none of those that it accepts", "status", service.pid)
        self.assertEqual(self.refused_count(service), 1)

    def test_keys_that_cannot_be_read(self):
        """By the process: it lets nobody in. By the command: it says so, and asks nothing."""
        for number, bad in enumerate(("absent", self.write("open", KEY, 0o644), self.write("empty", "\n"))):
            self.have()
            service = self.service("--control", "-o", f"capture.{number}", keys=None, GREENPROF_HMAC_KEYS_FILE=bad)
            self.have(KEY)
            self.check_all_refused("it asks for a key, and cannot read its own", service.pid)
        service = self.service("--control", "-o", "capture.keys")
        for file, text in (("absent", "absent: No such file"), (self.write("open", KEY, 0o644), "open: other users may read"),
                           (self.write("written", KEY, 0o602), "other users may read or write"), (self.write("empty", ""), "no key in it"),
                           (self.write("long", "x" * 257), "256 bytes")):
            self.have(file=file)
            self.refused(text, "status", service.pid)
        self.have(",")
        self.refused("GREENPROF_HMAC_KEYS: there is no key", "status", service.pid)
        self.assertEqual(self.refused_count(service), 0)

    def test_file_of_the_process(self):
        service = self.service(keys=None, GREENPROF_HMAC_KEYS_FILE=self.write("keys", f"{KEY}\n{OLD}\n"))
        self.have(OLD)
        self.assertEqual(self.status(service.pid)["state"], "recording")
        self.have()
        self.refused("asks for a key", "status", service.pid)

    def test_key_that_nobody_asks_for(self):
        service = self.service(keys=None)
        self.have(KEY)
        self.assertEqual(self.status(service.pid)["state"], "recording")
        self.have()
        self.assertEqual(self.status(service.pid)["state"], "recording")

    def test_replay(self):
        service = self.service()
        one, nonce = self.greet(service)
        recorded = sign(KEY.encode(), nonce, request(STOP))
        self.assertEqual(error_of(self.exchange(one, recorded)), 0)
        self.assertEqual(self.exchange(one, recorded), b"")  # on the same connection
        self.have(KEY)
        self.do("start", service.pid, "-o", "second")
        other, another = self.greet(service)
        self.assertNotEqual(nonce, another)
        self.assertEqual(error_of(self.exchange(other, recorded)), -errno.EKEYREJECTED)
        self.assertEqual(self.answer(service, recorded), -errno.ENOKEY)  # without a nonce
        third, _ = self.greet(service)
        self.assertEqual(error_of(self.exchange(third, request(HELLO))), -errno.EINVAL)  # a second one
        self.assertEqual(self.exchange(third, request(HELLO)), b"")
        self.assertEqual(self.status(service.pid)["state"], "recording")
        self.assertEqual(self.refused_count(service), 3)

    def test_nonces_are_not_repeated(self):
        service = self.service()
        nonces = {self.greet(service)[1] for _ in range(30)}
        self.assertEqual(len(nonces), 30)
        for position in range(NONCE_BYTES):
            self.assertGreater(len({nonce[position] for nonce in nonces}), 1)

    def test_truncated_and_changed(self):
        """Each part of the message is signed; what is short is not even answered."""
        service = self.service()
        lengths, places = (1, 12, 27, 28, 3000, len(request()) - 1), (*range(8, 28), 28, 29, 3059, 3060, 3067)
        for length in lengths:
            one, nonce = self.greet(service)
            self.assertEqual(self.exchange(one, sign(KEY.encode(), nonce, request(STOP))[:length]), b"", length)
        for place in (*places, *range(len(request()) - MAC_BYTES, len(request()))):
            one, nonce = self.greet(service)
            packet = bytearray(sign(KEY.encode(), nonce, request(STOP)))
            packet[place] ^= 1 << place % 8
            if packet[8:12] == request(HELLO)[8:12]:
                continue
            self.assertEqual(error_of(self.exchange(one, bytes(packet))), -errno.EKEYREJECTED, place)
        one, nonce = self.greet(service)
        packet = sign(KEY.encode(), nonce, request(STOP, version=VERSION - 1))
        self.assertEqual(error_of(self.exchange(one, packet)), -errno.EPROTONOSUPPORT)
        self.have(KEY)
        self.assertEqual(self.status(service.pid)["state"], "recording")
        self.assertGreaterEqual(self.refused_count(service), len(lengths) + len(places) + MAC_BYTES)

    def test_garbage(self):
        service = self.service()
        chance = random.Random(7)
        sent = 0
        for _ in range(300):
            one, nonce = self.greet(service)
            packet = bytearray(sign(chance.choice((KEY.encode(), b"", WRONG.encode())), nonce, request(chance.randrange(8))))
            for _ in range(chance.randrange(1, 20)):
                packet[chance.randrange(8, len(packet))] = chance.randrange(256)
            packet = chance.choice((bytes(packet), bytes(packet[:chance.randrange(1, len(packet))]), chance.randbytes(len(packet)),
                                    chance.randbytes(chance.randrange(1, 5000))))
            reply = self.exchange(one, packet)
            one.close()
            self.assertNotEqual(error_of(reply), 0)
            self.assertEqual(reply[12:], bytes(max(len(reply) - 12, 0)))
            sent += 1
        self.assertEqual(self.refused_count(service), sent)
        self.assertEqual(self.status(service.pid)["state"], "recording")
        self.assertEqual(self.ask(service, request(STOP)), 0)
        self.assertEqual(self.status(service.pid)["state"], "stopped")

    def test_silence_after_the_nonce(self):
        service = self.service()
        one, _ = self.greet(service)
        self.assertEqual(one.recv(1), b"")  # it was let go
        self.assertEqual(self.ask(service, request(STATUS)), 0)

    @unittest.skipIf(os.environ["SANITIZED"], "a sanitizer cannot be loaded into a program that was built without it")
    def test_program_that_sets_keys(self):
        """And its child, which has the keys of its parent."""
        service = Service(self, ["/usr/bin/python3", "-c", PROGRAM], "--control", "-o", "capture")
        self.assertEqual(self.status(service.pid)["state"], "recording")
        for keys, good, bad in ((KEY, KEY, None), (f"{OLD},{KEY}", OLD, WRONG), (OLD, OLD, KEY)):
            self.assertEqual(service.tell(keys, "done"), [0])
            self.have(good)
            self.assertEqual(self.status(service.pid)["state"], "recording")
            self.have(bad)
            self.refused("key", "status", service.pid)
        self.assertEqual(service.tell("x" * 300, "done"), [errno.E2BIG])  # the keys are what they were
        self.have(OLD)
        self.assertEqual(self.status(service.pid)["state"], "recording")
        service.tell("", "done")
        self.have()
        self.assertEqual(self.status(service.pid)["state"], "recording")

    @unittest.skipIf(os.environ["SANITIZED"], "a sanitizer cannot be loaded into a program that was built without it")
    def test_child(self):
        service = Service(self, ["/usr/bin/python3", "-c", PROGRAM, "fork"], "--control", "-o", "capture", GREENPROF_HMAC_KEYS=KEY)
        with open(f"/proc/{service.pid}/task/{service.pid}/children", encoding="ascii") as file:
            child, = map(int, file.read().split())
        self.wait_until(lambda: self.socket_of(child), "the child has a socket")
        self.refused("asks for a key", "status", child)
        self.have(KEY)
        self.assertEqual(self.status(child)["refused_requests"], 1)

    def test_attach(self):
        """To a process whose environment has keys: none but their owner, and nothing is loaded before."""
        for place in ({"GREENPROF_HMAC_KEYS": f"{KEY},{OLD}"}, {"GREENPROF_HMAC_KEYS_FILE": os.path.basename(self.write("keys", f"{KEY}\n{OLD}"))}):
            bare = subprocess.Popen(SERVICE, env=dict(self.env, **place), cwd=self.dir, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.addCleanup(bare.communicate)
            self.assertEqual(bare.stdout.readline(), "ready\n")
            self.have()
            self.refused("asks for a key", "attach", bare.pid, "-o", "none")
            self.have(WRONG)
            self.refused("none of those that it accepts", "attach", bare.pid, "-o", "none")
            self.assertNotIn(b"greenprof-core", self.content(f"/proc/{bare.pid}/maps"))
            self.have(OLD)
            self.do("attach", bare.pid, "-o", f"capture.{bare.pid}")
            self.have()
            count = self.check_all_refused("asks for a key", bare.pid, ["attach", bare.pid])
            self.assertEqual(self.refused_count(bare), count)
            self.do("detach", bare.pid)
            self.have(OLD)
            self.do("attach", bare.pid, "-o", f"again.{bare.pid}")  # the keys are read anew
            self.have(WRONG)
            self.refused("none of those", "detach", bare.pid)
            self.have(KEY)
            self.do("detach", bare.pid)
            self.assertFalse(os.path.exists(os.path.join(self.dir, "none")))
            self.have()


if __name__ == "__main__":
    unittest.main()
