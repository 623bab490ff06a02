// SPDX-License-Identifier: MIT
#include "calls.h"

#include <dlfcn.h>

#include "collect/sampler.h"
#include "coro/process_id.h"
#include "greenprof/coro.h"
#include "interpreter/api.h"
#include "interpreter/frame_walk.h"
#include "interpreter/redirect.h"
#include "pools/pool_calls.h"
#include "process/host_calls.h"
#include "process/process.h"

// Both kinds of each call; the one without keywords does not look at the last argument.
typedef gp_py_t *fastcall_t(gp_py_t *self, gp_py_t *const *args, ptrdiff_t count, gp_py_t *keywords);
typedef gp_py_t *start_t(gp_py_t *self, gp_py_t *args, gp_py_t *keywords);

static fastcall_t *real_execv, *real_execve;
static start_t *real_start, *real_start_joinable; // the latter from 3.13 on: what threading calls
static bool interposed;                           // the core sees threads and calls of libc's itself

static gp_py_t *calls_call_exec(fastcall_t *real, gp_py_t *self, gp_py_t *const *args, ptrdiff_t count,
                                gp_py_t *keywords)
{
    gp_process_before_exec();
    gp_py_t *result = real(self, args, count, keywords);
    gp_process_after_failed_exec();
    return result;
}

static gp_py_t *calls_execv_of(gp_py_t *self, gp_py_t *const *args, ptrdiff_t count, gp_py_t *keywords)
{
    return calls_call_exec(real_execv, self, args, count, keywords);
}

static gp_py_t *calls_execve_of(gp_py_t *self, gp_py_t *const *args, ptrdiff_t count, gp_py_t *keywords)
{
    return calls_call_exec(real_execve, self, args, count, keywords);
}

// The thread gets its timer now, not when the collector next looks for new ones.
static gp_py_t *calls_call_start(start_t *real, gp_py_t *self, gp_py_t *args, gp_py_t *keywords)
{
    gp_pools_look(); // a pool's first thread
    gp_py_t *result = real(self, args, keywords);
    if (!interposed && result != NULL && __atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED) && gp_process_is_mine())
        gp_sampler_look_for_threads();
    return result;
}

static gp_py_t *calls_start_of(gp_py_t *self, gp_py_t *args, gp_py_t *keywords)
{
    return calls_call_start(real_start, self, args, keywords);
}

static gp_py_t *calls_start_joinable_of(gp_py_t *self, gp_py_t *args, gp_py_t *keywords)
{
    return calls_call_start(real_start_joinable, self, args, keywords);
}

static void *calls_wrap(const char *module_name, const char *name, int kinds, void *mine)
{
    gp_py_t *module = gp_py.dict_get(gp_py.module_dict(), module_name);
    gp_py_method_t *method = module != NULL ? gp_py_method(module, name) : NULL;
    if (method == NULL || !(method->flags & kinds))
        return NULL;
    void *before = method->function;
    method->function = mine;
    return before;
}

// Watch calls of the module signal, and of faulthandler: the program's own use of the sampling signal is to be seen.
static void calls_watch_signals(void)
{
    const gp_redirection_t list[] = {
        {"sigaction", (void *)(uintptr_t)gp_host_sigaction},
        {"sigwait", (void *)(uintptr_t)gp_host_sigwait},
        {"sigwaitinfo", (void *)(uintptr_t)gp_host_sigwaitinfo},
        {"sigtimedwait", (void *)(uintptr_t)gp_host_sigtimedwait},
    };
    gp_redirect((const void *)gp_cpython_runtime.loop, list,
                sizeof(list) / sizeof(list[0])); // NOLINT(performance-no-int-to-ptr)
}

// Do the program's calls come to this library?
static bool calls_is_interposed(void)
{
    Dl_info here, first;
    void *create = dlsym(RTLD_DEFAULT, "pthread_create");
    return create != NULL && dladdr(create, &first) != 0 && dladdr((void *)(uintptr_t)gp_calls_watch, &here) != 0 &&
           first.dli_fbase == here.dli_fbase;
}

void gp_calls_watch(void)
{
    if (real_start != NULL)
        return;
    interposed = calls_is_interposed();
    real_start = (start_t *)(uintptr_t)calls_wrap("_thread", "start_new_thread", GP_PY_VARARGS,
                                                  (void *)(uintptr_t)calls_start_of);
    real_start_joinable = (start_t *)(uintptr_t)calls_wrap("_thread", "start_joinable_thread", GP_PY_VARARGS,
                                                           (void *)(uintptr_t)calls_start_joinable_of);
    if (interposed)
        return;
    real_execv =
        (fastcall_t *)(uintptr_t)calls_wrap("posix", "execv", GP_PY_FASTCALL, (void *)(uintptr_t)calls_execv_of);
    real_execve =
        (fastcall_t *)(uintptr_t)calls_wrap("posix", "execve", GP_PY_FASTCALL, (void *)(uintptr_t)calls_execve_of);
    calls_watch_signals();
}
