// SPDX-License-Identifier: MIT
// Scales samples to the exact CPU time of the coroutine (or, where threads were chosen, of the thread) they belong to.
//
// Model, of coroutines: the ledger knows each coroutine's CPU time exactly, samples know it with an error of
// 1/sqrt(samples). A coroutine with enough samples is a stratum of its own: its samples are scaled to its ledger, and
// only how the time is distributed within it stays a matter of chance. All other coroutines are one stratum together.
// Where ledger and samples differ by more than chance allows (a runtime without switch hooks) the samples are believed.
#pragma once

#include <stdbool.h>

#include "facts/dataset.h"

typedef struct gp_stratum {
    uint64_t samples, sampled_ns, exact_ns;
    bool own;
} gp_stratum_t;

typedef struct gp_weights_by_coroutine {
    gp_stratum_t *each; // by coroutine number, or by thread number
    gp_stratum_t rest;  // all that are no stratum of their own
    size_t count;
} gp_weights_by_coroutine_t;

// Returns 0 or -ENOMEM. Add what was chosen, then divide, then scale.
int gp_weights_by_coroutine_init(gp_weights_by_coroutine_t *strata, size_t count);
void gp_weights_by_coroutine_add_samples(gp_weights_by_coroutine_t *strata, uint32_t stratum,
                                         const gp_sampled_t *sampled);
void gp_weights_by_coroutine_add_exact(gp_weights_by_coroutine_t *strata, uint32_t stratum, uint64_t cpu_ns);

// Decide what is a stratum. total_ns: exact CPU time of everything chosen; 0 = not known: nothing is scaled.
void gp_weights_by_coroutine_divide(gp_weights_by_coroutine_t *strata, uint64_t total_ns);

// The factor of a stratum's weights.
double gp_weights_by_coroutine_factor(const gp_weights_by_coroutine_t *strata, uint32_t stratum);

void gp_weights_by_coroutine_free(gp_weights_by_coroutine_t *strata);
