// SPDX-License-Identifier: MIT
// Coroutines that are over while their thread is still on their stack.
#include "coro/threads.h"
#include "interpose/interpose.h"
#include "signal/region.h"

void gp_hook_retire_ended(gp_thread_t *thread, uintptr_t sp)
{
    prof_coro_t *ended = thread->ended.coro;
    if (ended == NULL || gp_region_holds(ended, thread->ended.id, sp))
        return;
    thread->ended.coro = NULL;
    if (atomic_load_explicit(&ended->id, memory_order_relaxed) == thread->ended.id)
        gp_coro_retire(ended);
}

void gp_hook_ends(gp_thread_t *thread, prof_coro_t *coro, uint64_t id, uintptr_t sp)
{
    gp_hook_retire_ended(thread, sp);
    gp_coro_ends(coro, id);
    thread->ended.coro = coro;
    thread->ended.id = id;
}
