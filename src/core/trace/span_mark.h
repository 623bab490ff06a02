// SPDX-License-Identifier: MIT
// A mark tells the collector and the sinks of a span that ends, or is open.
//
// Threads: any. Signals: safe.
#pragma once

#include "trace/span_slot.h"

// The present moment, where a span of the calling coroutine begins or ends: its account is settled up to here, as far
// as it may hide a preemption (gp_slice_settle_open()). Ticks.
uint64_t gp_span_edge_now(void);

// Note in the slot, at its `begun`, where the time of its coroutine went so far, without asking the kernel: mostly raw
// words, evaluated at the end only. Preemption since the latest edge may not be known yet.
void gp_span_mark_begin(gp_span_slot_t *slot);

// Is the span's coroutine still in its record? For the collector also when the coroutine is over.
bool gp_span_is_known(const gp_span_slot_t *slot);

// Is `coro`, the calling coroutine, that of the span?
static inline bool gp_span_is_own(const gp_span_slot_t *slot, prof_coro_t *coro)
{
    return slot->coro == coro && slot->span.coro_id == atomic_load_explicit(&coro->id, memory_order_relaxed);
}

// Fill in all but the header and the text.
void gp_span_mark_fill(gp_span_mark_t *mark, const gp_span_slot_t *slot, uint64_t now);

// Put a span that was taken into the calling thread's ring, or count it as lost.
//   coro:       on which it ends; NULL = none is known.
//   more_flags: besides its own.
void gp_span_mark_send(const gp_span_slot_t *slot, prof_coro_t *coro, unsigned more_flags, uint64_t now);
