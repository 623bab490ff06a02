// SPDX-License-Identifier: MIT
// Spans that are over and whose id was told: a span that names one as its parent is in its trace.
//
// Model: a bounded table by id. What ends later takes the place of what ended first, of those that share a set. Of a
// process that has forked, children know what it knew, and what was open then.
//
// Threads: any. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct gp_span_slot;

typedef struct gp_span_parent { // what a span takes from the one in which it nests
    uint64_t id, request, trace[2];
    bool is_chosen;
} gp_span_parent_t;

// A span ends. Cost: ~5 ns; no lock: where two threads want one place, one of them goes without.
void gp_span_past_keep(const struct gp_span_slot *slot);

// Returns whether it is known.
bool gp_span_past_find(uint64_t id, gp_span_parent_t *parent);
