# SPDX-License-Identifier: MIT
"""What a service says no to, and what it does not mind: strangers, garbage, crowds, and those that never read."""
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import unittest

from support import GREENPROF, SERVICE, Service
from wire import PATH_SIZE, SPANS_SIZE, START, STATUS, STOP, TOP, VERSION, Asking, request

STRANGER = 65534


class Refusals(Asking):
    def test_processes(self):
        self.refused("no such process", "start", 4194303)
        other = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        for command in ("start", "stop", "dump", "status", "top"):
            self.refused("greenprof run --control", command, other.pid)
            self.refused("is no process id", command, "1x", status=2)
            self.refused("missing PID", command, status=2)
        self.assertIsNone(other.poll())
        service = Service(self, SERVICE, "-o", "capture")  # nothing was asked for
        self.refused("greenprof run --control", "status", service.pid)
        self.assertEqual(self.sockets(), [])

    def test_stopped_process(self):
        service = Service(self, SERVICE, "--control", "-o", "capture")
        os.kill(service.pid, signal.SIGSTOP)
        self.refused("the process is stopped", "status", service.pid)
        os.kill(service.pid, signal.SIGCONT)
        self.assertEqual(self.status(service.pid)["state"], "recording")

    def test_bad_settings(self):
        for variable, value in (("GREENPROF_CONTROL", "yes"), ("GREENPROF_TOGGLE_SIGNAL", "KILL")):
            self.env[variable] = value
            self.refused(variable, "run", "-o", "capture", "true")
            del self.env[variable]

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_another_user(self):
        os.chmod(self.dir, 0o755)
        service = Service(self, SERVICE, "--control", "-o", "capture")
        name, = self.socket_of(service.pid)
        path = os.path.join(self.place, name)
        self.assertEqual((os.stat(self.place).st_mode & 0o777, os.stat(path).st_mode & 0o777), (0o700, 0o600))
        copy = shutil.copy(GREENPROF, self.dir + "/greenprof-command")  # the build may lie where others may not go
        become = {"preexec_fn": lambda: os.setuid(STRANGER)}
        capture = os.path.join(self.dir, "capture")
        self.check_closed_to_a_stranger(become, service.pid, self.place, path, capture)
        for command in ("start", "stop", "status", "dump", "coroutines", "detach", "attach", "top --once"):
            done = subprocess.run([copy, *command.split(), str(service.pid)], capture_output=True, text=True, **become)
            self.assertEqual((done.returncode, done.stdout), (1, ""), command)
            self.assertIn("another user", done.stderr)
        ask = ("import socket, sys; one = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); one.connect(sys.argv[1]);"
               "one.send(bytes.fromhex(sys.argv[2])); print(len(one.recv(65536)))")
        done = subprocess.run(["/usr/bin/python3", "-c", ask, path, request().hex()], capture_output=True, text=True, **become)
        self.assertIn("PermissionError", done.stderr)
        os.chmod(self.place, 0o755)  # the process itself does not answer either
        os.chmod(path, 0o666)
        done = subprocess.run(["/usr/bin/python3", "-c", ask, path, request().hex()], capture_output=True, text=True, **become)
        self.assertTrue(done.stdout == "0\n" or "ConnectionReset" in done.stderr or "BrokenPipe" in done.stderr, done)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_another_user_and_what_is_attached(self):
        """The same of a process that was attached to; also where it has no directory but the one in /tmp."""
        os.chmod(self.dir, 0o755)
        bare = subprocess.Popen(SERVICE, env={name: self.env[name] for name in self.env if name != "XDG_RUNTIME_DIR"}, cwd=self.dir,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(bare.communicate)
        self.assertEqual(bare.stdout.readline(), "ready\n")
        self.do("attach", bare.pid, "-o", "capture")
        place = f"/tmp/greenprof-{os.geteuid()}"
        name, = (name for name in os.listdir(place) if name.startswith(f"control-{bare.pid}-"))
        path = os.path.join(place, name)
        self.assertEqual((os.stat(place).st_mode & 0o777, os.stat(path).st_mode & 0o777), (0o700, 0o600))
        copy = shutil.copy(GREENPROF, self.dir + "/greenprof-command")
        become = {"preexec_fn": lambda: os.setuid(STRANGER)}
        self.check_closed_to_a_stranger(become, bare.pid, place, path, os.path.join(self.dir, "capture"))
        for command in ("start", "stop", "status", "dump", "coroutines", "detach", "attach", "top --once"):
            done = subprocess.run([copy, *command.split(), str(bare.pid)], capture_output=True, text=True, **become)
            self.assertEqual((done.returncode, done.stdout), (1, ""), command)
            self.assertIn("another user", done.stderr)
        self.assertEqual(self.status(bare.pid)["state"], "recording")
        self.do("detach", bare.pid)

    def check_closed_to_a_stranger(self, become, pid, place, path, capture):
        """What a stranger may not do by system calls of their own; root may do each of it."""
        deeds = {"list": f"os.listdir({place!r})", "make": f"open({place!r} + '/x', 'w')", "remove": f"os.unlink({path!r})",
                 "read": f"open({capture!r}).read(1)", "write": f"open({capture!r}, 'a')", "call": f"os.kill({pid}, signal.SIGPROF)",
                 "memory": f"open('/proc/{pid}/mem', 'rb')", "keys": f"open('/proc/{pid}/environ', 'rb')"}
        self.wait_until(lambda: os.path.exists(capture), "the capture is there")
        for deed, call in deeds.items():
            done = subprocess.run(["/usr/bin/python3", "-c", f"import os, signal\n{call}"], capture_output=True, text=True, **become)
            self.assertIn("PermissionError", done.stderr, deed)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_directory_of_a_stranger(self):
        """One that another user has made before, and a link of theirs: nothing is put there."""
        elsewhere = os.path.join(self.dir, "elsewhere")
        os.mkdir(elsewhere, 0o700)
        os.chown(elsewhere, STRANGER, STRANGER)
        for make in (lambda: os.rename(elsewhere, self.place), lambda: os.symlink(elsewhere, self.place)):
            make()
            service = Service(self, SERVICE, "--control", "-o", "capture")
            service.burn(10)
            self.assertEqual(os.listdir(self.place), [])
            service.end()
            if not os.path.islink(self.place):
                os.rename(self.place, elsewhere)

    def test_directory_of_others(self):
        os.mkdir(self.place, 0o755)
        service = Service(self, SERVICE, "--control", "-o", "capture")
        self.assertEqual(os.listdir(self.place), [])
        service.burn(10)

    def test_requests_that_are_none(self):
        service = Service(self, SERVICE, "--control", "-o", "capture")
        whole = request()
        for packet in (b"x", whole[:-1], whole + b"x", whole[:24], bytes(100000), request(magic=1)):
            self.assertIsNone(self.answer(service, packet))
        for packet in (request(version=VERSION + 1), request(command=99), request(path=b"x" * PATH_SIZE), request(path=b"relative"),
                       request(frequency=1 << 30), request(clock=7), request(budget=500001),
                       request(spans=b"x" * SPANS_SIZE), request(START, spans=b"nonsense")):
            self.assertLess(self.answer(service, packet), 0)
        chance = random.Random(1)
        for _ in range(300):
            packet = bytearray(request(command=chance.choice((STATUS, TOP, chance.getrandbits(32)))))
            for _ in range(chance.randrange(20)):
                packet[chance.choice((chance.randrange(8, 24), chance.randrange(len(packet))))] = chance.randrange(256)
            packet[8:12] = struct.pack("<I", chance.choice((STATUS, TOP, 5, 0xFFFFFFFF)))
            self.answer(service, bytes(packet[:chance.choice((len(packet), chance.randrange(1, len(packet))))]))
        self.assertEqual(self.answer(service, whole), 0)
        self.assertEqual(self.status(service.pid)["state"], "recording")

    def test_file_that_comes_along(self):
        """The path's: the process writes there, however that is called by it, and when its main thread has ended, too."""
        service = Service(self, SERVICE, "--control", "-o", "first")
        file = os.open(os.path.join(self.dir, "second"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.addCleanup(os.close, file)
        os.write(file, b"what was there before")
        before = sorted(os.listdir(f"/proc/{service.pid}/fd"))
        for path in (b"relative", b"x" * PATH_SIZE, b"/" * PATH_SIZE):
            self.assertLess(self.answer(service, request(command=START, path=path), file), 0)
        self.assertLess(self.answer(service, request(command=START, path=b"/elsewhere/second"), file), 0)  # it records
        self.assertEqual(os.fstat(file).st_size, 21)
        self.wait_until(lambda: sorted(os.listdir(f"/proc/{service.pid}/fd")) == before, "no descriptor is left")
        service.tell("leave", "left")
        self.wait_until(lambda: os.listdir(f"/proc/{service.pid}/task") and not os.path.exists(f"/proc/{service.pid}/cwd"),
                        "the main thread has ended")
        self.assertEqual(self.answer(service, request(command=STOP)), 0)
        for other in (os.open(self.dir, os.O_PATH | os.O_DIRECTORY), os.open("/dev/null", os.O_WRONLY)):
            self.assertLess(self.answer(service, request(command=START, path=b"/elsewhere/second"), other), 0)
            os.close(other)
        self.assertEqual(self.answer(service, request(command=START, path=b"/elsewhere/second"), file), 0)
        self.assertEqual(self.status(service.pid)["file"], "/elsewhere/second")
        burned = service.burn(300)
        self.assertEqual(self.answer(service, request(command=STOP)), 0)
        self.check_capture("second", burned)

    def test_a_crowd(self):
        service = Service(self, SERVICE, "--control", "-o", "capture")
        crowd = [self.connect(service) for _ in range(100)]
        for one in crowd:
            one.send(request(TOP))
        for one in crowd:
            reply, rights, _, _ = socket.recv_fds(one, 65536, 1)
            self.assertEqual(struct.unpack_from("<Ii", reply, 4), (VERSION, 0))
            self.assertEqual(len(rights), 1)
            os.close(rights[0])

    def test_silence(self):
        """Those that say nothing, or do not read, are in nothing's way for long."""
        service = Service(self, SERVICE, "--control", "-o", "capture")
        silent = [self.connect(service) for _ in range(40)]
        for one in silent[30:]:
            one.send(request(TOP))
        service.burn(100)
        self.assertEqual(self.answer(service, request()), 0)
        self.assertEqual(silent[0].recv(1), b"")  # it was let go

    def test_no_descriptor_is_left(self):
        service = Service(self, SERVICE, "--stopped", "-o", "%p.capture")

        def turn(number):
            self.do("start", service.pid, "-o", f"capture.{number}")
            self.do("top", service.pid, "--once", "--interval", 10)
            self.do("dump", service.pid)
            self.do("stop", service.pid)
        turn(0)
        self.wait_until(lambda: self.status(service.pid)["state"] == "stopped", "stopped")
        before = self.resources(service)
        for number in range(1, 20):
            turn(number)
        self.wait_until(lambda: self.resources(service) <= before, f"{before}, {self.resources(service)}")
        self.assertEqual(len(self.socket_of(service.pid)), 1)

    @staticmethod
    def resources(service):
        """Descriptors and threads."""
        return [len(os.listdir(f"/proc/{service.pid}/{what}")) for what in ("fd", "task")]


if __name__ == "__main__":
    unittest.main()
