// SPDX-License-Identifier: MIT
// The switch itself, as far as it is in every switch: inline, so that a hook is one function without a call.
//
// Threads: the one that switches. Signals: not safe, but the handler may interrupt. Cost: ~14 ns, of which the read of
// the time-stamp counter is 6.
#pragma once

#include "signal/slice.h"

// Limits below which a slice is short, ticks; set by gp_slice_init().
extern int64_t gp_slice_long_ticks, gp_slice_long_root_ticks, gp_slice_root_pending_ticks;

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
    return current != NULL && atomic_load_explicit(&current->id, memory_order_relaxed) ==
                                  atomic_load_explicit(&thread->current_id, memory_order_relaxed);
}

// The common case of gp_thread_coro_at(): the hint names a live coroutine, and `sp` is on its stack or it has none.
static inline bool gp_slice_is_hint_right(gp_thread_t *thread, prof_coro_t *current, uintptr_t sp)
{
    if (!gp_slice_is_live(thread, current))
        return false;
    uintptr_t lo = atomic_load_explicit(&current->lo, memory_order_relaxed);
    uintptr_t hi = atomic_load_explicit(&current->hi, memory_order_relaxed);
    return (sp - lo < hi - lo || lo == hi) &&
           !(current == thread->root && atomic_load_explicit(&gp_thread_nested, memory_order_relaxed));
}

// Is the slice of `coro` so short that no preemption can hide in it?
static inline bool gp_slice_is_short(const gp_thread_t *thread, prof_coro_t *coro, uint64_t now)
{
    int64_t ticks = (int64_t)(now - gp_edge_load(&coro->since));
    if (coro != thread->root)
        return ticks < gp_slice_long_ticks;
    int64_t pending = (int64_t)(gp_edge_load(&coro->slice_ticks) - thread->coarse_root_ticks);
    return ticks < gp_slice_long_root_ticks &&
           pending < __atomic_load_n(&gp_slice_root_pending_ticks, __ATOMIC_RELAXED);
}

// `to` is live with id `to_id`; NULL or 0: the thread's own stack.
__attribute__((always_inline)) static inline void gp_slice_switch(gp_thread_t *thread, const gp_park_t *park,
                                                                  prof_coro_t *to, uint64_t to_id)
{
    gp_slice_enter(thread);
    uint64_t now = gp_ticks();
    prof_coro_t *from = atomic_load_explicit(&thread->current, memory_order_relaxed);
    if (__builtin_expect(thread->epoch != atomic_load_explicit(&gp_edge_epoch, memory_order_relaxed) ||
                             !gp_slice_is_hint_right(thread, from, park->sp) || !gp_slice_is_short(thread, from, now),
                         0))
        from = gp_slice_prepare(thread, park->sp, now);
    gp_edge_leave(from, now, park);
    gp_coro_add(&to->switches, 1);
    gp_coro_add(&thread->counters[GP_COUNTER_SWITCHES], 1);
    gp_edge_enter(thread, to, to_id, now);
    gp_slice_set_current(thread, to, to_id);
    atomic_store_explicit(&thread->slice_start, now, memory_order_relaxed);
    gp_slice_leave(thread);
}
