// SPDX-License-Identifier: MIT
// The option slower=: spans of a trace are held back until one of its requests in this process is over, and go on only
// where the request took long enough, or was asked for. The policy slower= does the same for all consumers.
//
// Model: the held spans are bounded; the oldest trace gives way. Spans that come after a slow request go through. Where
// several requests of one trace overlap in this process, a slow one keeps the trace's held spans. Threads: the
// collector's. Signals: not safe.
#pragma once

#include "consumer/packed_span.h"

typedef struct gp_hold {
    uint64_t least_ns; // 0: nothing is held
    struct gp_held_trace *table;
    size_t bytes; // held
    uint64_t clock;
} gp_hold_t;

void gp_hold_begin(gp_hold_t *hold, uint64_t least_ns);

// Hold a span, or let it and what is held of its trace go.
//   give: called for each span that goes on, the oldest first.
// Returns how many were left out.
uint64_t gp_hold_add(gp_hold_t *hold, const gp_packed_span_t *packed,
                     void (*give)(void *context, const gp_packed_span_t *), void *context);

// Forget all of it; returns how many spans that were.
uint64_t gp_hold_end(gp_hold_t *hold);
