// SPDX-License-Identifier: MIT
// The switch itself, as far as it is in every switch: inline, so that a hook is one function without a call.
//
// Threads: the one that switches. Signals: not safe, but the handler may interrupt. Cost: the read of the time-stamp
// counter (6 to 17 ns), which nothing overlaps, and 7 to 15 ns.
#pragma once

#include "signal/slice.h"

// Limits below which a slice is short, ticks; set by gp_slice_init(), and 0 for a thread's own stack by
// gp_slice_nest().
extern int64_t gp_slice_long_ticks __attribute__((visibility("hidden")));
extern int64_t gp_slice_long_root_ticks __attribute__((visibility("hidden")));

// The rare part of a switch, before it: the thread's accounts are begun, the hint corrected, a long slice settled.
// Returns the coroutine that is switched away from.
prof_coro_t *gp_slice_prepare(gp_thread_t *thread, uintptr_t sp, uint64_t now) __attribute__((cold));

// Settle at the present moment, as a switch away from `coro` would, which the calling thread runs: by ticks where the
// CPU clock was read less than GP_SLICE_WINDOW_NS ago, else by that clock, as always on a thread's own stack and in
// exact mode. Not once sampling has ended. Cost: a read of the counter; beyond the window, up to three system calls.
void gp_slice_settle_as_switch(gp_thread_t *thread, prof_coro_t *coro);

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
    return gp_word32_is(&gp_ledger_edge_epoch, thread->epoch) && gp_slice_is_live(thread, current) &&
           (int64_t)(now - gp_ledger_edge_settled(current)) < ticks;
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

// The length below which a slice of `coro` is so short that no preemption can hide in it, ticks. The hint is right.
__attribute__((always_inline)) static inline int64_t gp_slice_longest(const gp_thread_t *thread,
                                                                      const prof_coro_t *coro)
{
    return coro != thread->root ? gp_slice_long_ticks : __atomic_load_n(&gp_slice_long_root_ticks, __ATOMIC_RELAXED);
}

// Or do short slices of the thread's own stack add up to what may hide one?
__attribute__((always_inline)) static inline bool gp_slice_is_pending(const gp_thread_t *thread, prof_coro_t *coro)
{
    return coro == thread->root && (int64_t)gp_ledger_edge_load(&coro->slice_ticks) >= thread->root_limit_ticks;
}

// Does the slice of `from`, the thread's current coroutine, end with nothing but its edge, if it is short enough?
__attribute__((always_inline)) static inline bool gp_slice_ends_plainly(gp_thread_t *thread, uintptr_t sp,
                                                                        prof_coro_t *from)
{
    return gp_word32_is(&gp_ledger_edge_epoch, thread->epoch) && gp_slice_is_hint_right(thread, from, sp) &&
           !gp_word8_is(&from->running, 0) && !gp_slice_is_pending(thread, from);
}

// Does the wait of `to`, since `since`, end with nothing but its edge, if it is short enough?
__attribute__((always_inline)) static inline bool gp_slice_begins_plainly(const gp_thread_t *thread, prof_coro_t *to,
                                                                          uint64_t since)
{
    return gp_word32_is(&to->epoch, thread->epoch) && gp_word8_is(&to->running, 0) && gp_word_is(&to->ready_ticks, 0) &&
           gp_word_is(&to->unsampled_from, since);
}

static inline void gp_slice_go(gp_thread_t *thread, prof_coro_t *to, uint64_t to_id, uint64_t now)
{
    gp_coro_add(&to->switches, 1);
    gp_coro_add(&thread->counters[GP_COUNTER_SWITCHES], 1);
    gp_slice_set_current(thread, to, to_id);
    atomic_store_explicit(&thread->slice_start, now, memory_order_relaxed);
    gp_slice_leave(thread);
}

// The switch of most is two edges, and nothing else. Facts for it, gathered before the clock is read: the processor
// begins nothing behind the reading until it is done, so as much as possible comes before.
typedef struct gp_slice_plain {
    prof_coro_t *from, *to;
    uint64_t since;  // when the wait of `to` began
    int64_t longest; // the slice of `from`, ticks
    uint64_t ticks;  // of that slice, once the clock is read; and then:
    int64_t left;    // of the thread's clock of waits
} gp_slice_plain_t;

// Can this be that switch? After gp_slice_enter(); `sp`: of its caller.
__attribute__((always_inline)) static inline bool gp_slice_may_be_plain(gp_thread_t *thread, uintptr_t sp,
                                                                        prof_coro_t *to, gp_slice_plain_t *plain)
{
    plain->from = atomic_load_explicit(&thread->current, memory_order_relaxed);
    plain->to = to;
    plain->since = gp_ledger_edge_load(&to->since);
    if (!gp_slice_begins_plainly(thread, to, plain->since) || !gp_slice_ends_plainly(thread, sp, plain->from))
        return false;
    plain->longest = gp_slice_longest(thread, plain->from);
    return true;
}

// Then, is it that at `now`?
__attribute__((always_inline)) static inline bool gp_slice_is_plain(gp_thread_t *thread, uint64_t now,
                                                                    gp_slice_plain_t *plain)
{
    uint64_t wait = now - plain->since;
    plain->ticks = now - gp_ledger_edge_load(&plain->from->since);
    plain->left = thread->wait.left;
    if (plain->to->kind != GP_CORO_THREAD) // a thread's own wait is its coroutines' time
        plain->left -= (int64_t)wait;
    return plain->ticks < (uint64_t)plain->longest && wait < thread->activity.least && plain->left >= 0;
}

// Then it is made so.
__attribute__((always_inline)) static inline void gp_slice_switch_plainly(gp_thread_t *thread,
                                                                          const gp_slice_plain_t *plain,
                                                                          const gp_park_t *park, uint64_t to_id,
                                                                          uint64_t now)
{
    prof_coro_t *to = plain->to, *from = plain->from;
    __asm__("" : "+r"(to), "+r"(from)); // addresses that were loaded from are not kept for the stores
    gp_ledger_edge_end_slice(from, plain->ticks);
    gp_ledger_edge_wait(from, now, park);
    thread->wait.left = plain->left; // each time: what is loaded is found faster among stores that are always the same
    gp_ledger_edge_run(to, now);
    gp_slice_go(thread, to, to_id, now);
}

// Any switch, after gp_slice_enter(). `to` is live with id `to_id`.
static inline void gp_slice_switch(gp_thread_t *thread, const gp_park_t *park, prof_coro_t *to, uint64_t to_id,
                                   uint64_t now)
{
    prof_coro_t *from = atomic_load_explicit(&thread->current, memory_order_relaxed);
    if (!gp_slice_ends_plainly(thread, park->sp, from) ||
        now - gp_ledger_edge_load(&from->since) >= (uint64_t)gp_slice_longest(thread, from))
        from = gp_slice_prepare(thread, park->sp, now);
    gp_ledger_edge_leave(from, now, park);
    gp_ledger_edge_enter(thread, to, to_id, now);
    gp_slice_go(thread, to, to_id, now);
}
