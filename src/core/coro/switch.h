// SPDX-License-Identifier: MIT
// The hook's call right before a stack switch, while profiles run (prof_coro_active).
//
// `park` is where the caller will go on when it is switched back to: its stack is walked from there while it is parked.
// Threads: the one that switches. Signals: not safe, but the handler may interrupt. Cost: 14 to 28 ns.
#pragma once

#include <stdbool.h>

#include "signal/slice.h"

// Switch to `to`, live with id `to_id`; NULL or 0: the thread's own stack.
void gp_switch_to(prof_coro_t *to, uint64_t to_id, const gp_park_t *park);

// The core came into a running program: switches may lead to older coroutines, which nothing announced. Hooks that know
// their stacks announce them then.
extern _Atomic bool gp_switch_meets_early __attribute__((visibility("hidden")));

// Why a switch is not what most are; 0 = nothing of that. Each bit is written by one that knows.
enum {
    GP_SWITCH_RESTS = 1,   // nothing is sampled, or the processor's counter is not the clock: by the sampler
    GP_SWITCH_SHOWN = 2,   // to readers outside of the process: coro/otel_thread_context.c
    GP_SWITCH_SHARERS = 4, // a coroutine shared a stack before: prof_coro_create_shared()
};
extern _Atomic uint32_t gp_switch_special __attribute__((visibility("hidden")));

// Switch to whichever stack holds `target_sp`: the youngest coroutine there, else the thread's own stack.
void gp_switch_to_stack(uintptr_t target_sp, const gp_park_t *park);

// See prof_coro_switch_ontop().
void gp_switch_ontop(uintptr_t target_sp, uintptr_t record, const gp_park_t *park);
