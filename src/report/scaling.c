// SPDX-License-Identifier: MIT
#include "report/scaling.h"

#include <errno.h>
#include <stdlib.h>

#include "report/weights_by_coroutine.h"

// Exact CPU time of the process, or of threads; 0 = not known: what threads did in rests is in their time.
static uint64_t scaling_exact_of_threads(const gp_dataset_t *dataset, const bool *threads)
{
    uint64_t total = 0;
    if (threads == NULL)
        return gp_dataset_exact_ns(dataset);
    if (dataset->facts.counters[GP_COUNTER_RESTS] > 0)
        return 0;
    for (size_t i = 0; i < dataset->facts.threads.count; i++)
        total += threads[i] ? dataset->facts.threads.items[i].cpu_ns : 0;
    return total;
}

// Exact time of what was chosen; 0 = not known.
static uint64_t scaling_exact_of_kind(const gp_dataset_t *dataset, const gp_selection_t *selection,
                                      enum gp_sample_kind kind)
{
    bool any = selection->coros != NULL || selection->traces != NULL;
    uint64_t total = 0;
    if (dataset->windowed || ((any || kind != GP_KIND_CPU) && selection->threads != NULL))
        return 0;
    if (!any && kind == GP_KIND_CPU)
        return scaling_exact_of_threads(dataset, selection->threads);
    for (size_t i = 0; i < dataset->shares.count; i++)
        if (gp_selection_has_share(selection, &dataset->shares.items[i]))
            total += gp_dataset_share_ns(dataset, &dataset->shares.items[i], kind);
    return total;
}

static void scaling_add_shares(gp_weights_by_coroutine_t *strata, const gp_dataset_t *dataset,
                               const gp_selection_t *selection, enum gp_sample_kind kind)
{
    for (size_t i = 0; i < dataset->shares.count; i++) {
        const gp_dataset_share_t *share = &dataset->shares.items[i];
        if (!gp_selection_has_share(selection, share))
            continue;
        gp_weights_by_coroutine_add_exact(strata, share->coro, gp_dataset_share_ns(dataset, share, kind));
        if (!gp_scaling_is_loop(dataset, share->coro, kind))
            gp_weights_by_coroutine_add_samples(strata, share->coro, &share->sampled[kind]);
    }
}

static void scaling_add_threads(gp_weights_by_coroutine_t *strata, const gp_dataset_t *dataset, const bool *threads)
{
    for (size_t i = 0; i < dataset->facts.threads.count; i++)
        if (threads[i])
            gp_weights_by_coroutine_add_exact(strata, (uint32_t)i, dataset->facts.threads.items[i].cpu_ns);
    for (size_t i = 0; i < dataset->thread_sums.count; i++) {
        const gp_dataset_thread_sum_t *sum = &dataset->thread_sums.items[i];
        uint32_t thread = gp_dataset_thread_find(dataset, sum->index);
        if (thread != GP_INDEX_NONE && threads[thread])
            gp_weights_by_coroutine_add_samples(strata, thread, &sum->sampled);
    }
}

// The factors of a kind, which together make its exact time of its samples.
static int scaling_make_factors(gp_scaling_t *scaling, const gp_weights_by_coroutine_t *strata,
                                enum gp_sample_kind kind)
{
    double *factors = calloc(strata->count + 1, sizeof(*factors));
    double sum = 0;
    if (factors == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < strata->count; i++) {
        factors[i] = gp_weights_by_coroutine_factor(strata, (uint32_t)i);
        sum += factors[i] * (double)strata->each[i].sampled_ns;
    }
    for (size_t i = 0; i < strata->count && sum > 0; i++)
        factors[i] *= (double)scaling->exact_ns[kind] / sum;
    scaling->factors[kind] = factors;
    return 0;
}

static int scaling_scale_kind(gp_scaling_t *scaling, const gp_dataset_t *dataset, const gp_selection_t *selection,
                              enum gp_sample_kind kind)
{
    gp_weights_by_coroutine_t strata;
    if (scaling->exact_ns[kind] == 0)
        return 0;
    if (gp_weights_by_coroutine_init(&strata, scaling->by_thread ? dataset->facts.threads.count
                                                                 : dataset->facts.coros.count) < 0)
        return -ENOMEM;
    if (scaling->by_thread)
        scaling_add_threads(&strata, dataset, selection->threads);
    else
        scaling_add_shares(&strata, dataset, selection, kind);
    gp_weights_by_coroutine_divide(&strata, scaling->exact_ns[kind]);
    int result = scaling_make_factors(scaling, &strata, kind);
    gp_weights_by_coroutine_free(&strata);
    return result;
}

int gp_scaling_init(gp_scaling_t *scaling, const gp_dataset_t *dataset, const gp_report_options_t *options)
{
    const gp_selection_t *selection = &options->selection;
    int result = 0;
    *scaling = (gp_scaling_t){.by_thread = selection->threads != NULL};
    for (uint32_t kind = 0; kind < GP_KIND_COUNT && result == 0; kind++) {
        if (!gp_scaling_has_kind(options, kind))
            continue;
        scaling->exact_ns[kind] = scaling_exact_of_kind(dataset, selection, kind);
        for (size_t i = 0; i < dataset->shares.count; i++)
            if (gp_selection_has_share(selection, &dataset->shares.items[i]) &&
                !gp_scaling_is_loop(dataset, dataset->shares.items[i].coro, kind))
                scaling->sampled_ns[kind] += dataset->shares.items[i].sampled[kind].ns;
        result = scaling_scale_kind(scaling, dataset, selection, kind);
    }
    return result;
}

uint64_t gp_scaling_exact_ns(const gp_scaling_t *scaling)
{
    uint64_t total = 0;
    for (uint32_t kind = 0; kind < GP_KIND_COUNT; kind++)
        total += scaling->exact_ns[kind];
    return total;
}

void gp_scaling_free(gp_scaling_t *scaling)
{
    for (uint32_t kind = 0; kind < GP_KIND_COUNT; kind++)
        free(scaling->factors[kind]);
    *scaling = (gp_scaling_t){0};
}
