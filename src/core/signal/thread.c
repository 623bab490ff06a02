// SPDX-License-Identifier: MIT
#include "signal/thread.h"

#include "signal/mask.h"
#include "signal/region.h"

__thread gp_thread_t *gp_thread_self __attribute__((tls_model("initial-exec")));
__thread uint64_t gp_mask_believed __attribute__((tls_model("initial-exec")));
_Atomic(gp_thread_t *) gp_thread_list;
_Atomic bool gp_thread_nested;
_Atomic uint64_t gp_thread_orphan_counters[GP_COUNTER_COUNT];

// Last block known of each thread id modulo the table's size: a hint, checked before it is believed.
static _Atomic(gp_thread_t *) hints[1 << 15];

static bool is_live(gp_thread_t *thread, pid_t tid)
{
    return atomic_load_explicit(&thread->tid, memory_order_relaxed) == tid &&
           atomic_load_explicit(&thread->state, memory_order_acquire) == GP_THREAD_LIVE;
}

gp_thread_t *gp_thread_find(pid_t tid)
{
    _Atomic(gp_thread_t *) *hint = &hints[(unsigned)tid % (sizeof(hints) / sizeof(hints[0]))];
    gp_thread_t *hinted = atomic_load_explicit(hint, memory_order_acquire);
    if (hinted != NULL && is_live(hinted, tid))
        return hinted;
    // Acquire: partner of the release that appends a block in src/core/coro/threads.c.
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (; thread != NULL; thread = thread->next) {
        if (is_live(thread, tid)) {
            atomic_store_explicit(hint, thread, memory_order_release);
            return thread;
        }
    }
    return NULL;
}

static bool has_region(prof_coro_t *coro)
{
    return atomic_load_explicit(&coro->lo, memory_order_relaxed) !=
           atomic_load_explicit(&coro->hi, memory_order_relaxed);
}

prof_coro_t *gp_thread_coro_at(gp_thread_t *thread, uintptr_t sp, uint64_t *id, bool *outside)
{
    prof_coro_t *current = atomic_load_explicit(&thread->current, memory_order_relaxed);
    uint64_t current_id = atomic_load_explicit(&thread->current_id, memory_order_relaxed);
    *outside = false;
    bool on_own_stack = gp_region_holds(thread->root, thread->root_id, sp);
    if (current != NULL &&
        (current != thread->root || !atomic_load_explicit(&gp_thread_nested, memory_order_relaxed)) &&
        gp_region_holds(current, current_id, sp)) {
        *id = current_id;
        return current;
    }
    // A coroutine that has no stack of its own runs on the thread's: there only the hint tells.
    bool current_is_live = current != NULL && atomic_load_explicit(&current->id, memory_order_acquire) == current_id;
    if (on_own_stack && current_is_live && !has_region(current)) {
        *id = current_id;
        return current;
    }
    if (!on_own_stack || atomic_load_explicit(&gp_thread_nested, memory_order_relaxed)) {
        prof_coro_t *found = gp_region_find(sp, id);
        if (found != NULL)
            return found;
        // A stack that is shared by copying, between the word of a switch and the switch.
        prof_coro_t *sharer = atomic_load_explicit(&thread->sharer, memory_order_relaxed);
        *id = atomic_load_explicit(&thread->sharer_id, memory_order_relaxed);
        if (sharer != NULL && gp_region_holds(sharer, *id, sp))
            return sharer;
        *outside = !on_own_stack;
    }
    *id = thread->root_id;
    return thread->root;
}
