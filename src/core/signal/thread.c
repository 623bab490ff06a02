// SPDX-License-Identifier: MIT
#include "signal/thread.h"

#include "signal/mask.h"
#include "signal/region.h"
#include "signal/sampling.h"

__thread gp_thread_t *gp_thread_self __attribute__((tls_model("initial-exec")));
__thread uint64_t gp_mask_believed __attribute__((tls_model("initial-exec")));
_Atomic(gp_thread_t *) gp_thread_list;
_Atomic bool gp_thread_nested;
_Atomic uint64_t gp_thread_orphan_counters[GP_COUNTER_COUNT];

_Atomic(gp_thread_t *) gp_thread_blocks[GP_THREADS_MAX];
_Atomic uint64_t gp_thread_notified[GP_THREADS_MAX / 64];
_Atomic bool gp_thread_notifies_birth;
_Atomic int gp_thread_wakes;

void gp_thread_notify_first(gp_thread_t *thread)
{
    // seq_cst on both sides: either gp_ready_threads_doze() sees the bit, or we (or gp_thread_notify_at_once()) see
    // that the collector is to be woken up.
    atomic_fetch_or(&gp_thread_notified[thread->slot / 64], 1ull << thread->slot % 64);
    if (atomic_load(&gp_thread_wakes) == GP_THREAD_WAKES_ANY)
        gp_thread_wake_collector();
}

void gp_thread_wake_collector(void)
{
    if (atomic_exchange(&gp_thread_wakes, GP_THREAD_WAKES_NONE) != GP_THREAD_WAKES_NONE && gp_handler_kick != NULL)
        gp_handler_kick();
}

// Blocks by thread id, live or not. A thread at a time changes a chain. Readers take no lock: where a chain has changed
// meanwhile they look again, as a block taken over by another thread moves to another chain.
enum { BUCKETS = 1 << 15, TRIES = 4 };
static _Atomic(gp_thread_t *) buckets[BUCKETS];
static _Atomic uint32_t changes; // odd: one is under way

static _Atomic(gp_thread_t *) *thread_bucket_of(pid_t tid)
{
    return &buckets[(unsigned)tid % BUCKETS];
}

static bool thread_is_live(gp_thread_t *thread, pid_t tid)
{
    return atomic_load_explicit(&thread->tid, memory_order_relaxed) == tid &&
           atomic_load_explicit(&thread->state, memory_order_acquire) == GP_THREAD_LIVE;
}

gp_thread_t *gp_thread_find(pid_t tid)
{
    for (int i = 0; i < TRIES; i++) {
        uint32_t before = atomic_load_explicit(&changes, memory_order_acquire);
        // Acquire: partner of the releases in gp_thread_set_tid().
        gp_thread_t *thread = atomic_load_explicit(thread_bucket_of(tid), memory_order_acquire);
        while (thread != NULL && !thread_is_live(thread, tid))
            thread = atomic_load_explicit(&thread->next_of_tid, memory_order_acquire);
        atomic_thread_fence(memory_order_acquire);
        bool is_steady = !(before & 1) && atomic_load_explicit(&changes, memory_order_relaxed) == before;
        if (thread != NULL || is_steady)
            return thread;
    }
    return NULL;
}

static void thread_unchain(gp_thread_t *thread)
{
    _Atomic(gp_thread_t *) *link = thread_bucket_of(atomic_load_explicit(&thread->tid, memory_order_relaxed));
    for (gp_thread_t *at; (at = atomic_load_explicit(link, memory_order_relaxed)) != NULL; link = &at->next_of_tid) {
        if (at == thread) {
            atomic_store_explicit(link, atomic_load_explicit(&thread->next_of_tid, memory_order_relaxed),
                                  memory_order_release);
            return;
        }
    }
}

void gp_thread_set_tid(gp_thread_t *thread, pid_t tid)
{
    _Atomic(gp_thread_t *) *bucket = thread_bucket_of(tid);
    uint32_t before = atomic_load_explicit(&changes, memory_order_relaxed);
    atomic_store_explicit(&changes, before + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    thread_unchain(thread);
    atomic_store_explicit(&thread->tid, tid, memory_order_relaxed);
    atomic_store_explicit(&thread->next_of_tid, atomic_load_explicit(bucket, memory_order_relaxed),
                          memory_order_relaxed);
    // Release: partner of the acquires in gp_thread_find().
    atomic_store_explicit(bucket, thread, memory_order_release);
    atomic_store_explicit(&changes, before + 2, memory_order_release);
}

static bool thread_has_region(prof_coro_t *coro)
{
    return atomic_load_explicit(&coro->lo, memory_order_relaxed) !=
           atomic_load_explicit(&coro->hi, memory_order_relaxed);
}

prof_coro_t *gp_thread_coro_at(gp_thread_t *thread, uintptr_t sp, uint64_t *id, bool *outside)
{
    prof_coro_t *current = atomic_load_explicit(&thread->current, memory_order_relaxed);
    uint64_t current_id = atomic_load_explicit(&thread->current_id, memory_order_relaxed);
    *outside = false;
    *id = current_id;
    prof_coro_t *at = gp_thread_current_at(thread, sp);
    if (at != NULL)
        return at;
    bool on_own_stack = gp_region_holds(thread->root, thread->root_id, sp);
    // A coroutine that has no stack of its own runs on the thread's: there only the hint tells.
    bool current_is_live = current != NULL && atomic_load_explicit(&current->id, memory_order_acquire) == current_id;
    if (on_own_stack && current_is_live && !thread_has_region(current))
        return current;
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
