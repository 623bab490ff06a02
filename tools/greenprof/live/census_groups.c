// SPDX-License-Identifier: MIT
#include "census_groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int census_groups_compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

// The key of a group. Running coroutines were there a moment ago, the others are there now: they are kept apart.
static uint64_t census_groups_key_of(const gp_census_entry_t *entry)
{
    bool is_alone = entry->stack == 0 || entry->record->state == GP_CENSUS_RUNNING;
    return entry->stack | (is_alone ? (uint64_t)(entry->record->state + 1) << 32 : 0);
}

static int census_groups_compare_entries(const void *left, const void *right)
{
    const gp_census_entry_t *a = left, *b = right;
    int order = census_groups_compare(census_groups_key_of(a), census_groups_key_of(b));
    if (order == 0)
        order = census_groups_compare(b->record->state_ns, a->record->state_ns);
    return order != 0 ? order : census_groups_compare(a->record->coro_id, b->record->coro_id);
}

static int census_groups_compare_groups(const void *left, const void *right)
{
    const gp_census_group_t *a = left, *b = right;
    int order = census_groups_compare(b->entries->record->state_ns, a->entries->record->state_ns);
    if (order == 0)
        order = census_groups_compare(b->count, a->count);
    return order != 0 ? order : census_groups_compare(a->entries->record->coro_id, b->entries->record->coro_id);
}

static bool census_groups_is_chosen(const gp_selection_t *selection, const gp_census_entry_t *entry)
{
    return (selection->coros == NULL || selection->coros[entry->coro]) &&
           (selection->traces == NULL || selection->traces[entry->trace]);
}

static void census_groups_add(gp_census_groups_t *groups, const gp_input_t *source, const gp_census_record_t *record)
{
    const gp_dataset_t *dataset = source->dataset;
    uint32_t trace = gp_dataset_trace_index_find(dataset, record->trace);
    uint32_t stack = gp_dataset_stack_find(dataset, record->stack_id);
    gp_census_entry_t entry = {
        .record = record,
        .coro = gp_dataset_coro_find(dataset, record->coro_id),
        .trace = trace != GP_INDEX_NONE ? trace : 0,
        .stack = stack != GP_INDEX_NONE ? stack : 0,
    };
    if (entry.coro == GP_INDEX_NONE || record->state >= GP_CENSUS_STATES ||
        !census_groups_is_chosen(&source->chosen.selection, &entry))
        return;
    groups->entries[groups->entry_count++] = entry;
    if (dataset->facts.coros.items[entry.coro].record.kind == GP_CORO_THREAD)
        groups->threads++;
    else
        groups->states[record->state]++;
}

int gp_census_groups_make(gp_census_groups_t *groups, const gp_input_t *source)
{
    const gp_dataset_t *dataset = source->dataset;
    memset(groups, 0, sizeof(*groups));
    groups->entries = calloc(dataset->census.count + 1, sizeof(*groups->entries));
    groups->groups = calloc(dataset->census.count + 1, sizeof(*groups->groups));
    if (groups->entries == NULL || groups->groups == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < dataset->census.count; i++)
        census_groups_add(groups, source, &dataset->census.items[i]);
    qsort(groups->entries, groups->entry_count, sizeof(*groups->entries), census_groups_compare_entries);
    for (size_t i = 0; i < groups->entry_count; i++) {
        if (i == 0 || census_groups_key_of(&groups->entries[i]) != census_groups_key_of(&groups->entries[i - 1]))
            groups->groups[groups->group_count++].entries = &groups->entries[i];
        groups->groups[groups->group_count - 1].count++;
    }
    qsort(groups->groups, groups->group_count, sizeof(*groups->groups), census_groups_compare_groups);
    return 0;
}

void gp_census_groups_free(gp_census_groups_t *groups)
{
    free(groups->entries);
    free(groups->groups);
}
