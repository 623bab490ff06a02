// SPDX-License-Identifier: MIT
#include "report/weights_by_coroutine.h"

#include <errno.h>
#include <stdlib.h>

enum {
    SAMPLES_MIN = 10,   // fewer say too little about what a coroutine did
    SIGMAS_TRUSTED = 5, // ledger and samples apart by more than this: the ledger did not see the switches
};

int gp_weights_by_coroutine_init(gp_weights_by_coroutine_t *strata, size_t count)
{
    *strata = (gp_weights_by_coroutine_t){.each = calloc(count + 1, sizeof(gp_stratum_t)), .count = count};
    return strata->each != NULL ? 0 : -ENOMEM;
}

void gp_weights_by_coroutine_add_samples(gp_weights_by_coroutine_t *strata, uint32_t stratum,
                                         const gp_sampled_t *sampled)
{
    strata->each[stratum].samples += sampled->samples;
    strata->each[stratum].sampled_ns += sampled->ns;
}

void gp_weights_by_coroutine_add_exact(gp_weights_by_coroutine_t *strata, uint32_t stratum, uint64_t cpu_ns)
{
    strata->each[stratum].exact_ns += cpu_ns;
}

static bool weights_by_coroutine_is_own(const gp_stratum_t *stratum)
{
    double sampled = (double)stratum->sampled_ns, exact = (double)stratum->exact_ns;
    if (stratum->sampled_ns > 0 && stratum->sampled_ns == stratum->exact_ns)
        return true;
    if (stratum->samples < SAMPLES_MIN || stratum->exact_ns == 0 || stratum->sampled_ns == 0)
        return false;
    // (sampled - exact)^2 <= (SIGMAS * sampled)^2 / samples
    double apart = (sampled - exact) / sampled;
    return apart * apart * (double)stratum->samples <= SIGMAS_TRUSTED * SIGMAS_TRUSTED;
}

void gp_weights_by_coroutine_divide(gp_weights_by_coroutine_t *strata, uint64_t total_ns)
{
    uint64_t own_ns = 0;
    gp_stratum_t *rest = &strata->rest;
    for (size_t i = 0; i < strata->count; i++) {
        gp_stratum_t *stratum = &strata->each[i];
        stratum->own = total_ns > 0 && weights_by_coroutine_is_own(stratum);
        if (stratum->own) {
            own_ns += stratum->exact_ns;
        } else {
            rest->samples += stratum->samples;
            rest->sampled_ns += stratum->sampled_ns;
        }
    }
    rest->exact_ns = total_ns > own_ns ? total_ns - own_ns : 0;
    // The rest's exact time is what others leave over; where it has hardly any samples that difference is all noise.
    rest->own = rest->samples >= SAMPLES_MIN && weights_by_coroutine_is_own(rest);
}

double gp_weights_by_coroutine_factor(const gp_weights_by_coroutine_t *strata, uint32_t stratum)
{
    const gp_stratum_t *from = strata->each[stratum].own ? &strata->each[stratum] : &strata->rest;
    return from->own ? (double)from->exact_ns / (double)from->sampled_ns : 1;
}

void gp_weights_by_coroutine_free(gp_weights_by_coroutine_t *strata)
{
    free(strata->each);
}
