// SPDX-License-Identifier: MIT
// Requests that are watched: the watcher hears where each begins and where it ends.
//
// Threads: any. Signals: not safe.
#pragma once

#include "trace/span_slot.h"

// The slot is the caller's, and filled in.
void gp_span_watch_begin(gp_span_slot_t *slot, bool has_parent);

// The slot is the caller's. In a forked child, the parent goes on with what began before.
//   end: what is not known of the slot.
void gp_span_watch_end_watched(gp_span_slot_t *slot, gp_request_end_t end, uint64_t now);

static inline void gp_span_watch_end(gp_span_slot_t *slot, gp_request_end_t end, uint64_t now)
{
    if (__builtin_expect(slot->watched != NULL, 0))
        gp_span_watch_end_watched(slot, end, now);
}
