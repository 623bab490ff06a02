// SPDX-License-Identifier: MIT
// Rests of a recording: for a while nothing is sampled and no switch is seen, because its budget is spent.
//
// Model: a rest is the state of a process in which nothing is profiled while the recording goes on: ends of threads and
// coroutines, spans and changes of traces are still told to the collector. A rest lies between two sampling epochs
// (ledger_edges.h). Nothing is known of the time in between: the ledger leaves it out, and spans of time across a rest
// are marked.
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
