// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "base/helpers.h"
#include "report/sample_rows.h"

enum { SEEN = 1 << 14 }; // frames met lately: most are in other stacks, too

typedef struct locs {
    gp_loc_t *items;
    size_t count, capacity;
    gp_loc_t seen[SEEN];
} locs_t;

// Where memory is short, less is read ahead.
static void report_expect_add_stack(locs_t *locs, const gp_facts_stack_t *stack)
{
    for (uint32_t i = 0; i < stack->depth; i++) {
        gp_loc_t loc = stack->frames[i], *seen = &locs->seen[gp_hash_u64(loc) % SEEN];
        if (loc == *seen || GP_LOC_MODULE(loc) == GP_MODULE_PSEUDO || GP_LOC_MODULE(loc) == GP_MODULE_LANGUAGE ||
            gp_grow(&locs->items, &locs->capacity, locs->count, sizeof(*locs->items)) < 0)
            continue;
        *seen = locs->items[locs->count++] = loc;
    }
}

// Modules with many of them are begun while these are put in order.
static void report_expect_begin_modules(const gp_sample_rows_t *pass, const locs_t *locs)
{
    uint32_t *counts = calloc(pass->dataset->facts.modules.count + 1, sizeof(*counts)), number = GP_INDEX_NONE;
    for (size_t i = 0; i < locs->count && counts != NULL; i++) {
        if (i == 0 || GP_LOC_MODULE(locs->items[i]) != GP_LOC_MODULE(locs->items[i - 1]))
            number = gp_dataset_module_find(pass->dataset, GP_LOC_MODULE(locs->items[i]));
        if (number != GP_INDEX_NONE && ++counts[number] == GP_SYMBOLIZER_MANY)
            gp_symbolizer_begin(pass->builder->names.symbolizer,
                                gp_facts_module_number(&pass->builder->names, locs->items[i]));
    }
    free(counts);
}

static int report_expect_compare_locs(const void *left, const void *right)
{
    const gp_loc_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

// Hand over the addresses of the module that the first location is in. Returns how many locations have it.
static size_t report_expect_module(const gp_sample_rows_t *pass, gp_loc_t *locs, size_t count)
{
    uint32_t module = GP_LOC_MODULE(locs[0]), number = gp_facts_module_number(&pass->builder->names, locs[0]);
    size_t upto = 0, kept = 0;
    for (; upto < count && GP_LOC_MODULE(locs[upto]) == module; upto++)
        if (kept == 0 || GP_LOC_OFFSET(locs[upto]) != locs[kept - 1])
            locs[kept++] = GP_LOC_OFFSET(locs[upto]);
    if (number != GP_SYMBOLIZER_NO_MODULE)
        gp_symbolizer_expect(pass->builder->names.symbolizer, number, locs, kept);
    return upto;
}

void gp_sample_rows_expect(const gp_sample_rows_t *pass)
{
    const gp_dataset_t *dataset = pass->dataset;
    const gp_selection_t *chosen = &pass->options.selection;
    bool all = chosen->coros == NULL && chosen->traces == NULL && chosen->threads == NULL && !dataset->windowed;
    locs_t *locs = all && gp_helpers_are_allowed() ? calloc(1, sizeof(*locs)) : NULL;
    if (locs == NULL)
        return;
    for (size_t i = 0; i < dataset->facts.stacks.count; i++)
        report_expect_add_stack(locs, &dataset->facts.stacks.items[i]);
    report_expect_begin_modules(pass, locs);
    if (locs->count > 0)
        qsort(locs->items, locs->count, sizeof(*locs->items), report_expect_compare_locs);
    for (size_t done = 0; done < locs->count;)
        done += report_expect_module(pass, locs->items + done, locs->count - done);
    free(locs->items);
    free(locs);
}
