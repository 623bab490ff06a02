// SPDX-License-Identifier: MIT
// The factor of each sample, so that samples add up to the exact time of the chosen part.
//
// Model: made of a dataset's sums and its ledger before the samples are read again. Where exact time
// is not known, samples stay as they are. Threads: immutable after gp_scaling_init().
#pragma once

#include "report/report_options.h"

typedef struct gp_scaling {             // zero-initialized may be freed
    uint64_t exact_ns[GP_KIND_COUNT];   // of what was chosen; 0 = not known
    uint64_t sampled_ns[GP_KIND_COUNT]; // of the chosen coroutines and traces, on any thread
    double *factors[GP_KIND_COUNT];     // by coroutine, or by thread; NULL = all 1
    bool by_thread;                     // they are by thread
} gp_scaling_t;

// Returns 0 or -ENOMEM.
int gp_scaling_init(gp_scaling_t *scaling, const gp_dataset_t *dataset, const gp_report_options_t *options);

//   coro, thread: numbers; thread GP_INDEX_NONE where it is not known.
static inline double gp_scaling_factor(const gp_scaling_t *scaling, uint32_t kind, uint32_t coro, uint32_t thread)
{
    uint32_t stratum = scaling->by_thread ? thread : coro;
    return scaling->factors[kind] != NULL && stratum != GP_INDEX_NONE ? scaling->factors[kind][stratum] : 1;
}

// All kinds together.
uint64_t gp_scaling_exact_ns(const gp_scaling_t *scaling);

// Whether samples of a kind are shown, and those of a coroutine: while an event loop's thread could
// not run, its coroutines were preempted, too. Not so of a thread that has none.
static inline bool gp_scaling_has_kind(const gp_report_options_t *options, uint32_t kind)
{
    return kind == GP_KIND_CPU || options->measure == GP_MEASURE_WALL;
}

//   coro: number.
static inline bool gp_scaling_is_loop(const gp_dataset_t *dataset, uint32_t coro, uint32_t kind)
{
    return kind == GP_KIND_PREEMPTED && dataset->facts.coros.items[coro].record.kind == GP_CORO_THREAD &&
           !gp_dataset_is_ordinary(dataset, coro);
}

void gp_scaling_free(gp_scaling_t *scaling);
