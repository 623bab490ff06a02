// The switch hook and what can be asked about a coroutine from outside.
#include "coro/registry.h"
#include "coro/threads.h"
#include "signal/slice.h"

int prof_coro_active;

void prof_coro_switch_hook(prof_coro_t *to)
{
    gp_thread_t *thread = gp_thread_self;
    if (__builtin_expect(thread == NULL, 0) && (thread = gp_thread_attach()) == NULL)
        return;
    uint64_t id = to != NULL ? atomic_load_explicit(&to->id, memory_order_acquire) : 0;
    if (id == 0) { // NULL, or a coroutine destroyed before it was switched to
        to = thread->root;
        id = thread->root_id;
    }
    gp_slice_switch(thread, (uintptr_t)__builtin_frame_address(0), to, id);
}

void prof_coro_ready(prof_coro_t *coro)
{
    if (coro != NULL && __atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED))
        atomic_store_explicit(&coro->ready_ticks, gp_ticks(), memory_order_relaxed);
}

prof_coro_t *prof_coro_current(void)
{
    prof_coro_t *coro = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
    return coro != NULL && coro->kind != GP_CORO_THREAD ? coro : NULL;
}

static prof_coro_t *settled(prof_coro_t *coro, uintptr_t sp)
{
    prof_coro_t *own = gp_coro_of_caller(sp);
    if (coro == NULL)
        coro = own;
    if (coro != NULL && coro == own && __atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED))
        gp_slice_settle_now(gp_thread_self);
    return coro;
}

uint64_t prof_coro_cpu_ns(prof_coro_t *coro)
{
    coro = settled(coro, (uintptr_t)__builtin_frame_address(0));
    return coro != NULL ? atomic_load_explicit(&coro->cpu_ns, memory_order_relaxed) : 0;
}

uint64_t prof_coro_switches(prof_coro_t *coro)
{
    coro = settled(coro, (uintptr_t)__builtin_frame_address(0));
    return coro != NULL ? atomic_load_explicit(&coro->switches, memory_order_relaxed) : 0;
}
