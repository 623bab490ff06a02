// SPDX-License-Identifier: MIT
// The critical path through spans: the work that a root's end waited for, from its end back to its beginning.
//
// Model: at each moment the span that ended last before it is on the path, back to where it began; what lies between is
// the parent's own. Children that overlap with one on the path, or were not waited for, are not on it. The own parts of
// a root's path add up to its duration.
// Source: CRISP (Uber, USENIX ATC 2022), section 3.
#include <errno.h>
#include <stdlib.h>

#include "traces/spans.h"

typedef struct stretch { // of a span, on the path
    uint32_t span;
    int64_t from_ns;
} stretch_t;

typedef struct walk {
    gp_spans_t *set;
    stretch_t *todo;
    size_t count, capacity;
    uint32_t *children; // room for all
} walk_t;

static const gp_spans_t *sorting; // qsort() has no context

// The last end first; of equal ends, the longest.
static int critical_compare(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    const gp_tree_span_t *first = &sorting->items[a], *second = &sorting->items[b];
    if (first->to_ns != second->to_ns)
        return first->to_ns > second->to_ns ? -1 : 1;
    if (first->from_ns != second->from_ns)
        return first->from_ns < second->from_ns ? -1 : 1;
    return a < b ? -1 : a > b;
}

static int critical_push(walk_t *walk, uint32_t span, int64_t from_ns)
{
    if (gp_grow(&walk->todo, &walk->capacity, walk->count, sizeof(*walk->todo)) < 0)
        return -ENOMEM;
    walk->todo[walk->count++] = (stretch_t){span, from_ns};
    walk->set->items[span].record.flags |= GP_TREE_CRITICAL;
    return 0;
}

static int critical_follow(walk_t *walk, stretch_t stretch)
{
    gp_tree_span_t *items = walk->set->items, *span = &items[stretch.span];
    int64_t at = span->to_ns;
    size_t count = 0;
    for (uint32_t child = span->first_child; child != GP_NO_SPAN; child = items[child].next_sibling)
        walk->children[count++] = child;
    sorting = walk->set;
    qsort(walk->children, count, sizeof(*walk->children), critical_compare);
    for (size_t i = 0; i < count; i++) {
        const gp_tree_span_t *child = &items[walk->children[i]];
        int64_t from = child->from_ns > stretch.from_ns ? child->from_ns : stretch.from_ns;
        if (child->to_ns > at || child->to_ns <= from)
            continue;
        span->critical_ns += (uint64_t)(at - child->to_ns);
        if (critical_push(walk, walk->children[i], from) < 0)
            return -ENOMEM;
        at = from;
    }
    span->critical_ns += at > stretch.from_ns ? (uint64_t)(at - stretch.from_ns) : 0;
    return 0;
}

int gp_spans_mark_critical(gp_spans_t *set)
{
    walk_t walk = {.set = set, .children = calloc(set->count + 1, sizeof(uint32_t))};
    int result = walk.children != NULL ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < set->count && result == 0; i++) {
        if (set->items[i].parent != GP_NO_SPAN)
            continue;
        result = critical_push(&walk, i, set->items[i].from_ns);
        while (walk.count > 0 && result == 0)
            result = critical_follow(&walk, walk.todo[--walk.count]);
    }
    free(walk.todo);
    free(walk.children);
    return result;
}
