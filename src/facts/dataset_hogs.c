// SPDX-License-Identifier: MIT
// Long slices in a dataset, and the coroutines that had to wait meanwhile.
#include <errno.h>

#include "facts/dataset_private.h"

static bool dataset_hogs_is_outside(const gp_dataset_t *dataset, const gp_hog_record_t *hog)
{
    return dataset->windowed && (hog->start_ns < dataset->window.from_ns || hog->start_ns >= dataset->window.to_ns);
}

int gp_dataset_on_hog(void *context, const gp_hog_record_t *hog, const gp_hog_stack_t *stacks)
{
    gp_dataset_t *dataset = context;
    gp_facts_seen_at(&dataset->facts, hog->start_ns + hog->duration_ns);
    if (!(dataset->keep & GP_KEEP_HOGS) || dataset_hogs_is_outside(dataset, hog))
        return 0;
    gp_hog_stack_t *copy = gp_arena_copy(&dataset->arena, stacks, hog->stack_count * sizeof(*stacks));
    const gp_dataset_hog_t item = {
        .id = hog->id,
        .coro = gp_dataset_coro_need(dataset, hog->coro_id),
        .trace = gp_dataset_trace_need(dataset, hog->trace),
        .thread = hog->thread,
        .start_ns = hog->start_ns,
        .duration_ns = hog->duration_ns,
        .stacks = copy,
        .stack_count = hog->stack_count,
    };
    if (copy == NULL || item.coro == GP_INDEX_NONE || item.trace == GP_INDEX_NONE)
        return -ENOMEM;
    for (uint32_t i = 0; i < hog->stack_count; i++) {
        copy[i].stack_id = gp_dataset_stack_need(dataset, stacks[i].stack_id);
        if (copy[i].stack_id == GP_INDEX_NONE)
            return -ENOMEM;
    }
    uint32_t number = gp_table_add(&dataset->hogs.table, hog->id);
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    dataset->hogs.items[number] = item;
    return 0;
}

bool gp_dataset_knows_ready(const gp_dataset_t *dataset)
{
    for (size_t i = 0; i < dataset->shares.count; i++)
        if (gp_ledger_kind_ns(&dataset->shares.items[i].ledger, GP_KIND_PARKED) > 0)
            return true;
    return dataset->tells_ready || dataset->delays.count > 0;
}

int gp_dataset_on_delay(void *context, const gp_delay_record_t *delay)
{
    gp_dataset_t *dataset = context;
    if (!(dataset->keep & GP_KEEP_HOGS))
        return 0;
    uint32_t hog = gp_table_find(&dataset->hogs.table, delay->hog_id), number;
    const gp_dataset_delay_t item = {
        .hog = hog,
        .coro = gp_dataset_coro_need(dataset, delay->coro_id),
        .trace = gp_dataset_trace_need(dataset, delay->trace),
        .delay_ns = delay->delay_ns,
        .unseen_ns = delay->unseen_us * UINT64_C(1000),
    };

    if (hog == GP_INDEX_NONE)
        return 0; // lost with a damaged chunk, or outside the window
    if (item.coro == GP_INDEX_NONE || item.trace == GP_INDEX_NONE ||
        (number = gp_table_append(&dataset->delays.table)) == GP_INDEX_NONE)
        return -ENOMEM;
    dataset->delays.items[number] = item;
    return 0;
}
