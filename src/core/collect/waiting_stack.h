// SPDX-License-Identifier: MIT
// Stacks of waiting coroutines, and of sleeping threads, seen from another thread.
//
// Model: the stack is copied (with a system call that reports a bad address instead of faulting: the coroutine may be
// destroyed meanwhile), pointers within it are moved along, and the copy is walked while the loader unmaps no module.
// The walk counts only if the coroutine was not switched to in between. Caller holds the drain lock everywhere.
// Signals: not safe.
#pragma once

#include "collect/sink.h"

typedef union gp_sample_buffer { // a sample with room for its frames
    gp_sample_t sample;
    unsigned char bytes[sizeof(gp_sample_t) + GP_UNWIND_DEPTH_DEFAULT * sizeof(uintptr_t)];
} gp_sample_buffer_t;

// Walk the stack of a coroutine that waits.
//   frames: uintptr_t[max], innermost first, as gp_unwind_walk_parked() gives them. flags: enum gp_unwind_flag.
// Returns the number of frames; 0 where it has not run yet, has no stack of its own or where it parked is not known;
// -EAGAIN where it runs, or was switched to meanwhile. Cost: ~2 us.
int gp_waiting_stack_walk(prof_coro_t *coro, uintptr_t *frames, size_t max, unsigned *flags);

// The same from given registers (regs->gp is not used), on a stack that ends at `hi`; whether it was left alone
// meanwhile is for the caller to find out. exact: regs->pc is where it stands, not where a call will return to.
size_t gp_waiting_stack_walk_from(const gp_unwind_regs_t *regs, bool exact, uintptr_t hi, uintptr_t *frames, size_t max,
                                  unsigned *flags);

// Scope and trace of another thread's coroutine, for its sample.
uint32_t gp_waiting_stack_scope(prof_coro_t *coro);
void gp_waiting_stack_trace(prof_coro_t *coro, uint64_t trace[2]);

// Is a coroutine that waits over, as its stack is not there any more, or was written to? Then its wait is taken back
// (gp_coro_forsake()).
//   may_retire: retire its record, too, where nothing else can name it.
// Cost: ~0.5 us.
bool gp_waiting_stack_is_forsaken(prof_coro_t *coro, bool may_retire);

// Hand on what a wait in progress was so far, if it is at least `least_ticks` and not in samples yet.
void gp_waiting_stack_take(prof_coro_t *coro, uint64_t least_ticks);
