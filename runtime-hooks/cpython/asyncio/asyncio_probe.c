// SPDX-License-Identifier: MIT
#include "asyncio/asyncio_probe.h"

// The probe is its task's loop, and what it awaits. Asked for first a step, then a callback, it keeps what it is given.
// From 3.14 on a step is taken only where its loop runs, and no other task does: as long as this lasts, those of the
// caller do not.
static const char source[] = "class Probe:\n"
                             "    _asyncio_future_blocking = True\n"
                             "    def get_debug(self): return False\n"
                             "    def get_loop(self): return self\n"
                             "    def call_soon(self, callback, *arguments, **more): self.step = callback\n"
                             "    def add_done_callback(self, callback, **more): self.wakeup = callback\n"
                             "    def __await__(self): yield self\n"
                             "async def wait(probe): await probe\n"
                             "probe = Probe()\n"
                             "coroutine = wait(probe)\n"
                             "task = Task(coroutine, loop=probe, name='')\n"
                             "task._log_destroy_pending = False\n"
                             "loop, other = asyncio._get_running_loop(), None\n"
                             "try: other = asyncio._swap_current_task(loop, None)\n"
                             "except Exception: pass\n" // there is none, or no such function
                             "asyncio._set_running_loop(probe)\n"
                             "try: probe.step()\n"
                             "finally:\n"
                             "    asyncio._set_running_loop(loop)\n"
                             "    if other is not None: asyncio._swap_current_task(loop, other)\n"
                             "    coroutine.close()\n"
                             "step, wakeup = probe.step, probe.wakeup\n"
                             "del probe.step, probe.wakeup, loop, other\n";

enum { FILE_INPUT = 257 }; // Py_file_input

static bool asyncio_probe_run(gp_py_t *module, gp_py_t *scope)
{
    gp_py_t *type = gp_py.get_attr(module, "Task"), *builtins = gp_py.dict_get(gp_py.module_dict(), "builtins");
    gp_py_t *code = type != NULL && builtins != NULL ? gp_py.compile(source, "<greenprof>", FILE_INPUT) : NULL,
            *result = NULL;
    if (code != NULL && gp_py.dict_set(scope, "Task", type) == 0 && gp_py.dict_set(scope, "asyncio", module) == 0 &&
        gp_py.dict_set(scope, "__builtins__", builtins) == 0)
        result = gp_py.eval_code(code, scope, scope);
    gp_py.drop(result);
    gp_py.drop(code);
    gp_py.drop(type);
    return result != NULL;
}

static gp_py_t *asyncio_probe_pointer_at(gp_py_t *object, size_t offset)
{
    return *(gp_py_t **)(void *)((char *)object + offset);
}

bool gp_asyncio_probe(gp_py_t *module, gp_asyncio_steps_t *steps)
{
    gp_py_t *scope = gp_py.dict_new();
    bool found = false;
    if (scope != NULL && asyncio_probe_run(module, scope)) {
        gp_py_t *task = gp_py.dict_get(scope, "task"), *step = gp_py.dict_get(scope, "step");
        gp_py_t *wakeup = gp_py.dict_get(scope, "wakeup");
        found = task != NULL && step != NULL && wakeup != NULL && gp_py_type(wakeup) == gp_py.builtin_type &&
                asyncio_probe_pointer_at(step, GP_ASYNCIO_STEP_TASK) == task &&
                asyncio_probe_pointer_at(wakeup, GP_PY_BUILTIN_SELF) == task;
        if (found)
            *steps = (gp_asyncio_steps_t){gp_py_type(step), gp_py_type(wakeup), gp_py_definition(wakeup)};
    }
    gp_py.drop(scope);
    return found;
}
