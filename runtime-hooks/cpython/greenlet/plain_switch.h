// SPDX-License-Identifier: MIT
// The plain switch, as most are: from the last reported greenlet to one that has begun on this thread before, with
// nothing to be sampled, woken or settled.
//
// Model: inline, and without a call, in the function in place of greenlet's own, which jumps on to greenlet's and saves
// no register. gp_greenlet_leaving() does the same for all switches. The new greenlet is noted before the core's
// accounts change: until greenlet itself has changed over, a handler finds another one running than reported, and
// charges the running one.
//
// Caller holds the interpreter lock. Signals: the handler may interrupt. Cost: the read of the time-stamp counter and
// ~10 ns.
#pragma once

#include "coro/hook_cost.h"
#include "coro/switch.h"
#include "greenlet/hubs.h"
#include "greenlet/walk_parked.h"
#include "interpreter/task_step.h"
#include "signal/slice_switch.h"

typedef struct gp_plain_switch {
    prof_coro_t *to;
    uint64_t to_id, now;
    gp_slice_plain_t slice;
} gp_plain_switch_t;

// Is `from`, which runs, the last one reported, and all that runs on this thread? And is it no hub, which wakes others?
__attribute__((always_inline)) static inline bool gp_plain_switch_from(const void *from)
{
    return from == gp_greenlet_here.last && from != gp_hub_here.hub && gp_step_here.task == NULL &&
           gp_word32_is(&gp_ledger_edge_epoch, gp_greenlet_here.epoch) && gp_cpython_parked_is_known() &&
           !gp_word_is_true(&gp_language_reads);
}

// Is the coroutine of `to` known to run on this thread, where the search for it begins?
//   main: the thread's main greenlet.
__attribute__((always_inline)) static inline bool gp_plain_switch_find(const gp_thread_t *thread, const void *main,
                                                                       const gp_py_t *to, gp_plain_switch_t *plain)
{
    if (to == main) {
        plain->to = thread->root;
        plain->to_id = thread->root_id;
        return true;
    }
    const gp_greenlet_table_t *table = atomic_load_explicit(&gp_greenlet_table, memory_order_relaxed);
    if (table == NULL)
        return false;
    const gp_greenlet_t *slot = &table->slots[gp_greenlet_home(table, to)];
    __asm__("" : "+r"(slot)); // a single address, not one for each member
    if (slot->greenlet != to || slot->coro == NULL || slot->coro->hook_mark != thread->index + 1)
        return false;
    plain->to = slot->coro;
    plain->to_id = slot->coro_id;
    return true;
}

// Report the switch to `to`; it and what runs have begun and are not over. Returns false where it is none of these:
// then nothing has been done.
//   state: the thread's main greenlet, and the one that runs. sp: on the stack of the calling thread.
__attribute__((always_inline)) static inline bool gp_plain_switch(const void *const *state, const gp_py_t *to,
                                                                  uintptr_t sp)
{
    gp_thread_t *thread = gp_thread_self;
    gp_plain_switch_t plain;
    if (thread == NULL || !gp_plain_switch_from(state[1]) || !gp_plain_switch_find(thread, state[0], to, &plain))
        return false;
    __asm__("" : "+r"(plain.to)); // addresses that were loaded from are not kept, at the cost of registers
    gp_slice_enter(thread);
    if (!gp_slice_may_be_plain(thread, sp, plain.to, &plain.slice)) {
        gp_slice_leave(thread);
        return false;
    }
    plain.now = gp_ticks_counter();
    if (!gp_slice_is_plain(thread, plain.now, &plain.slice)) {
        gp_slice_leave(thread);
        return false;
    }
    gp_greenlet_here.last = to;
    atomic_signal_fence(memory_order_seq_cst);
    // No place to go on: its native stack is saved elsewhere while it is parked.
    gp_slice_switch_plainly(thread, &plain.slice, &(gp_park_t){.sp = sp}, plain.to_id, plain.now);
    return true;
}
