// SPDX-License-Identifier: MIT
// Ranges within ranges: the innermost at each place.
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
static inline bool dwarf_flatten_comes_before(const gp_dwarf_range_t *a, const gp_dwarf_range_t *b)
{
    if (a->lo != b->lo)
        return a->lo < b->lo;
    if (a->hi != b->hi)
        return a->hi > b->hi;
    return a->depth < b->depth;
}

// Where the elements from `first` on stop to be in order.
static size_t dwarf_flatten_run_end(const gp_dwarf_range_t *ranges, size_t count, size_t first)
{
    size_t end = first < count ? first + 1 : count;
    while (end < count && !dwarf_flatten_comes_before(&ranges[end], &ranges[end - 1]))
        end++;
    return end;
}

// Merge [lo, middle) and [middle, hi) of `from`. Equal ones stay in order.
static void dwarf_flatten_merge(gp_dwarf_range_t *to, const gp_dwarf_range_t *from, size_t lo, size_t middle, size_t hi)
{
    size_t left = lo, right = middle;
    for (size_t at = lo; left < middle && right < hi; at++) {
        bool second = dwarf_flatten_comes_before(&from[right], &from[left]);
        to[at] = from[second ? right : left];
        right += second;
        left += !second;
    }
    if (left < middle)
        memcpy(&to[left + right - middle], &from[left], (middle - left) * sizeof(*to));
    else
        memcpy(&to[right], &from[right], (hi - right) * sizeof(*to));
}

// Sort, with room for as many: they are read as runs that are in order, two of which make one until one is left.
// Returns which of both arrays has them.
static gp_dwarf_range_t *dwarf_flatten_sort_ranges(gp_dwarf_range_t *ranges, gp_dwarf_range_t *other, size_t count)
{
    while (dwarf_flatten_run_end(ranges, count, 0) < count) {
        for (size_t lo = 0, hi; lo < count; lo = hi) {
            size_t middle = dwarf_flatten_run_end(ranges, count, lo);
            hi = dwarf_flatten_run_end(ranges, count, middle);
            dwarf_flatten_merge(other, ranges, lo, middle, hi);
        }
        gp_dwarf_range_t *sorted = other;
        other = ranges;
        ranges = sorted;
    }
    return ranges;
}

typedef struct sweep {
    gp_dwarf_ranges_t made; // disjoint
    size_t *open;           // ranges that hold the position, the innermost last
    size_t depth;
    uint64_t position;
} sweep_t;

static int dwarf_flatten_emit(sweep_t *sweep, uint64_t end, const gp_dwarf_range_t *range)
{
    gp_dwarf_range_t piece = *range;
    if (sweep->position >= end)
        return 0;
    piece.lo = sweep->position;
    piece.hi = sweep->position = end;
    return gp_dwarf_ranges_add(&sweep->made, &piece);
}

// Close what ends at or before `upto`, then cut the innermost one that goes on.
static int dwarf_flatten_advance(sweep_t *sweep, const gp_dwarf_range_t *ranges, uint64_t upto)
{
    int result = 0;
    for (; sweep->depth > 0 && result == 0; sweep->depth--) {
        const gp_dwarf_range_t *top = &ranges[sweep->open[sweep->depth - 1]];
        if (top->hi > upto)
            return dwarf_flatten_emit(sweep, upto, top);
        result = dwarf_flatten_emit(sweep, top->hi, top);
    }
    return result;
}

// Room for what is made, which serves for sorting before. Returns 0 or -ENOMEM.
static int dwarf_flatten_prepare(sweep_t *sweep, gp_dwarf_ranges_t *ranges)
{
    gp_dwarf_ranges_t *made = &sweep->made;
    sweep->open = gp_memory_had(malloc(ranges->count * sizeof(*sweep->open)));
    if (sweep->open == NULL || gp_reserve(&made->items, &made->capacity, ranges->count, sizeof(*made->items)) < 0)
        return -ENOMEM;
    if (dwarf_flatten_sort_ranges(ranges->items, made->items, ranges->count) == made->items) {
        gp_dwarf_ranges_t unsorted = {.items = ranges->items, .capacity = ranges->capacity};
        ranges->items = made->items;
        ranges->capacity = made->capacity;
        *made = unsorted;
    }
    return 0;
}

int gp_dwarf_flatten(gp_dwarf_ranges_t *ranges)
{
    sweep_t sweep = {0};
    if (ranges->count <= 1)
        return 0;
    int result = dwarf_flatten_prepare(&sweep, ranges);
    for (size_t i = 0; i < ranges->count && result == 0; i++) {
        const gp_dwarf_range_t *range = &ranges->items[i];
        result = dwarf_flatten_advance(&sweep, ranges->items, range->lo);
        if (sweep.position < range->lo)
            sweep.position = range->lo;
        sweep.open[sweep.depth++] = i;
    }
    if (result == 0)
        result = dwarf_flatten_advance(&sweep, ranges->items, UINT64_MAX);
    free(sweep.open);
    free(ranges->items);
    *ranges = sweep.made; // without memory what was made till then, which is in order
    return result;
}
