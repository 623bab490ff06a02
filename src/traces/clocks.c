// SPDX-License-Identifier: MIT
// The clocks of processes, aligned by their calls: a dispatched span lies within the other process' call.
//
// Model: each pair of a call in one process and its dispatch in another bounds the difference of their clocks from both
// sides. All pairs of two processes give one interval. Where it holds 0 the clocks agree and are left alone. Else the
// offset goes from the end nearer to 0 towards the middle (right where the way there takes as long as the way back), by
// no more than it was off: clocks that are off by a little are not moved by much. A dispatch that takes longer than its
// call (nothing waited for it) bounds the difference by its beginning alone. Source: RFC 5905 (NTP), the bounds of
// offset by the round trip.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "traces/spans.h"

typedef struct bound { // of the offset of `to` less that of `from`
    uint32_t from, to; // processes
    int64_t lo, hi;
    int64_t loose_hi; // instead of `hi`, where that cannot be: the dispatch begins before its call ends
    uint32_t pairs;
} bound_t;

typedef struct aligning {
    gp_spans_t *set;
    bound_t *bounds; // sorted by `from`, `to`; each in both directions
    size_t count, capacity;
} aligning_t;

static int64_t clocks_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t clocks_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int clocks_add_pair(aligning_t *aligning, const gp_tree_span_t *call, const gp_tree_span_t *dispatch)
{
    int64_t lo = gp_tree_start_ns(call) - gp_tree_start_ns(dispatch);
    int64_t hi = gp_tree_end_ns(call) - gp_tree_end_ns(dispatch);
    int64_t loose_hi = gp_tree_end_ns(call) - gp_tree_start_ns(dispatch);
    if (call->record.flags & GP_SPAN_OPEN)
        hi = loose_hi = INT64_MAX / 4;
    else if (lo > hi || dispatch->record.flags & GP_SPAN_OPEN)
        hi = loose_hi;
    if (gp_grow(&aligning->bounds, &aligning->capacity, aligning->count, sizeof(*aligning->bounds)) < 0)
        return -ENOMEM;
    aligning->bounds[aligning->count++] = (bound_t){call->process, dispatch->process, lo, hi, loose_hi, 1};
    return 0;
}

static int clocks_compare(const void *left, const void *right)
{
    const bound_t *a = left, *b = right;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}

// Unite all bounds between the same two processes, in the same direction.
static void clocks_unite(aligning_t *aligning)
{
    size_t kept = 0;
    if (aligning->count == 0)
        return;
    qsort(aligning->bounds, aligning->count, sizeof(*aligning->bounds), clocks_compare);
    for (size_t i = 1; i < aligning->count; i++) {
        bound_t *last = &aligning->bounds[kept], *next = &aligning->bounds[i];
        if (clocks_compare(last, next) != 0) {
            aligning->bounds[++kept] = *next;
            continue;
        }
        last->lo = clocks_larger(last->lo, next->lo);
        last->hi = clocks_smaller(last->hi, next->hi);
        last->loose_hi = clocks_smaller(last->loose_hi, next->loose_hi);
        last->pairs += next->pairs;
    }
    aligning->count = kept + 1;
}

// Add each bound as seen from the other process. Calls in both directions then bound each other.
static int clocks_mirror(aligning_t *aligning)
{
    size_t count = aligning->count;
    for (size_t i = 0; i < count; i++) {
        if (gp_grow(&aligning->bounds, &aligning->capacity, aligning->count, sizeof(*aligning->bounds)) < 0)
            return -ENOMEM;
        bound_t *bound = &aligning->bounds[i];
        if (bound->lo > bound->hi && bound->lo <= bound->loose_hi)
            bound->hi = bound->loose_hi;
        aligning->bounds[aligning->count++] =
            (bound_t){bound->to, bound->from, -bound->hi, -bound->lo, -bound->lo, bound->pairs};
    }
    clocks_unite(aligning);
    return 0;
}

// Move `to` so that it fits to `from`, which has its place.
static void clocks_place(gp_tree_process_t *to, const gp_tree_process_t *from, const bound_t *bound)
{
    int64_t lo = bound->lo, hi = bound->hi, offset = 0;
    to->pairs = bound->pairs;
    to->clock = GP_CLOCK_AGREES;
    if (lo > hi) {
        to->clock = GP_CLOCK_CONTRADICTS;
        hi = lo; // no effect is before its cause
    }
    if (lo > 0 || hi < 0) {
        int64_t off = lo > 0 ? lo : -hi, half = (hi - lo) / 2, further = clocks_smaller(off, half);
        offset = lo > 0 ? lo + further : hi - further;
        to->within_ns = (uint64_t)clocks_larger(offset - lo, hi - offset);
        if (to->clock == GP_CLOCK_AGREES)
            to->clock = GP_CLOCK_MOVED;
    }
    to->offset_ns = from->offset_ns + offset;
    if (offset == 0 && from->offset_ns != 0 && to->clock == GP_CLOCK_AGREES) { // moves with its neighbour
        to->clock = GP_CLOCK_MOVED;
        to->within_ns = from->within_ns;
    }
}

static size_t clocks_first_of(const aligning_t *aligning, uint32_t process)
{
    size_t lo = 0, hi = aligning->count;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (aligning->bounds[middle].from < process)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

// Place all processes within reach of one that keeps its clock.
static void clocks_spread(const aligning_t *aligning, uint32_t root, uint32_t *queue, bool *placed)
{
    gp_tree_process_t *processes = aligning->set->processes;
    size_t head = 0, tail = 0;
    placed[root] = true;
    queue[tail++] = root;
    while (head < tail) {
        uint32_t from = queue[head++];
        for (size_t i = clocks_first_of(aligning, from); i < aligning->count && aligning->bounds[i].from == from; i++) {
            uint32_t to = aligning->bounds[i].to;
            if (placed[to])
                continue;
            clocks_place(&processes[to], &processes[from], &aligning->bounds[i]);
            placed[to] = true;
            queue[tail++] = to;
        }
    }
}

// The least called processes keep their clocks: where requests come in.
static int clocks_spread_all(const aligning_t *aligning)
{
    gp_spans_t *set = aligning->set;
    uint32_t *queue = calloc(set->process_count + 1, sizeof(*queue));
    uint32_t *called = calloc(set->process_count + 1, sizeof(*called));
    bool *placed = calloc(set->process_count + 1, sizeof(*placed));
    int result = queue != NULL && called != NULL && placed != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; i < set->count && result == 0; i++) {
        const gp_tree_span_t *span = &set->items[i];
        if (span->parent != GP_NO_SPAN && set->items[span->parent].process != span->process)
            called[span->process]++;
    }
    for (size_t round = 0; round < 2 && result == 0; round++)
        for (uint32_t i = 0; i < set->process_count; i++)
            if (!placed[i] && (called[i] == 0 || round == 1))
                clocks_spread(aligning, i, queue, placed);
    free(queue);
    free(called);
    free(placed);
    return result;
}

int gp_spans_align(gp_spans_t *set)
{
    aligning_t aligning = {.set = set};
    int result = 0;
    for (size_t i = 0; i < set->count && result == 0; i++) {
        const gp_tree_span_t *span = &set->items[i];
        const gp_tree_span_t *parent = span->parent != GP_NO_SPAN ? &set->items[span->parent] : NULL;
        if (parent != NULL && parent->process != span->process && !(span->record.flags & GP_TREE_BACKWARDS))
            result = clocks_add_pair(&aligning, parent, span);
    }
    clocks_unite(&aligning);
    if (result == 0)
        result = clocks_mirror(&aligning);
    if (result == 0)
        result = clocks_spread_all(&aligning);
    for (size_t i = 0; i < set->count && result == 0; i++) {
        gp_tree_span_t *span = &set->items[i];
        span->from_ns = gp_tree_start_ns(span) + set->processes[span->process].offset_ns;
        span->to_ns = gp_tree_end_ns(span) + set->processes[span->process].offset_ns;
    }
    free(aligning.bounds);
    return result;
}
