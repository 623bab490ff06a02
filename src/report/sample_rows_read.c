// SPDX-License-Identifier: MIT
// The samples of a capture, read again and added up.
#include <stdlib.h>

#include "report/sample_rows.h"

enum { PLAIN_BLOCK = 256 };

// Sum of the squares of the weights, as sampled.
static double sample_rows_read_squares_of(const gp_sample_rows_t *pass, const gp_sample_record_t *sample)
{
    const gp_sum_record_t *sum = gp_dataset_sum_of(pass->dataset, sample);
    return sum != NULL ? sum->squares_ns2 : (double)sample->weight_ns * (double)sample->weight_ns;
}

static void sample_rows_read_add_group_sum(const gp_group_sums_t *sums, const gp_sample_record_t *sample,
                                           const gp_sample_rows_sample_t *seen, double squares)
{
    gp_group_sum_t *sum = &sums->items[sums->by_trace ? seen->trace : seen->coro];
    sum->ns += sample->weight_ns;
    sum->samples += seen->samples;
    sum->squares += squares;
}

static int sample_rows_read_take(gp_sample_rows_t *pass, const gp_sample_record_t *sample)
{
    gp_sample_rows_sample_t seen;
    int result = gp_sample_rows_look(pass, sample, &seen);
    if (result <= 0)
        return result;
    if (seen.path == GP_INDEX_NONE) {
        pass->sums.left_out_ns += seen.ns;
        return 0;
    }
    pass->sums.kept_ns += seen.ns;
    pass->sums.samples += seen.samples;
    if (pass->coros_seen != NULL)
        pass->coros_seen[seen.coro] = true;
    if (sample->kind == GP_KIND_CPU) {
        double squares = sample_rows_read_squares_of(pass, sample);
        pass->sums.sampled_ns += sample->weight_ns;
        pass->sums.squares += squares;
        if (pass->options.sums != NULL)
            sample_rows_read_add_group_sum(pass->options.sums, sample, &seen, squares);
    }
    return gp_sample_rows_weigh_sample(pass, sample, &seen);
}

static int sample_rows_read_take_samples(void *context, const gp_sample_record_t *samples, size_t count)
{
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++)
        result = sample_rows_read_take(context, &samples[i]);
    return result;
}

// On-CPU samples of one group, whole as they are, with nothing above their stacks.
static bool sample_rows_read_is_plain(const gp_sample_rows_t *pass)
{
    const gp_report_options_t *options = &pass->options;
    return pass->last_owner == NULL && options->measure == GP_MEASURE_CPU && options->sums == NULL &&
           options->selection.threads == NULL && options->selection.traces == NULL && !pass->by_trace &&
           pass->coros_seen == NULL && pass->stitches.of_coro == NULL && pass->dataset->sums.count == 0 &&
           !pass->dataset->windowed && pass->dataset->lives == NULL;
}

// The factor of a coroutine's plain samples; below zero: they are not chosen.
static double sample_rows_read_plain_factor(const gp_sample_rows_t *pass, uint64_t coro_id)
{
    const bool *chosen = pass->options.selection.coros;
    uint32_t coro = gp_dataset_coro_find(pass->dataset, coro_id);
    if (coro == GP_INDEX_NONE || (chosen != NULL && !chosen[coro]))
        return -1;
    return gp_scaling_factor(&pass->scaling, GP_KIND_CPU, coro, GP_INDEX_NONE);
}

// Where the weights of on-CPU stacks that were seen before are, GP_INDEX_NONE for others. They are not all in the
// nearest cache, so that they are asked for together.
static void sample_rows_read_find_weights(const gp_sample_rows_t *pass, const gp_sample_record_t *samples, size_t count,
                                          uint32_t *found)
{
    const gp_sample_rows_weight_t *items = pass->weights.items;
    const gp_id_map_t *stacks = &pass->dataset->facts.stacks.table.map;
    const uint32_t *paths = pass->paths; // on-CPU ones are the first
    size_t known = pass->weights.count;
    for (size_t i = 0; i < count; i++) {
        uint32_t stack = gp_id_map_find(stacks, samples[i].stack_id);
        size_t number = stack != GP_INDEX_NONE ? (size_t)paths[stack] - GP_PATH_FIRST : SIZE_MAX;
        found[i] = number < known ? (uint32_t)number : GP_INDEX_NONE;
        if (number < known)
            gp_prefetch(&items[number]);
    }
}

// sample_rows_read_take_samples() for at most PLAIN_BLOCK plain ones: of most nothing is asked but where their stack's
// weight is.
static int sample_rows_read_take_plain_block(gp_sample_rows_t *pass, const gp_sample_record_t *samples, size_t count)
{
    gp_sample_rows_sums_t sums = pass->sums;
    uint64_t coro_id = ~samples->coro_id;
    uint32_t weights[PLAIN_BLOCK];
    double factor = -1;
    int result = 0;
    sample_rows_read_find_weights(pass, samples, count, weights);
    for (size_t i = 0; i < count && result == 0; i++) {
        const gp_sample_record_t *sample = &samples[i];
        if (sample->coro_id != coro_id) { // a coroutine mostly has several in a row
            coro_id = sample->coro_id;
            factor = sample_rows_read_plain_factor(pass, coro_id);
        }
        if (factor < 0 || sample->kind != GP_KIND_CPU)
            continue;
        if (weights[i] == GP_INDEX_NONE) {
            pass->sums = sums;
            result = sample_rows_read_take(pass, sample);
            sums = pass->sums;
            continue;
        }
        double sampled_ns = (double)sample->weight_ns, ns = sampled_ns * factor;
        gp_sample_rows_add_weight(&pass->weights.items[weights[i]], 1, ns, ns * ns);
        sums.kept_ns += ns;
        sums.samples++;
        sums.sampled_ns += sample->weight_ns;
        sums.squares += sampled_ns * sampled_ns;
    }
    pass->sums = sums;
    return result;
}

static int sample_rows_read_take_plain(void *context, const gp_sample_record_t *samples, size_t count)
{
    int result = 0;
    for (size_t done = 0, block; done < count && result == 0; done += block) {
        block = count - done < PLAIN_BLOCK ? count - done : PLAIN_BLOCK;
        result = sample_rows_read_take_plain_block(context, samples + done, block);
    }
    return result;
}

void gp_sample_rows_begin_reading(gp_sample_rows_t *pass, gp_reading_t *reading)
{
    static const gp_reader_handlers_t plain = {.samples = sample_rows_read_take_plain, .sample_words = GP_PLAIN_WORDS};
    static const gp_reader_handlers_t any = {.samples = sample_rows_read_take_samples};
    gp_sample_rows_expect(pass);
    gp_reading_add(reading, sample_rows_read_is_plain(pass) ? &plain : &any, pass);
}

int gp_sample_rows_end_reading(gp_sample_rows_t *pass)
{
    int result = gp_sample_rows_weigh_waiting(pass);
    if (result == 0 && pass->spill.count > 0)
        result = gp_sample_rows_spill(pass);
    // All groups are found.
    gp_index_free(&pass->group_index);
    gp_index_free(&pass->owner_index);
    free(pass->last_owner);
    free(pass->owners);
    pass->last_owner = NULL;
    pass->owners = NULL;
    return result;
}
