# SPDX-License-Identifier: MIT
"""What is left in a process after greenprof detach: nothing that is not listed here, and in doc/attach.md.

Compared, before attaching and after detaching: every byte of every executable mapping, every slot of every module's
GOT, and all pointers into the core from the modules' own data.
"""
import functools
import os
import re
import subprocess
import unittest

from memory import CORE, Memory
from support import EVENTLET, SERVICE, Attaching, Bare, has_eventlet, main

# By the function to which they point. They are the core's, which stays mapped, and do nothing while it is detached.
OF_THREADS = {
    "threads_on_thread_exit",  # the destructor of a key of threads: a thread that was sampled gives its record back
    "process_prepare_inner", "process_finish_inner", "process_parent_inner", "process_child_inner",  # fork handlers: glibc takes none back
}
OF_PYTHON = {
    # Hooks of greenlets, tasks, code objects: objects once seen are forgotten when they are freed.
    "greenlet_on_new", "greenlet_on_dealloc", "asyncio_on_dealloc", "code_objects_on_dealloc",
    "asyncio_on_init", "asyncio_on_step", "asyncio_on_wakeup", "asyncio_on_set_name",
    "python_tasks_on_register", "python_tasks_on_enter", "python_tasks_on_leave",
    "greenlet_trace_settrace", "greenlet_trace_gettrace",
    "hubs_on_pop", "loop_look_on_poll",
    "imports_on_create", "imports_on_create_builtin", "imports_on_exec", "imports_on_exec_builtin", "imports_on_find",  # of modules
    "gp_lock_table_begin_anew",  # a fork handler
    "thread_names_on_start",    # of threads: named as threading.Thread names them
    "queue_calls_on_simple_put", "queue_calls_on_simple_get", "queue_calls_on_get_nowait",  # of queue.SimpleQueue
    "cpython_look_when_running",  # a word of the interpreter's ring of calls: it was made already
}
# Put back once 1,000 switches came by that nothing looked at.
SWITCHES = {"greenlet_native_on_main_switch", "greenlet_native_on_other_switch", "greenlet_native_on_initialstub"}
GREENLETS = "switch 3000"


@functools.lru_cache(None)
def symbols(path):
    """(address, size, name) of what is defined in a file."""
    text = subprocess.run(["nm", "-S", path], capture_output=True, text=True, check=True).stdout
    words = (line.split() for line in text.splitlines())
    return [(int(word[0], 16), int(word[1], 16), word[3]) for word in words if len(word) == 4]


class Remains(Attaching):
    def look(self, service):
        memory = Memory(service.pid)
        self.addCleanup(memory.close)
        return memory

    def own_stacks(self, memory, path):
        """Of the program's coroutines: a dead frame's words are not what is looked for."""
        base = memory.modules()[path]
        return [(base + at, base + at + size) for at, size, name in symbols(path) if re.fullmatch(r"stacks(\.\d+)?", name)]

    def pointers(self, memory):
        """Names of the functions of the core to which the modules' data point."""
        core = next(mapping for mapping in memory.mappings if CORE in mapping.path and mapping.offset == 0)
        left_out = self.own_stacks(memory, os.path.realpath(SERVICE[0])) if os.path.realpath(SERVICE[0]) in memory.modules() else []
        names = set()
        for _, at in memory.into_core():
            if any(low <= at < high for low, high in left_out):
                continue
            offset = memory.word(at) - core.low
            names |= {name for low, size, name in symbols(os.environ["CORE"]) if low <= offset < low + size}
        return {name.split(".")[0] for name in names}

    def check_same(self, before, after):
        """The code is the same, and the GOT but for calls that the C library has bound meanwhile."""
        texts, now = before.texts(), after.texts()
        self.assertGreater(len(texts), 3)
        self.assertEqual({key: now.get(key) for key in texts}, texts)
        slots, now = before.slots(), after.slots()
        self.assertGreater(len(slots), 100)
        for (path, at), value in slots.items():
            if now[path, at] == value:
                continue
            stub, bound = before.where(value), after.where(now[path, at])
            self.assertEqual(stub.path, path, hex(at))  # it was not bound yet
            self.assertNotIn(CORE, bound.path)

    def round(self, service, line, word):
        """Attach, work, detach, work. Returns how many slots were not what they were meanwhile, and the memory after it."""
        before = self.look(service)
        slots = before.slots()
        self.do("attach", service.pid, "-o", "capture")
        service.tell(line, word)
        while_attached = self.look(service)
        now = while_attached.slots()
        taken = sum(CORE in (while_attached.where(now[key]) or while_attached.mappings[0]).path for key in slots)
        self.do("detach", service.pid)
        service.tell(line, word)
        return taken, self.look(service)

    def test_program_in_c(self):
        service = Bare(self, SERVICE)
        service.burn(50)
        before = self.look(service)
        self.assertEqual(before.into_core(), [])
        for _ in range(2):
            taken, after = self.round(service, "burn 300", "burned")
            self.assertGreater(taken, 5)  # the test sees what it looks for
            self.check_same(before, after)
            left = self.pointers(after)
            self.assertEqual(left - OF_THREADS, set())
            self.assertIn("process_prepare_inner", left)

    @unittest.skipUnless(has_eventlet(), "python3-eventlet is not installed")
    def test_program_in_python(self):
        service = Bare(self, EVENTLET)
        service.burn(50)
        before = self.look(service)
        self.assertEqual(before.into_core(), [])
        for _ in range(2):
            taken, _ = self.round(service, "burn 300", "burned")
            self.assertGreater(taken, 5)
            for _ in range(2):
                service.tell(GREENLETS, "switched")
            after = self.look(service)
            self.check_same(before, after)
            left = self.pointers(after)
            self.assertEqual(left - OF_THREADS - OF_PYTHON, set())
            self.assertEqual(left & SWITCHES, set())
        self.check_types(service, before, after)

    def check_types(self, service, before, after):
        """Of the types, nothing has changed but what is listed; all other slots are what they were."""
        for address, size in self.types_of(service):
            for at in range(address, address + size, 8):
                old, new = before.word(at), after.word(at)
                is_code = any(memory.where(word) is not None and "x" in memory.where(word).rights
                              for memory, word in ((before, old), (after, new)))
                if old == new or not is_code:
                    continue
                self.assertIn(CORE, after.where(new).path, hex(at))
                self.assertNotEqual(old, 0)

    @staticmethod
    def types_of(service):
        numbers = service.tell("types", "types")
        return list(zip(numbers[::2], numbers[1::2]))

    def test_documented(self):
        """What is allowed to stay is in the documentation."""
        here = os.path.dirname(os.path.abspath(__file__))
        with open(os.path.join(here, "../../doc/attach.md"), encoding="utf-8") as file:
            text = file.read()
        for name in OF_THREADS | OF_PYTHON:
            self.assertIn(f"`{name}`", text)


if __name__ == "__main__":
    main(partial=0, at_once=2)
