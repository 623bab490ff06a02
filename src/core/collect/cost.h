// SPDX-License-Identifier: MIT
// Greenprof's cost to the program, as it measures itself.
//
// Model: four parts. The handler measures its own time. A signal's cost beside the handler (the timer's interrupt,
// delivery, return) is measured now and then, on a thread of greenprof's own. Hooks are timed where they take more than
// a switch (coro/hook_cost.h), else counted, and corrected by the share of samples in greenprof's code in the program's
// threads. And its own threads have CPU clocks. The sums are counters of captures; what the program's caches lose to it
// is in none of them.
#pragma once

#include <stdint.h>

#include "model/engines.h"

typedef struct gp_cost { // ns of CPU time since the process began
    uint64_t handler_ns, delivery_ns, hook_ns, own_ns;
    uint64_t program_ns; // of the program's threads: with the first three, without the last
    uint64_t rest_ns;    // of that: while recording rested
    uint64_t switches, signals;
} gp_cost_t;

static inline uint64_t gp_cost_sum(const gp_cost_t *cost)
{
    return cost->handler_ns + cost->delivery_ns + cost->hook_ns + cost->own_ns;
}

// CPU time of the program's threads without greenprof.
static inline uint64_t gp_cost_base_ns(const gp_cost_t *cost)
{
    uint64_t ours = cost->handler_ns + cost->delivery_ns + cost->hook_ns;
    return cost->program_ns > ours ? cost->program_ns - ours : 0;
}

// Find greenprof's own code. Before the first sample; idempotent.
void gp_cost_begin(void);

// Caller holds the drain lock. Cost: ~2 us, and ~10 ns a thread.
void gp_cost_read(gp_cost_t *cost);

// Cost of hooks, from hit_ns of samples in greenprof's code, all samples, and switches.
//   more_ns: see gp_hook_cost_more_ns().
uint64_t gp_cost_hooks_ns(uint64_t hit_ns, uint64_t switches, int64_t more_ns, uint64_t samples, uint64_t sampled_ns);

// A signal's cost beside the handler, ns, by the latest measurement; 0 = it was not measured.
uint64_t gp_cost_delivery_ns(void);

// The cost of the first so many signals of this process, each at the price of its time; before the first measurement,
// at its price.
uint64_t gp_cost_delivery_of(uint64_t signals);

// Take the figure from another process.
void gp_cost_set_delivery(uint64_t ns);

// Measure it, on the calling thread, which is greenprof's own and blocks all signals; a later figure is the mean of
// this one and the one before. signals_so_far: of this process. Threads: the collector's. Cost: ~20 ms.
void gp_cost_calibrate(enum gp_engine engine, uint64_t signals_so_far);

// In a forked child: its signals are counted anew.
void gp_cost_delivery_in_child(void);
