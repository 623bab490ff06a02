// SPDX-License-Identifier: MIT
// Rests of a recording: for a while nothing is sampled and no switch is seen, because its budget is spent.
//
// Model: a rest is what a process is in while nothing is profiled, but that the recording goes on: threads and
// coroutines that end, spans and changes of traces are still told to the collector. A rest lies between two sampling
// epochs (edge.h). What went on meanwhile is not known: the ledger has nothing of it, and what lies across one says so.
//
// Threads: begun and ended under the sampler's lock; read by any. Signals: safe.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

extern _Atomic bool gp_rest_is_on;

static inline bool gp_rest_is_now(void)
{
    return __builtin_expect(atomic_load_explicit(&gp_rest_is_on, memory_order_relaxed), 0);
}

typedef struct gp_rest_sums { // of all rests so far, the present one included
    uint64_t count, ns;
    uint64_t cpu_ns; // that the process used meanwhile
} gp_rest_sums_t;

// cpu_ns: what the process has used so far.
void gp_rest_begin(uint64_t cpu_ns);
void gp_rest_end(uint64_t cpu_ns);

// Was there one between `since` (ticks) and now?
bool gp_rest_overlaps(uint64_t since);

void gp_rest_read(uint64_t cpu_ns, gp_rest_sums_t *sums);

// In a forked child: those were the parent's.
void gp_rest_in_child(void);
