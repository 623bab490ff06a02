// SPDX-License-Identifier: MIT
#include "report/report_stitch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t report_stitch_creator_of(const gp_dataset_t *dataset, const gp_coro_record_t *record)
{
    return record->parent_id < record->id ? gp_dataset_coro_find(dataset, record->parent_id) : GP_INDEX_NONE;
}

static void report_stitch_find(const gp_dataset_t *dataset, uint32_t coro, gp_stitch_t *stitch)
{
    uint32_t frames = 0, last = 0;
    memset(stitch, 0, sizeof(*stitch));
    for (; coro != GP_INDEX_NONE; coro = report_stitch_creator_of(dataset, &dataset->facts.coros.items[coro].record)) {
        uint32_t number = dataset->facts.coros.items[coro].spawn_stack;
        if (number == 0 || !dataset->facts.stacks.items[number].defined)
            return;
        if (number == last)
            continue;
        frames += dataset->facts.stacks.items[number].depth;
        if (stitch->count == GP_STITCH_LEVELS || frames > GP_STITCH_FRAMES) {
            stitch->is_cut = 1;
            return;
        }
        stitch->stacks[stitch->count++] = last = number;
    }
}

static bool report_stitch_same(const void *owner, uint32_t number, const void *key)
{
    return memcmp(&((const gp_stitches_t *)owner)->each[number], key, sizeof(gp_stitch_t)) == 0;
}

// The number of a sequence, found or added. GP_INDEX_NONE when memory is short.
static uint32_t report_stitch_number_of(gp_stitches_t *stitches, const gp_stitch_t *stitch)
{
    uint64_t hash = gp_hash_u64(stitch->is_cut);
    for (uint32_t i = 0; i < stitch->count; i++)
        hash = gp_hash_more(hash, stitch->stacks[i]);
    uint32_t number = gp_index_find(&stitches->index, hash, report_stitch_same, stitches, stitch);
    if (number != GP_INDEX_NONE)
        return number;
    if (gp_grow(&stitches->each, &stitches->capacity, stitches->count, sizeof(*stitches->each)) < 0 ||
        gp_index_add(&stitches->index, hash, (uint32_t)stitches->count) < 0)
        return GP_INDEX_NONE;
    stitches->each[stitches->count] = *stitch;
    return (uint32_t)stitches->count++;
}

int gp_stitches_init(gp_stitches_t *stitches, const gp_dataset_t *dataset)
{
    gp_stitch_t stitch = {.count = 0};
    memset(stitches, 0, sizeof(*stitches));
    stitches->of_coro = calloc(dataset->facts.coros.count + 1, sizeof(*stitches->of_coro));
    if (stitches->of_coro == NULL || report_stitch_number_of(stitches, &stitch) != 0)
        return -ENOMEM;
    for (uint32_t coro = 0; coro < dataset->facts.coros.count; coro++) {
        report_stitch_find(dataset, coro, &stitch);
        stitches->of_coro[coro] = report_stitch_number_of(stitches, &stitch);
        if (stitches->of_coro[coro] == GP_INDEX_NONE)
            return -ENOMEM;
    }
    return 0;
}

int gp_stitches_take(const gp_stitches_t *stitches, const gp_dataset_t *dataset, uint32_t coro,
                     const gp_stitch_taker_t *taker)
{
    if (stitches->of_coro == NULL)
        return 0;
    const gp_stitch_t *stitch = &stitches->each[stitches->of_coro[coro]];
    int result = stitch->is_cut ? taker->pseudo(taker->context, GP_STITCH_CUT) : 0;

    for (uint32_t i = stitch->count; i > 0 && result >= 0; i--) {
        result = taker->stack(taker->context, &dataset->facts.stacks.items[stitch->stacks[i - 1]]);
        if (result >= 0)
            result = taker->pseudo(taker->context, GP_STITCH_MARK);
    }
    return result;
}

void gp_stitches_free(gp_stitches_t *stitches)
{
    free(stitches->of_coro);
    free(stitches->each);
    gp_index_free(&stitches->index);
}
