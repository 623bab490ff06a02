// SPDX-License-Identifier: MIT
// News of coroutines from runtimes and programs: births, names, and the teller.
#pragma once

#include "signal/coro_record.h"
#include "signal/language.h"
#include "signal/thread.h"

// Announce a coroutine on the stack [lo, hi) on behalf of the runtime's caller. A record that the program has made
// of this very stack itself is kept.
//   entry: its entry function, 0 = unknown.    name: NULL = none.
// Returns NULL where there is no such stack, or memory is short.
prof_coro_t *gp_coro_announce(uintptr_t lo, uintptr_t hi, uintptr_t entry, const char *name);

// The same; `caller` is shown as the creator (spawn.h), else the caller of this.
prof_coro_t *gp_coro_announce_from(uintptr_t lo, uintptr_t hi, uintptr_t entry, const char *name,
                                   const gp_park_t *caller);

// The record of the coroutine that runs on the caller's stack, which has `sp`, attaching the thread if need be; NULL
// when memory is short.
prof_coro_t *gp_coro_look_for_caller(uintptr_t sp);

// The same. Cost: ~2 ns where no language is there and the thread runs what it is known to.
static inline prof_coro_t *gp_coro_of_caller(uintptr_t sp)
{
    gp_thread_t *thread = gp_thread_self;
    bool is_plain = thread != NULL && thread->keyed && atomic_load_explicit(&gp_language, memory_order_relaxed) == NULL;
    prof_coro_t *current = is_plain ? gp_thread_current_at(thread, sp) : NULL;
    return __builtin_expect(current != NULL, 1) ? current : gp_coro_look_for_caller(sp);
}
