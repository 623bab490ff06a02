// SPDX-License-Identifier: MIT
// What a dataset keeps of long slices, and of the coroutines that had to wait meanwhile.
#include <errno.h>

#include "report/dataset_private.h"

static bool same_hog(const void *owner, uint32_t number, const void *key)
{
    return ((const gp_dataset_t *)owner)->hogs[number].id == *(const uint64_t *)key;
}

static bool is_outside(const gp_dataset_t *dataset, const gp_hog_record_t *hog)
{
    return dataset->windowed && (hog->start_ns < dataset->window.from_ns || hog->start_ns >= dataset->window.to_ns);
}

int gp_dataset_on_hog(void *context, const gp_hog_record_t *hog, const gp_hog_stack_t *stacks)
{
    gp_dataset_t *dataset = context;
    gp_dataset_seen_at(dataset, hog->start_ns + hog->duration_ns);
    if (!(dataset->keep & GP_KEEP_HOGS) || is_outside(dataset, hog))
        return 0;
    gp_hog_stack_t *copy = gp_arena_copy(&dataset->arena, stacks, hog->stack_count * sizeof(*stacks));
    size_t number = dataset->hog_count;
    gp_dataset_hog_t item = {
        .id = hog->id,
        .coro = gp_dataset_coro_quick(dataset, hog->coro_id),
        .trace = gp_dataset_trace_quick(dataset, hog->trace),
        .thread = hog->thread,
        .start_ns = hog->start_ns,
        .duration_ns = hog->duration_ns,
        .stacks = copy,
        .stack_count = hog->stack_count,
    };

    if (copy == NULL || item.coro == GP_INDEX_NONE || item.trace == GP_INDEX_NONE ||
        gp_grow(&dataset->hogs, &dataset->hog_capacity, number, sizeof(*dataset->hogs)) < 0 ||
        gp_index_add(&dataset->hog_index, gp_hash_u64(hog->id), (uint32_t)number) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < hog->stack_count; i++) {
        copy[i].stack_id = gp_dataset_stack_quick(dataset, stacks[i].stack_id);
        if (copy[i].stack_id == GP_INDEX_NONE)
            return -ENOMEM;
    }
    dataset->hogs[dataset->hog_count++] = item;
    return 0;
}

bool gp_dataset_knows_ready(const gp_dataset_t *dataset)
{
    for (size_t i = 0; i < dataset->share_count; i++)
        if (gp_ledger_kind_ns(&dataset->shares[i].ledger, GP_KIND_PARKED) > 0)
            return true;
    return dataset->tells_ready || dataset->delay_count > 0;
}

int gp_dataset_on_delay(void *context, const gp_delay_record_t *delay)
{
    gp_dataset_t *dataset = context;
    if (!(dataset->keep & GP_KEEP_HOGS))
        return 0;
    uint32_t hog = gp_index_find(&dataset->hog_index, gp_hash_u64(delay->hog_id), same_hog, dataset, &delay->hog_id);
    gp_dataset_delay_t item = {
        .hog = hog,
        .coro = gp_dataset_coro_quick(dataset, delay->coro_id),
        .trace = gp_dataset_trace_quick(dataset, delay->trace),
        .delay_ns = delay->delay_ns,
        .unseen_ns = delay->unseen_us * UINT64_C(1000),
    };

    if (hog == GP_INDEX_NONE)
        return 0; // lost with a damaged chunk, or outside the window
    if (item.coro == GP_INDEX_NONE || item.trace == GP_INDEX_NONE ||
        gp_grow(&dataset->delays, &dataset->delay_capacity, dataset->delay_count, sizeof(*dataset->delays)) < 0)
        return -ENOMEM;
    dataset->delays[dataset->delay_count++] = item;
    return 0;
}
