// SPDX-License-Identifier: MIT
// CPython in this process: found by its symbols, from 3.11 on.
//
// Where it is there when the core is loaded (`greenprof run python3`), all is in place before the first line runs. Else
// the walker is registered when it is found, and greenlets are hooked when the package greenprof is imported.

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>

#include "asyncio/asyncio.h"
#include "base/loaded.h"
#include "calls.h"
#include "collect/collector.h"
#include "cpython.h"
#include "exact/recorder.h"
#include "exact_calls/call_events.h"
#include "forks.h"
#include "greenlet/greenlet.h"
#include "greenlet/greenlet_map.h"
#include "greenlet/greenlet_run.h"
#include "greenlet/walk_parked.h"
#include "imports.h"
#include "interface.h"
#include "interpreter/api.h"
#include "interpreter/code_objects.h"
#include "interpreter/frame_walk.h"
#include "interpreter/gil.h"
#include "interpreter/known.h"
#include "interpreter/layout_trial.h"
#include "interpreter/locks.h"
#include "not_known.h"
#include "pools/pool_calls.h"
#include "pools/thread_names.h"
#include "signal/handler.h"
#include "signal/ledger_edges.h"

static int (*is_initialized)(void);
static bool has_api;
static gp_cpython_seen_t seen;

static void cpython_enter(void)
{
    static uint32_t looked; // sampling epoch
    uint32_t epoch = atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_relaxed);
    if (!gp_greenlet_enter())
        gp_asyncio_enter();
    if (has_api && looked != epoch && gp_py_has_lock()) {
        looked = epoch;
        gp_pools_look();
    }
}

static prof_coro_t *cpython_current(void)
{
    return has_api && gp_py_has_lock() ? gp_greenlet_running(&gp_step_here).coro : gp_step_here.coro;
}

static void cpython_count_calls(bool everywhere)
{
    if (!has_api || !gp_py_has_lock())
        return;
    gp_pools_look();
    gp_call_events_start(everywhere);
}

static uint32_t cpython_generation(void)
{
    return atomic_load_explicit(&gp_cpython_code_generation, memory_order_acquire);
}

static gp_language_t language = {
    .name = "cpython",
    .number = GP_LANGUAGE_CPYTHON,
    .walk = gp_cpython_walk,
    .generation = cpython_generation,
    .thread_name = gp_thread_names_waiting,
    .is_loop = gp_cpython_is_loop,
    .before_drain = gp_cpython_code_before_drain,
    .after_drain = gp_cpython_code_after_drain,
    .locate = gp_cpython_code_locate,
    .walk_parked = gp_cpython_walk_parked,
    .walk_asleep = gp_cpython_walk_asleep,
    .coro_name = gp_cpython_coro_name,
    .enter = cpython_enter,
    .current = cpython_current,
    .count_calls = cpython_count_calls,
    .calls_are_taken = gp_call_events_are_taken,
    .unreported = gp_greenlet_unreported,
    .follow = gp_gil_follow,
};

static bool cpython_find_loop(void)
{
    void *loop = dlsym(RTLD_DEFAULT, GP_CPYTHON_LOOP);
    Dl_info info;
    ElfW(Sym) *symbol = NULL;
    if (loop == NULL || dladdr1(loop, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0 || symbol == NULL)
        return false;
    gp_cpython_runtime.loop = (uintptr_t)loop;
    gp_cpython_runtime.loop_end = (uintptr_t)loop + symbol->st_size;
    return true;
}

static void cpython_tell_unknown(const char *why)
{
    static gp_not_known_t fact;
    char text[GP_NOT_KNOWN_SIZE];
    if (!gp_cpython_is_unknown(&seen, text, sizeof(text)))
        gp_cpython_say_unknown(&seen, why, text, sizeof(text));
    gp_not_known_tell(&fact, "%s", text);
}

static const void *cpython_find_loaded(void *info, const char *name, size_t bytes)
{
    (void)bytes;
    return gp_loaded_one_symbol(info, name);
}

// An interpreter loaded later is left alone until it is attached to; one that no hook fits is told.
static int cpython_look_at_loaded(struct dl_phdr_info *info, size_t size, void *unused)
{
    char text[GP_NOT_KNOWN_SIZE];
    (void)size, (void)unused;
    if (gp_loaded_one_symbol(info, GP_CPYTHON_LOOP) == NULL)
        return 0;
    seen = gp_cpython_see(cpython_find_loaded, info);
    if (gp_cpython_is_unknown(&seen, text, sizeof(text)))
        cpython_tell_unknown("");
    return 1;
}

static void cpython_look_later(void)
{
    if (atomic_load_explicit(&gp_language, memory_order_relaxed) == NULL)
        dl_iterate_phdr(cpython_look_at_loaded, NULL);
}

static void cpython_find_generators(void)
{
    static const char *const names[GP_CPYTHON_GENERATORS] = {
        "PyCoro_Type",         "PyGen_Type", "PyAsyncGen_Type", "_PyAsyncGenASend_Type", "_PyAsyncGenAThrow_Type",
        "_PyCoroWrapper_Type",
    };
    for (size_t i = 0; i < GP_CPYTHON_GENERATORS; i++)
        gp_cpython_runtime.generator_types[i] = (uintptr_t)dlsym(RTLD_DEFAULT, names[i]);
    char *generator = dlsym(RTLD_DEFAULT, "PyGen_Type"); // its frame is its last member
    if (generator != NULL)
        gp_cpython_runtime.generator_frame = *gp_py_size(generator) - gp_cpython_runtime.layout->frame_bytes;
}

static const void *cpython_find_global(void *unused, const char *name, size_t bytes)
{
    (void)unused, (void)bytes;
    return dlsym(RTLD_DEFAULT, name);
}

bool gp_cpython_is_known(void)
{
    gp_cpython_runtime_t *runtime = &gp_cpython_runtime;
    if (runtime->layout == NULL || gp_cpython_layout_holds())
        return runtime->layout != NULL;
    runtime->is_trusted = false;
    cpython_tell_unknown("does not keep its frames where it says");
    return false;
}

// Register the walker where the interpreter is there. Idempotent; one thread at a time.
static bool cpython_look(void)
{
    if (atomic_load_explicit(&gp_language, memory_order_relaxed) != NULL)
        return true;
    const char *why = NULL;
    unsigned char *code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
    is_initialized = (int (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "Py_IsInitialized");
    seen = gp_cpython_see(cpython_find_global, NULL);
    gp_cpython_runtime.layout = gp_cpython_layout_find(&seen, &why);
    gp_cpython_runtime.thread_state = (void *(*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    gp_cpython_runtime.is_finalizing = (int (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    if (gp_cpython_runtime.is_finalizing == NULL) // before 3.13
        gp_cpython_runtime.is_finalizing = (int (*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
    gp_cpython_runtime.interpreter = (void *(*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "PyInterpreterState_Get");
    gp_cpython_runtime.main_interpreter = (void *(*)(void))(uintptr_t)dlsym(RTLD_DEFAULT, "PyInterpreterState_Main");
    bool has_loop = cpython_find_loop();
    has_api = gp_py_find();
    dlerror(); // the host asks for its own errors only
    if (gp_cpython_runtime.layout == NULL || gp_cpython_runtime.thread_state == NULL || code_type == NULL ||
        gp_cpython_runtime.interpreter == NULL || gp_cpython_runtime.main_interpreter == NULL || !has_loop) {
        if (gp_cpython_runtime.loop != 0 || seen.version != 0)
            cpython_tell_unknown("is a build that lacks what is called");
        return false;
    }
    gp_cpython_runtime.is_trusted = gp_cpython_runtime.layout->version <= GP_CPYTHON_NEWEST;
    cpython_find_generators();
    gp_cpython_runtime.code_type = (uintptr_t)code_type;
    gp_cpython_runtime.thread_state(); // its own lazily bound symbols are bound now, not in the handler
    gp_gil_watch(seen.runtime);
    gp_cpython_code_watch((void (**)(void *))(void *)(code_type + GP_PY_TYPE_DEALLOC));
    gp_language_add(&language);
    // Release: partner of the acquires by the handler and the collector.
    atomic_store_explicit(&gp_language, &language, memory_order_release);
    return true;
}

static bool cpython_warns_of_forks(void)
{
    enum { FIRST = 0x030c };
    return gp_cpython_runtime.layout->version >= FIRST;
}

// Coroutines of modules are hooked when imported; coroutines already there, once they are sampled.
static int cpython_look_at_modules(void *unused)
{
    (void)unused;
    atomic_store_explicit(&gp_cpython_runtime.any_state, (uintptr_t)gp_cpython_runtime.thread_state(),
                          memory_order_relaxed);
    gp_imports_watch();
    if (!gp_cpython_is_known())
        return 0;
    gp_thread_names_watch();
    gp_locks_find();
    if (cpython_warns_of_forks())
        gp_forks_watch();
    gp_greenlet_look();
    gp_asyncio_look();
    if (atomic_load_explicit(&gp_handler_sampling, memory_order_relaxed))
        cpython_enter();
    return 0;
}

static int cpython_look_when_running(void *unused)
{
    cpython_look_at_modules(unused);
    if (gp_cpython_is_known())
        gp_imports_meet_those_there();
    return 0;
}

// While others load libraries, each dlsym() may take long: none is called where there is no interpreter.
static void cpython_attach_soon(void)
{
    if (!gp_loaded_defines("Py_AddPendingCall"))
        return;
    int (*add_call)(int (*)(void *), void *) =
        (int (*)(int (*)(void *), void *))(uintptr_t)dlsym(RTLD_DEFAULT, "Py_AddPendingCall");
    if (cpython_look() && has_api && add_call != NULL && is_initialized != NULL && is_initialized())
        add_call(cpython_look_when_running, NULL);
}

static int cpython_attach(void)
{
    if (!cpython_look() || !has_api)
        return -ENOTSUP;
    cpython_look_at_modules(NULL);
    if (!gp_cpython_is_known())
        return -ENOTSUP;
    gp_calls_watch();
    gp_pools_look();
    if (__atomic_load_n(&prof_exact_active, __ATOMIC_RELAXED) != 0)
        cpython_count_calls(true);
    return 0;
}

__attribute__((constructor)) static void cpython_load(void)
{
    const gp_core_interface_t *(*volatile first)(void) = prof_core_interface;
    if (first() != gp_core_own_interface())
        return;
    static gp_not_known_look_t later = {.look = cpython_look_later};
    gp_not_known_look_add(&later);
    atomic_store_explicit(&gp_language_attach, cpython_attach, memory_order_release);
    atomic_store_explicit(&gp_language_attach_soon, cpython_attach_soon, memory_order_release);
    if (cpython_look() && has_api && is_initialized != NULL && !is_initialized()) {
        gp_imports_prepare();
        gp_thread_names_prepare();
        if (cpython_warns_of_forks())
            gp_forks_prepare();
    }
}
