# SPDX-License-Identifier: MIT
"""greenprof attach and detach: services that were started without greenprof, and are as before afterwards."""
import collections
import ctypes
import os
import re
import shutil
import signal
import subprocess
import unittest

from support import EVENTLET, GREENPROF, SERVICE, Attaching, Bare, Capture, Service, has_eventlet, main

BUSY = os.environ["BUSY"]
STATIC = os.environ["STATIC"]
PLUGIN = os.path.realpath(os.environ["PLUGIN"])
SLOW_PLUGIN = os.path.realpath(os.environ["SLOW_PLUGIN"])
STRANGER = 65534
END_ASKED = 6  # capture/format.h
PTRACE_SEIZE = 0x4206
RUBY_FIBERS = """
def work(count)
  loop { count.times { |i| i % 7 }; Fiber.yield }
end
$stdout.sync = true
first, second = Fiber.new { work(2000) }, Fiber.new { work(1000) }
first.resume
puts "ready"
loop { first.resume; second.resume }
"""
# Fibers: older ones; one of another thread; of a scheduler; and a new one. "N": so many switches of each.
RUBY_COUNTED = """
one = Fiber.new { loop { 50.times { |i| i % 7 }; Fiber.yield } }
two = Fiber.new { loop { 50.times { |i| i % 7 }; Fiber.yield } }
asked, done = Queue.new, Queue.new
Thread.new do
  inner = Fiber.new { loop { Fiber.yield } }
  inner.resume
  done << 0
  loop { (3 * asked.pop).times { inner.resume }; done << 0 }
end
done.pop
one.resume
two.resume
$stdout.sync = true
puts "ready"
while (line = gets)
  count = line.to_i
  count.times { one.resume }
  (2 * count).times { two.resume }
  asked << count
  done.pop
  late = Fiber.new(blocking: false) { (4 * count).times { Fiber.yield } }
  (4 * count).times { late.resume }
  puts "did"
end
"""
LUA_COROUTINES = """
local function work(count)
    while true do for i = 1, count do local _ = i % 7 end coroutine.yield() end
end
local first, second = coroutine.create(work), coroutine.create(work)
print("ready") io.stdout:flush()
while true do coroutine.resume(first, 2000) coroutine.resume(second, 1000) end
"""
# Green threads that are there before anything is attached, and no new ones.
OLD_GREEN_THREADS = """
import eventlet, time
def work(seconds):
    while True:
        end = time.thread_time() + seconds
        while time.thread_time() < end: pass
        eventlet.sleep(0.004)
def one(): work(0.002)
def two(): work(0.001)
eventlet.spawn(one), eventlet.spawn(two)
eventlet.sleep(0.1)
print("ready", flush=True)
eventlet.sleep(3600)
"""
# A greenlet that was started amid calls which have returned since: where their frames were, other things are now.
GREENLET_ABOVE_NOTHING = """
import ctypes, greenlet
def amid_calls(depth, then):
    return max([depth], key=lambda _: amid_calls(depth - 1, then) if depth else then() and 0)
def compute():
    main.switch()
    print("ready", flush=True)
    while True: sum(range(100))
main = greenlet.getcurrent()
busy = greenlet.greenlet(compute)
amid_calls(8, busy.switch)
realpath = ctypes.CDLL(None).realpath
for depth in range(20, 0, -1):
    amid_calls(depth, lambda: realpath(b"/" + b"A" * 800, None))
busy.switch()
"""
GLIBC_SIGNAL = 33  # which it handles from a program's first thread on


def status_line(pid, key):
    with open(f"/proc/{pid}/status") as file:
        return next(line.split()[1] for line in file if line.startswith(key + ":"))


def state_of(pid):
    """What a process has that attaching may change."""
    names = sorted(os.listdir(f"/proc/{pid}/fd"), key=int)
    handlers = int(status_line(pid, "SigCgt"), 16) & ~(1 << (GLIBC_SIGNAL - 1))
    return {"threads": status_line(pid, "Threads"), "handlers": f"{handlers:x}",
            "ignored": status_line(pid, "SigIgn"), "descriptors": names}


def slots_into_core(pid):
    """How many words of writable memory point into the core."""
    with open(f"/proc/{pid}/maps") as file:
        mappings = [line.split() for line in file]
    spans = [tuple(int(part, 16) for part in fields[0].split("-")) for fields in mappings]
    core = [span for span, fields in zip(spans, mappings) if "libgreenprof" in fields[-1] and "x" in fields[1]]
    count = 0
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for (low, high), fields in zip(spans, mappings):
            if fields[-1] not in (os.path.realpath(program) for program in (*SERVICE, BUSY, PLUGIN, SLOW_PLUGIN)) or "x" in fields[1]:
                continue
            memory.seek(low)
            words = memoryview(memory.read(high - low)).cast("Q")
            count += sum(any(start <= word < end for start, end in core) for word in words)
    return count


class Attach(Attaching):
    def wait_for_state(self, pid, state):
        """Threads and descriptors of its are closed a moment after the last word."""
        self.wait_until(lambda: state_of(pid) == state, f"{state_of(pid)} as {state}")

    def check_service(self, program):
        service = Bare(self, program)
        service.burn(50)
        before = None
        for i in range(3):
            path = os.path.join(self.dir, f"capture{i}")
            self.assertEqual(self.do("attach", service.pid, "-o", path),
                             f"recording to {path}; 'greenprof detach {service.pid}' ends it\n")
            burned = service.burn(600)
            self.assertRegex(self.do("detach", service.pid), rf"^\d+ samples: greenprof report {re.escape(path)}\n$")
            service.burn(50)
            self.check_capture(path, burned)
            capture = Capture(path)
            self.assertEqual((capture.whole, capture.end), (True, END_ASKED))
            self.assertEqual(capture.counters["signals"], capture.counters["samples"] + capture.drops)
            before = before or state_of(service.pid)
            self.wait_for_state(service.pid, before)
        self.refused("'greenprof attach PID'", "status", service.pid)
        return service

    def rows(self, path):
        """CPU seconds and switches of coroutines, those with most first."""
        rows = self.do("report", path, "--by", "coroutine", "-n", "0").split("switches     id")[1].splitlines()[1:]
        fields = [row.split() for row in rows if row.strip()]
        return sorted(((float(row[0]), int(row[4])) for row in fields), reverse=True)

    def test_coroutines_that_were_there_already(self):
        bare = Bare(self, SERVICE)
        bare.burn(20)
        at_first = state_of(bare.pid)
        bare.kill()
        service = self.check_service(SERVICE)
        self.wait_for_state(service.pid, at_first)
        self.assertEqual(slots_into_core(service.pid), 0)
        self.do("attach", service.pid, "-o", "capture")
        self.assertGreater(slots_into_core(service.pid), 0)
        a, b = service.burn(600)
        self.do("detach", service.pid)
        rows = self.rows("capture")
        self.near("the first", rows[0][0], a, 0.05, 0.01)
        self.near("the second", rows[1][0], b, 0.05, 0.01)
        for _, switches in rows[:2]:  # its slices are of 2 ms and 1 ms; sooner, where it was interrupted
            self.assertIn(switches, range(150, 202))

    def test_a_library_that_is_loaded_later(self):
        service = Bare(self, SERVICE)
        link = os.path.join(self.dir, "plugin.so")  # a short name
        os.symlink(PLUGIN, link)
        self.do("attach", service.pid, "-o", "capture")
        before = slots_into_core(service.pid)
        service.tell(f"load {link}", "loaded")
        self.wait_until(lambda: slots_into_core(service.pid) >= before + 2, "its calls are taken")
        service.tell("plugin 300", "plugged")
        self.do("detach", service.pid)
        self.assertEqual(slots_into_core(service.pid), 0)
        service.tell("plugin 10", "plugged")
        rows = self.rows("capture")
        self.near("the plugin's coroutine", rows[0][0], 0.3, 0.05, 0.01)
        self.assertIn("plugin_worker", self.do("report", "capture", "--by", "coroutine"))

    def test_a_program_whose_file_is_gone(self):
        """Its names can be had as long as it runs, or where a copy of it is: the build-id tells which file is the one."""
        program = os.path.join(self.dir, "program")
        for there in (None, SERVICE[0], BUSY):
            shutil.copy(SERVICE[0], program)
            service = Bare(self, [program, *SERVICE[1:]])
            os.remove(program)
            if there:
                shutil.copy(there, program)
            self.do("attach", service.pid, "-o", "capture")
            service.burn(100)
            self.do("detach", service.pid)
            names = [self.do("report", "capture")]
            service.kill()
            names.append(self.command("report", "capture").stdout)
            self.assertIn("burn_", names[0])
            self.assertEqual("burn_" in names[1], there == SERVICE[0])
            self.assertIn(f"{program} (pid {service.pid})", names[1])

    def test_a_library_that_is_slow_to_load(self):
        """Its slots are not taken before the loader is done with them, and given back as that has left them."""
        link = os.path.join(self.dir, "plugin.so")
        os.symlink(SLOW_PLUGIN, link)
        for how in ("load", "lazy"):
            service = Bare(self, SERVICE)
            self.do("attach", service.pid, "-o", "capture")
            before = slots_into_core(service.pid)
            service.tell(f"{how} {link}", "loaded")
            service.tell("plugin 0", "plugged")
            self.wait_until(lambda: slots_into_core(service.pid) > before, "its calls are taken")
            service.tell("plugin 0", "plugged")
            self.do("detach", service.pid)
            self.assertEqual(slots_into_core(service.pid), 0)
            service.tell("plugin 0", "plugged")

    @unittest.skipUnless(has_eventlet(), "python3-eventlet is not installed")
    def test_green_threads(self):
        self.check_service(EVENTLET)
        rows = self.do("report", "capture0", "--by", "coroutine")
        self.assertEqual(rows.count(" work\n"), 2, rows)

    @unittest.skipUnless(has_eventlet(), "python3-eventlet is not installed")
    def test_green_threads_that_were_there_already(self):
        """Also where they were there before the process was detached from, and have no record since."""
        service = Bare(self, ["/usr/bin/python3", "-c", OLD_GREEN_THREADS])
        for _ in range(3):
            self.attach_for(service.pid, 0.4, "capture")
            text = self.do("report", "capture", "--by", "coroutine", "-n", "0")
            rows = {name: (float(cpu), int(switches)) for cpu, switches, name in
                    re.findall(r"^ +([0-9.]+) +[0-9.]+ +[0-9.]+ +\d+ +(\d+) +\d+ - +(one|two|\[hub\])$", text, re.M)}
            self.assertEqual(set(rows), {"one", "two", "[hub]"}, text)
            self.near("the first's share", rows["one"][0] / (rows["one"][0] + rows["two"][0]), 2 / 3, 0.1, 0.01)
            self.assertGreater(rows["one"][1], 5)
            self.assertLessEqual(abs(rows["one"][1] + rows["two"][1] - rows["[hub]"][1]), 2)  # one at each end
            self.assertIsNone(service.process.poll())

    @unittest.skipUnless(has_eventlet(), "python3-eventlet is not installed")
    def test_greenlet_that_never_waits(self):
        """A thread may be borrowed where a greenlet computes, as in a server that is always busy."""
        service = Bare(self, ["/usr/bin/python3", "-c", GREENLET_ABOVE_NOTHING])
        self.do("attach", service.pid, "-d", "1", "-o", "capture")
        self.assertIn("compute", self.do("report", "capture"))
        self.assertIsNone(service.process.poll())

    @unittest.skipUnless(shutil.which("ruby"), "ruby is not installed")
    def test_fibers_of_ruby(self):
        """Two that alternate, and their thread, while the process is attached to and detached from in the middle of it."""
        service = Bare(self, ["ruby", "-e", RUBY_FIBERS])
        for number in range(3):
            path = f"capture.{number}"
            self.do("attach", service.pid, "-d", "1", "-o", path)
            rows = self.rows(path)
            self.near("the first's share", rows[0][0] / (rows[0][0] + rows[1][0]), 2 / 3, 0.1, 0)
            numbers = self.named_switches(path)
            (one, other), (own,) = numbers["fiber at -e:6"], numbers["[thread ruby]"]
            self.assertGreater(one, 100)
            # They are counted from where each was looked at when the capture began: one after the other.
            self.near("the other's switches", other, one, 0.01, count=1)
            self.near("their thread's switches", own, one + other, 0.01, count=2)  # one at each end
        self.assertIsNone(service.process.poll())

    def named_switches(self, path):
        """Switches of the coroutines of each name."""
        numbers = collections.defaultdict(list)
        text = self.do("report", path, "--by", "coroutine", "-n", "0")
        for number, name in re.findall(r"(\d+) +\d+ - +(fiber at -e:\d+|\[thread [^]]+\])", text):
            numbers[name].append(int(number))
        return numbers

    @unittest.skipUnless(shutil.which("ruby"), "ruby is not installed")
    def test_switches_of_ruby(self):
        """Known numbers, to the last one, of fibers that were there before and of one that was not."""
        service = Bare(self, ["ruby", "-e", RUBY_COUNTED])
        for count in (200, 3000):
            self.do("attach", service.pid, "-o", "capture")
            service.tell(str(count), "did")
            self.do("detach", service.pid)
            numbers = self.named_switches("capture")
            for place, times in ((2, 1), (3, 2), (6, 3), (22, 4)):
                self.assertEqual(numbers[f"fiber at -e:{place}"], [times * count])
            service.tell("10", "did")

    @unittest.skipUnless(shutil.which("lua5.4"), "lua5.4 is not installed")
    def test_coroutines_of_lua(self):
        """Its interpreter has them in the program itself: its thread is seen, as one row."""
        service = Bare(self, ["lua5.4", "-e", LUA_COROUTINES])
        self.do("attach", service.pid, "-d", "1", "-o", "capture")
        (seconds, switches), = self.rows("capture")
        self.assertGreater(seconds, 0)
        self.assertEqual(switches, 0)
        self.assertIsNone(service.process.poll())

    def test_for_a_while(self):
        service = Bare(self, SERVICE)
        attached = subprocess.Popen([GREENPROF, "attach", str(service.pid), "-d", "3600"], env=self.env, cwd=self.dir,
                                    text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.addCleanup(attached.wait)
        self.addCleanup(attached.kill)
        self.wait_until(lambda: self.sockets() and self.status(service.pid)["state"] == "recording", "attached")
        burned = service.burn(300)
        attached.send_signal(signal.SIGINT)
        self.assertIn("samples: greenprof report ", attached.communicate(timeout=100)[0])
        self.assertEqual(attached.returncode, 0)
        self.check_capture(f"{service.pid}.greenprof", burned)
        self.do("attach", service.pid, "-d", "1", "-o", "second")
        self.assertEqual(self.sockets(), [])
        service.burn(10)

    def test_a_process_that_ends_meanwhile(self):
        service = Bare(self, SERVICE)
        attached = subprocess.Popen([GREENPROF, "attach", str(service.pid), "-d", "3600", "-o", "capture"],
                                    env=self.env, cwd=self.dir, text=True, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE)
        self.addCleanup(attached.wait)
        self.addCleanup(attached.kill)
        self.wait_until(lambda: self.sockets() and self.status(service.pid)["state"] == "recording", "attached")
        burned = service.burn(300)
        self.assertEqual(service.end(), 0)
        attached.communicate(timeout=100)
        self.check_capture("capture", burned)

    def test_busy_threads(self):
        busy = Bare(self, [BUSY, "2"])
        first = state_of(busy.pid)
        for i in range(10):
            self.do("attach", busy.pid, "-o", "capture")
            self.assertEqual(self.status(busy.pid)["threads"], 9)
            self.do("detach", busy.pid)
        del first["descriptors"]  # of libraries that are being loaded
        self.wait_until(lambda: {**state_of(busy.pid), **first} == state_of(busy.pid), f"{state_of(busy.pid)}, {first}")
        rounds, failures = busy_numbers(busy)
        self.assertEqual(failures, 0)
        self.wait_until(lambda: busy_numbers(busy)[0] > rounds, "they go on")
        self.assertEqual(busy.end(), 0)

    def test_crowd(self):
        """Many more threads than processors: they are stopped meanwhile, and none of them is afterwards."""
        cpu = min(os.sched_getaffinity(0))
        busy = Bare(self, ["taskset", "-c", str(cpu), BUSY, "4", "40", "4", "4"])
        first = threads_of(busy.pid)
        for i in range(5):
            self.do("attach", busy.pid, "-o", "capture")
            self.assertEqual([names for names in tracers_of(busy.pid) if names != "0"], [])
            self.do("detach", busy.pid)
        self.wait_until(lambda: threads_of(busy.pid) == first, f"{threads_of(busy.pid)} as {first}")
        self.assertEqual(set(tracers_of(busy.pid)), {"0"})
        rounds, failures = busy_numbers(busy)
        self.assertEqual(failures, 0)
        self.wait_until(lambda: busy_numbers(busy)[0] > rounds, "they go on")
        self.assertEqual(busy.end(), 0)

    def test_own_threads_are_named(self):
        """So the command knows them; and they have the rank of the others when it is done."""
        cpu = min(os.sched_getaffinity(0))
        busy = Bare(self, ["taskset", "-c", str(cpu), BUSY, "0", "20", "0", "0"])
        self.do("attach", busy.pid, "-o", "capture")
        own = [nice for name, nice in threads_of(busy.pid) if name == "greenprof"]
        self.assertGreater(len(own), 0)
        self.assertEqual(set(own), {os.getpriority(os.PRIO_PROCESS, busy.pid)})
        self.do("detach", busy.pid)
        self.wait_until(lambda: "greenprof" not in dict(threads_of(busy.pid)), "they are gone")
        self.assertEqual(busy.end(), 0)

    def test_what_is_refused(self):
        service = Bare(self, SERVICE)
        self.refused("no such process", "attach", 4194303)
        self.refused("missing PID", "attach", status=2)
        self.refused("is no process id", "detach", "x", status=2)
        self.refused("cannot be switched", "detach", service.pid)
        os.kill(service.pid, signal.SIGSTOP)
        self.refused("the process is stopped", "attach", service.pid)
        os.kill(service.pid, signal.SIGCONT)
        self.assertEqual(self.sockets(), [])
        static = subprocess.Popen([STATIC], stdin=subprocess.PIPE)
        self.addCleanup(static.wait)
        self.addCleanup(static.stdin.close)
        self.wait_until(lambda: os.readlink(f"/proc/{static.pid}/exe") == os.path.realpath(STATIC), "it is that program")
        self.refused("linked statically", "attach", static.pid)
        before = state_of(service.pid)
        self.refused("No such file or directory", "attach", service.pid, "-o", "/nonexistent/directory/capture")
        self.refused("cannot be switched", "detach", service.pid)  # it was left again
        self.assertEqual(state_of(service.pid), before)
        self.do("attach", service.pid, "-o", "capture")
        self.refused("it is being recorded already", "attach", service.pid, "-o", "other")
        self.do("detach", service.pid)
        started = Service(self, SERVICE, "--control", "-o", "started")
        self.refused("it was started with greenprof", "detach", started.pid)
        service.burn(10)

    def test_one_that_is_traced(self):
        service = Bare(self, SERVICE)
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.assertEqual(libc.ptrace(PTRACE_SEIZE, service.pid, None, None), 0, os.strerror(ctypes.get_errno()))
        self.refused(f"process {os.getpid()} traces it already", "attach", service.pid)
        self.assertEqual(self.sockets(), [])
        self.assertEqual(slots_into_core(service.pid), 0)
        service.burn(10)

    @unittest.skipUnless(os.geteuid() == 0, "needs root")
    def test_another_user(self):
        service = Bare(self, SERVICE)
        os.chmod(self.dir, 0o755)
        copy = shutil.copy(GREENPROF, self.dir + "/greenprof-command")  # the build may lie where others may not go
        done = subprocess.run([copy, "attach", str(service.pid)], capture_output=True, text=True, cwd=self.dir,
                              preexec_fn=lambda: os.setuid(STRANGER))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("another user", done.stderr)
        self.assertEqual(self.sockets(), [])
        service.burn(10)


def threads_of(pid):
    """Name and rank (nice) of each. Source: proc_pid_stat(5)."""
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/stat") as file:
                name, rest = re.fullmatch(r"\d+ \((.*)\) (.*)\n", file.read(), re.DOTALL).groups()
            found.append((name, int(rest.split()[16])))
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended
    return sorted(found)


def tracers_of(pid):
    return [status_line(tid, "TracerPid") for tid in os.listdir(f"/proc/{pid}/task")]


def busy_numbers(busy):
    busy.process.stdin.write("\n")
    busy.process.stdin.flush()
    words = busy.process.stdout.readline().split()
    return int(words[1]), int(words[3])


if __name__ == "__main__":
    main(partial=0, at_once=2)
