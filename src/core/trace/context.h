// SPDX-License-Identifier: MIT
// The trace id that a coroutine carries.
#pragma once

#include "signal/coro_record.h"

// Has any coroutine of this process ever had a trace? Then created coroutines inherit it.
extern _Atomic bool gp_trace_is_used;

// Set it, on the coroutine that calls. Time so far is of the trace before, in the ledger and the timeline.
void gp_trace_change(prof_coro_t *coro, const uint64_t trace[2]);

static inline void gp_trace_of(prof_coro_t *coro, uint64_t trace[2])
{
    for (int i = 0; i < 2; i++)
        trace[i] = atomic_load_explicit(&gp_coro_context(coro)->trace[i], memory_order_relaxed);
}
