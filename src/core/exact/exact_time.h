// SPDX-License-Identifier: MIT
// The time between two events, where it is not known to have been spent on the CPU. Private to src/core/exact/*.c.
#pragma once

#include "exact/exact_stack.h"

// Charge the time since the stack's last event to the call that runs; `thread`, the calling one, is in an event on it.
// After a gap, in which it may have slept, the account of its coroutine is settled first.
//   now: gp_ticks_counter(), read a moment ago; 0: it is to be read
// Returns whether the time that comes is on the CPU until the stack is not ready any more. Signals: safe.
bool gp_exact_charge_time(gp_exact_stack_t *stack, gp_thread_t *thread, bool on_alternate_stack, uint64_t now);
