// SPDX-License-Identifier: MIT
// Ranges that lie in one another: which one is innermost where.
#include "symbol/dwarf_unit.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"

int gp_dwarf_ranges_add(gp_dwarf_ranges_t *ranges, const gp_dwarf_range_t *range)
{
    if (gp_grow(&ranges->items, &ranges->capacity, ranges->count, sizeof(*ranges->items)) < 0)
        return -ENOMEM;
    ranges->items[ranges->count++] = *range;
    return 0;
}

// By start, then the larger first (it is the outer one), then by nesting.
static int compare_ranges(const void *left, const void *right)
{
    const gp_dwarf_range_t *a = left, *b = right;
    if (a->lo != b->lo)
        return a->lo < b->lo ? -1 : 1;
    if (a->hi != b->hi)
        return a->hi > b->hi ? -1 : 1;
    return a->depth < b->depth ? -1 : a->depth > b->depth;
}

typedef struct sweep {
    gp_dwarf_ranges_t made; // disjoint
    size_t *open;           // ranges that hold the position, the innermost last
    size_t depth;
    uint64_t position;
} sweep_t;

static int emit(sweep_t *sweep, uint64_t end, const gp_dwarf_range_t *range)
{
    gp_dwarf_range_t piece = *range;
    if (sweep->position >= end)
        return 0;
    piece.lo = sweep->position;
    piece.hi = sweep->position = end;
    return gp_dwarf_ranges_add(&sweep->made, &piece);
}

// Close what ends at or before `upto`, then cut the innermost one that goes on.
static int advance(sweep_t *sweep, const gp_dwarf_range_t *ranges, uint64_t upto)
{
    int result = 0;
    for (; sweep->depth > 0 && result == 0; sweep->depth--) {
        const gp_dwarf_range_t *top = &ranges[sweep->open[sweep->depth - 1]];
        if (top->hi > upto)
            return emit(sweep, upto, top);
        result = emit(sweep, top->hi, top);
    }
    return result;
}

int gp_dwarf_flatten(gp_dwarf_ranges_t *ranges)
{
    sweep_t sweep = {0};
    int result = 0;
    if (ranges->count <= 1)
        return 0;
    sweep.open = gp_memory_had(calloc(ranges->count, sizeof(size_t)));
    if (sweep.open == NULL)
        return -ENOMEM;
    gp_sort(ranges->items, ranges->count, sizeof(*ranges->items), compare_ranges);
    for (size_t i = 0; i < ranges->count && result == 0; i++) {
        const gp_dwarf_range_t *range = &ranges->items[i];
        result = advance(&sweep, ranges->items, range->lo);
        if (sweep.position < range->lo)
            sweep.position = range->lo;
        sweep.open[sweep.depth++] = i;
    }
    if (result == 0)
        result = advance(&sweep, ranges->items, UINT64_MAX);
    free(sweep.open);
    free(ranges->items);
    *ranges = sweep.made;
    return result;
}
