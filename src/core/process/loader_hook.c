// SPDX-License-Identifier: MIT
// dlclose() is interposed: what was sampled in a module is resolved before another one can be loaded in its place.
#include "process/loader_hook.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

#include "collect/collector.h"
#include "coro/process_id.h"
#include "greenprof/coro.h"
#include "greenprof/exact.h"

// The collector asks the loader which modules there are; should it not get an answer, the host goes on all the same.
enum { PATIENCE_NS = 100000000 };

typedef int close_t(void *);

static _Atomic uint32_t unloads;

static close_t *loader_hook_real(void)
{
    static close_t *_Atomic next;
    if (next == NULL)
        next = (close_t *)(uintptr_t)dlsym(RTLD_NEXT, "dlclose");
    return next;
}

uint32_t gp_loader_unloads(void)
{
    return atomic_load_explicit(&unloads, memory_order_acquire);
}

void gp_loader_put(void *handle)
{
    loader_hook_real()(handle);
}

PROF_API int dlclose(void *handle)
{
    close_t *next = loader_hook_real();
    if (__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED) && gp_process_is_open())
        gp_collector_sync_within(PATIENCE_NS);
    int result = next(handle);
    atomic_fetch_add_explicit(&unloads, 1, memory_order_release);
    // Exact mode forgets the functions of modules that are gone before others can come in their place.
    if (__atomic_load_n(&prof_exact_active, __ATOMIC_RELAXED) != 0 && gp_process_is_open())
        gp_collector_sync_within(PATIENCE_NS);
    return result;
}
