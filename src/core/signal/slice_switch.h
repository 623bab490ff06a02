// SPDX-License-Identifier: MIT
// The switch itself, as far as it is in every switch: inline, so that a hook is one function without a call.
//
// Threads: the one that switches. Signals: not safe, but the handler may interrupt. Cost: the read of the time-stamp
// counter (6 to 17 ns) and 5 to 7 ns.
#pragma once

#include "signal/slice.h"

// Limits below which a slice is short, ticks; set by gp_slice_init().
extern int64_t gp_slice_long_ticks __attribute__((visibility("hidden")));
extern int64_t gp_slice_long_root_ticks __attribute__((visibility("hidden")));
extern int64_t gp_slice_root_pending_ticks __attribute__((visibility("hidden")));

// What is not in every switch, before it: the thread's accounts are begun, the hint corrected, a long slice settled.
// Returns the coroutine that is switched away from.
prof_coro_t *gp_slice_prepare(gp_thread_t *thread, uintptr_t sp, uint64_t now) __attribute__((cold));

// Between these two the handler leaves the thread's accounts alone.
static inline void gp_slice_enter(gp_thread_t *thread)
{
    atomic_store_explicit(&thread->busy, true, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

static inline void gp_slice_leave(gp_thread_t *thread)
{
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&thread->busy, false, memory_order_relaxed);
}

static inline void gp_slice_set_current(gp_thread_t *thread, prof_coro_t *coro, uint64_t id)
{
    atomic_store_explicit(&thread->current, coro, memory_order_relaxed);
    atomic_store_explicit(&thread->current_id, id, memory_order_relaxed);
    atomic_store_explicit(&thread->exact_ready, NULL, memory_order_relaxed);
}

// `current`: the thread's.
static inline bool gp_slice_is_live(gp_thread_t *thread, prof_coro_t *current)
{
    return current != NULL && gp_word_is(&current->id, atomic_load_explicit(&thread->current_id, memory_order_relaxed));
}

// Are fewer than `ticks` open at `now`? Then the thread's accounts are of this epoch, and the hint is live.
static inline bool gp_slice_is_settled(gp_thread_t *thread, uint64_t now, int64_t ticks)
{
    prof_coro_t *current = atomic_load_explicit(&thread->current, memory_order_relaxed);
    return gp_word32_is(&gp_edge_epoch, thread->epoch) && gp_slice_is_live(thread, current) &&
           (int64_t)(now - gp_edge_load(&current->settled)) < ticks;
}

// The common case of gp_thread_coro_at(): the hint names a live coroutine, and `sp` is on its stack or it has none.
__attribute__((always_inline)) static inline bool gp_slice_is_hint_right(gp_thread_t *thread, prof_coro_t *current,
                                                                         uintptr_t sp)
{
    if (!gp_slice_is_live(thread, current))
        return false;
    uintptr_t lo = atomic_load_explicit(&current->lo, memory_order_relaxed);
    uintptr_t hi = atomic_load_explicit(&current->hi, memory_order_relaxed);
    return sp - lo <= hi - lo - 1; // any, where lo == hi
}

// Is a slice of `coro` so short that no preemption can hide in it? The hint is right.
__attribute__((always_inline)) static inline bool gp_slice_is_short(const gp_thread_t *thread, prof_coro_t *coro,
                                                                    int64_t ticks)
{
    if (coro != thread->root)
        return ticks < gp_slice_long_ticks;
    int64_t pending = (int64_t)(gp_edge_load(&coro->slice_ticks) - thread->coarse_root_ticks);
    return ticks < gp_slice_long_root_ticks &&
           pending < __atomic_load_n(&gp_slice_root_pending_ticks, __ATOMIC_RELAXED) &&
           !atomic_load_explicit(&gp_thread_nested, memory_order_relaxed);
}

// Does the slice of `from`, the thread's current coroutine, end at `now` with nothing but its edge? `ticks`: its
// length.
__attribute__((always_inline)) static inline bool gp_slice_ends_plainly(gp_thread_t *thread, uintptr_t sp,
                                                                        prof_coro_t *from, uint64_t now, int64_t *ticks)
{
    if (!gp_word32_is(&gp_edge_epoch, thread->epoch))
        return false;
    if (!gp_slice_is_hint_right(thread, from, sp))
        return false;
    *ticks = (int64_t)(now - gp_edge_load(&from->since));
    return *ticks >= 0 && gp_slice_is_short(thread, from, *ticks) && !gp_word8_is(&from->running, 0);
}

// Does the wait of `to` end with nothing but its edge? `left`: what is left of the thread's clock of waits after it.
__attribute__((always_inline)) static inline bool gp_slice_begins_plainly(gp_thread_t *thread, prof_coro_t *to,
                                                                          uint64_t now, int64_t *left)
{
    uint64_t since = gp_edge_load(&to->since);
    if (!gp_word32_is(&to->epoch, thread->epoch) || !gp_word8_is(&to->running, 0))
        return false;
    if (!gp_word_is(&to->ready_ticks, 0) || !gp_word_is(&to->unsampled_from, since))
        return false;
    uint64_t wait = now - since;
    if (wait >= thread->activity.least)
        return false;
    // A thread's own stack waits while its coroutines run: that is their time.
    *left = thread->wait.left - (to->kind != GP_CORO_THREAD ? (int64_t)wait : 0);
    return *left >= 0;
}

static inline void gp_slice_go(gp_thread_t *thread, prof_coro_t *to, uint64_t to_id, uint64_t now)
{
    gp_coro_add(&to->switches, 1);
    gp_coro_add(&thread->counters[GP_COUNTER_SWITCHES], 1);
    gp_slice_set_current(thread, to, to_id);
    atomic_store_explicit(&thread->slice_start, now, memory_order_relaxed);
    gp_slice_leave(thread);
}

typedef struct gp_slice_plain { // what a switch of most knows before it begins
    prof_coro_t *from;
    int64_t ticks, left;
} gp_slice_plain_t;

// Is this the switch of most, which is two edges? After gp_slice_enter(); `sp`: of its caller.
__attribute__((always_inline)) static inline bool gp_slice_is_plain(gp_thread_t *thread, uintptr_t sp, prof_coro_t *to,
                                                                    uint64_t now, gp_slice_plain_t *plain)
{
    plain->from = atomic_load_explicit(&thread->current, memory_order_relaxed);
    return gp_slice_ends_plainly(thread, sp, plain->from, now, &plain->ticks) &&
           gp_slice_begins_plainly(thread, to, now, &plain->left);
}

// Then it is made so.
__attribute__((always_inline)) static inline void gp_slice_switch_plainly(gp_thread_t *thread,
                                                                          const gp_slice_plain_t *plain,
                                                                          const gp_park_t *park, prof_coro_t *to,
                                                                          uint64_t to_id, uint64_t now)
{
    __asm__("" : "+r"(to)); // addresses that were loaded from are not kept for the stores, at the cost of registers
    gp_edge_end_slice(plain->from, (uint64_t)plain->ticks);
    gp_edge_wait(plain->from, now, park);
    thread->wait.left = plain->left;
    gp_edge_run(to, now);
    gp_slice_go(thread, to, to_id, now);
}

// Any switch, after gp_slice_enter(). `to` is live with id `to_id`.
static inline void gp_slice_switch(gp_thread_t *thread, const gp_park_t *park, prof_coro_t *to, uint64_t to_id,
                                   uint64_t now)
{
    prof_coro_t *from = atomic_load_explicit(&thread->current, memory_order_relaxed);
    int64_t ticks;
    if (!gp_slice_ends_plainly(thread, park->sp, from, now, &ticks))
        from = gp_slice_prepare(thread, park->sp, now);
    gp_edge_leave(from, now, park);
    gp_edge_enter(thread, to, to_id, now);
    gp_slice_go(thread, to, to_id, now);
}
