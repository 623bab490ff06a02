// SPDX-License-Identifier: MIT
// The coroutines with the most time: the only ones that some formats show apart.
#include <errno.h>
#include <stdlib.h>

#include "report/sample_rows.h"

typedef struct heaviest {
    gp_sample_rows_t *pass;
    double *ns; // by coroutine
} heaviest_t;

static int report_heaviest_take_samples(void *context, const gp_sample_record_t *samples, size_t count)
{
    heaviest_t *heaviest = context;
    gp_sample_rows_sample_t seen;
    for (size_t i = 0; i < count; i++) {
        int result = gp_sample_rows_look(heaviest->pass, &samples[i], &seen);
        if (result < 0)
            return result;
        if (result > 0 && seen.path != GP_INDEX_NONE)
            heaviest->ns[seen.coro] += seen.ns;
    }
    return 0;
}

// Sums are enough, unless threads or functions were chosen.
static int report_heaviest_weigh(heaviest_t *heaviest)
{
    gp_sample_rows_t *pass = heaviest->pass;
    const gp_dataset_t *dataset = pass->dataset;
    const gp_report_options_t *options = &pass->options;
    const gp_reader_handlers_t handlers = {.samples = report_heaviest_take_samples};
    if (options->stacks.focus_count > 0 || options->stacks.ignore_count > 0 || options->selection.threads != NULL)
        return gp_dataset_read_for(dataset, &handlers, heaviest);
    for (size_t i = 0; i < dataset->shares.count; i++) {
        const gp_dataset_share_t *share = &dataset->shares.items[i];
        for (uint32_t kind = 0; kind < GP_KIND_COUNT; kind++)
            if (gp_scaling_has_kind(options, kind) && gp_selection_has_share(&options->selection, share))
                heaviest->ns[share->coro] += (double)share->sampled[kind].ns *
                                             gp_scaling_factor(&pass->scaling, kind, share->coro, GP_INDEX_NONE);
    }
    return 0;
}

// Mark the heaviest coroutines, one after the other: they are few.
static void report_heaviest_mark(const heaviest_t *heaviest)
{
    for (size_t left = GP_HEAVIEST_MAX; left > 0; left--) {
        size_t best = 0;
        for (size_t i = 0; i < heaviest->pass->dataset->facts.coros.count; i++)
            if (heaviest->ns[i] > heaviest->ns[best])
                best = i;
        if (!(heaviest->ns[best] > 0))
            break;
        heaviest->pass->heaviest[best] = true;
        heaviest->ns[best] = 0;
    }
}

int gp_sample_rows_find_heaviest(gp_sample_rows_t *pass)
{
    size_t count = pass->dataset->facts.coros.count + 1;
    heaviest_t heaviest = {.pass = pass, .ns = calloc(count, sizeof(double))};
    int result = -ENOMEM;
    pass->heaviest = calloc(count, sizeof(*pass->heaviest));
    if (heaviest.ns != NULL && pass->heaviest != NULL)
        result = report_heaviest_weigh(&heaviest);
    if (result == 0)
        report_heaviest_mark(&heaviest);
    free(heaviest.ns);
    return result;
}
