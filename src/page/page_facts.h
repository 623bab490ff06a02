// SPDX-License-Identifier: MIT
// Rows of weights: what has the same stack, label, state and tick is one row. So many fit on a page; where there are
// more, ticks become longer, and then labels say less, until they fit.
//
// Threads: one at a time. Signals: not safe.
#pragma once

#include "base/index.h"
#include "base/memory.h"

typedef struct gp_page_label { // numbers plus 1; 0 = none
    uint32_t coro, thread, trace, request;
} gp_page_label_t;

typedef struct gp_page_labels {
    gp_page_label_t *items; // number 0: nothing is known
    size_t count, capacity;
    gp_index_t index;
} gp_page_labels_t;

typedef struct gp_fact {
    uint32_t node, label, tick; // tick: plus 1; 0 = none
    uint16_t state, side;
    uint64_t weight_ns, samples;
    double squares_ns2; // of the samples' weights
} gp_fact_t;

// How much is left out of rows for them to fit.
typedef struct gp_coarseness {
    unsigned tick_shift; // ticks are 2^this as long
    bool no_ticks, no_threads, no_traces;
} gp_coarseness_t;

typedef struct gp_page_facts { // zero-initialized, with `limit` and `labels`, = empty
    gp_fact_t *items;
    size_t count, capacity, limit;
    gp_index_t index;
    gp_page_labels_t *labels;
    gp_coarseness_t coarse;
} gp_page_facts_t;

// Find or add. Returns GP_INDEX_NONE when memory is short.
uint32_t gp_page_label(gp_page_labels_t *labels, const gp_page_label_t *label);
void gp_page_labels_free(gp_page_labels_t *labels);

// Add to a row. Returns 0 or -ENOMEM.
int gp_page_facts_add(gp_page_facts_t *facts, const gp_fact_t *fact);

// Renumber the nodes and sort by them, then by label. Nothing is added from then on.
//   order: new number by old one.
void gp_page_facts_sort(gp_page_facts_t *facts, const uint32_t *order);
// The square root, by Newton's method: hosts need not have the mathematical library.
double gp_root_of(double square);

void gp_page_facts_free(gp_page_facts_t *facts);
