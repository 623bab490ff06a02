// SPDX-License-Identifier: MIT
// The stack of a ring's sample as locations, and its time by kinds: for the collector, and for greenprof recover.
//
// Threads: any, an object belongs to one at a time. Signals: not safe.
#pragma once

#include "model/ring_record.h"

typedef struct gp_stack { // a sample's stack, as locations
    const gp_loc_t *locs; // [depth], innermost first
    size_t depth;
    unsigned flags; // enum gp_stack_flag
} gp_stack_t;

typedef struct gp_share { // what of a sample's time is of one kind
    enum gp_sample_kind kind;
    uint64_t weight_ns;
} gp_share_t;

typedef struct gp_locator { // where frames are
    // Returns the location of a frame word; GP_LOC_OWN; of a language's frame also GP_LOC_CUT.
    gp_loc_t (*locate)(void *context, uintptr_t word);
    void *context;
    uint64_t entry[2]; // [lo, hi) of greenprof's own code that a thread's stack begins with
} gp_locator_t;

enum { GP_RING_STACK_MORE = 4 }; // pseudo-frames that a stack may have besides its own frames

// Locate a sample's frames, greenprof's own left out.
//   locs:  room for the sample's depth + GP_RING_STACK_MORE.
//   stack: set; it points to `locs`.
void gp_ring_stack(const gp_sample_t *sample, const gp_locator_t *locator, gp_loc_t *locs, gp_stack_t *stack);

// Divide a sample's time, or a wait's, by kinds. A kind without time is left out, except running. Returns how many
// there are.
size_t gp_ring_shares(const gp_sample_t *sample, enum gp_ring_type type, gp_share_t shares[2]);
