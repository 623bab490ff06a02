// Scales samples to the exact CPU time of the coroutine they belong to.
//
// Model: the ledger knows each coroutine's CPU time exactly, samples know it with an error of
// 1/sqrt(samples). A coroutine with enough samples is a stratum of its own: its samples are scaled
// to its ledger, and only how the time is distributed within it stays a matter of chance. All other
// coroutines are one stratum together. Where ledger and samples differ by more than chance allows
// (a runtime whose switches nobody hooks) the samples are believed.
#ifndef GP_EXPORT_STRATA_H
#define GP_EXPORT_STRATA_H

#include <stdbool.h>

#include "export/dataset.h"

typedef struct gp_stratum {
    uint64_t samples, sampled_ns, exact_ns;
    bool own;
} gp_stratum_t;

typedef struct gp_strata {
    gp_stratum_t *coros; // by coroutine number
    gp_stratum_t rest;   // all coroutines that are no stratum of their own
} gp_strata_t;

// Returns 0 or -ENOMEM. Add what was chosen, then divide, then scale.
int gp_strata_init(gp_strata_t *strata, size_t coro_count);
void gp_strata_add_samples(gp_strata_t *strata, const gp_dataset_weight_t *weight);
void gp_strata_add_exact(gp_strata_t *strata, const gp_dataset_share_t *share);

// Decide what is a stratum. total_ns: exact CPU time of everything chosen; 0 = not known: nothing
// is scaled.
void gp_strata_divide(gp_strata_t *strata, size_t coro_count, uint64_t total_ns);

// A weight of coroutine `coro`, scaled.
uint64_t gp_strata_scale(const gp_strata_t *strata, uint32_t coro, uint64_t weight_ns);

void gp_strata_free(gp_strata_t *strata);

#endif
