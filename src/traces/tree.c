// SPDX-License-Identifier: MIT
// Parents, circles, the order of the trees, and what each span took itself.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "traces/spans.h"

static void tree_find_parents(gp_spans_t *set)
{
    for (size_t i = 0; i < set->count; i++) {
        gp_tree_span_t *span = &set->items[i];
        span->first_child = span->next_sibling = span->parent = GP_NO_SPAN;
        if (gp_id128_is_none(span->parent_id))
            continue;
        span->parent = gp_spans_find(set, span->trace, span->parent_id);
        if (span->parent == GP_NO_SPAN)
            span->record.flags |= GP_TREE_LOST;
    }
}

// Walk up from each span; one that is met again on the same way lies in a circle. There the span that began first
// becomes a root.
static int tree_cut_circles(gp_spans_t *set)
{
    uint32_t *way = calloc(set->count + 1, sizeof(*way)); // number of the walk that met it, plus 1
    if (way == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < set->count; i++) {
        uint32_t at = i, first;
        while (at != GP_NO_SPAN && way[at] == 0) {
            way[at] = i + 1;
            at = set->items[at].parent;
        }
        if (at == GP_NO_SPAN || way[at] != i + 1)
            continue;
        first = at;
        for (uint32_t next = set->items[at].parent; next != at; next = set->items[next].parent)
            if (set->items[next].record.start_unix_ns < set->items[first].record.start_unix_ns)
                first = next;
        set->items[first].parent = GP_NO_SPAN;
        set->items[first].record.flags |= GP_TREE_CIRCLE;
    }
    free(way);
    return 0;
}

static const gp_spans_t *sorting; // qsort() has no context

// By trace, then the last one first: linking turns siblings round.
static int tree_compare(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    const gp_tree_span_t *first = &sorting->items[a], *second = &sorting->items[b];
    if (first->trace != second->trace)
        return first->trace < second->trace ? -1 : 1;
    if (first->from_ns != second->from_ns)
        return first->from_ns > second->from_ns ? -1 : 1;
    if (first->to_ns != second->to_ns) // the longer one encloses
        return first->to_ns < second->to_ns ? -1 : 1;
    return a > b ? -1 : a < b;
}

// Number the spans below a root. Returns how many there are.
static uint32_t tree_put_tree(gp_spans_t *set, uint32_t root, uint32_t *order)
{
    uint32_t at = root, count = 0;
    set->items[root].depth = 0;
    for (;;) {
        gp_tree_span_t *span = &set->items[at];
        order[count++] = at;
        if (span->first_child != GP_NO_SPAN) {
            set->items[span->first_child].depth = span->depth + 1;
            at = span->first_child;
            continue;
        }
        while (at != root && set->items[at].next_sibling == GP_NO_SPAN)
            at = set->items[at].parent;
        if (at == root)
            return count;
        set->items[set->items[at].next_sibling].depth = set->items[at].depth;
        at = set->items[at].next_sibling;
    }
}

static void tree_extend(gp_tree_trace_t *trace, const gp_tree_span_t *span, uint32_t number)
{
    if (trace->root == GP_NO_SPAN) {
        trace->from_ns = span->from_ns;
        trace->to_ns = span->to_ns;
        trace->root = number;
    }
    if (span->to_ns > trace->to_ns)
        trace->to_ns = span->to_ns;
    trace->failed = trace->failed || span->record.flags & GP_SPAN_FAILED;
}

// Roots are siblings, too: linked from the trace.
static int tree_put_in_order(gp_spans_t *set)
{
    uint32_t *sorted = calloc(set->count + 1, sizeof(*sorted)), *roots = calloc(set->trace_count + 1, sizeof(*roots));
    uint32_t used = 0;
    set->order = calloc(set->count + 1, sizeof(*set->order));
    if (sorted == NULL || roots == NULL || set->order == NULL) {
        free(sorted);
        free(roots);
        return -ENOMEM;
    }
    memset(roots, 0xff, set->trace_count * sizeof(*roots));
    for (uint32_t i = 0; i < set->count; i++)
        sorted[i] = i;
    sorting = set;
    qsort(sorted, set->count, sizeof(*sorted), tree_compare);
    for (size_t i = 0; i < set->count; i++) {
        gp_tree_span_t *span = &set->items[sorted[i]];
        uint32_t *list = span->parent != GP_NO_SPAN ? &set->items[span->parent].first_child : &roots[span->trace];
        span->next_sibling = *list;
        *list = sorted[i];
    }
    for (size_t i = 0; i < set->trace_count; i++) {
        gp_tree_trace_t *trace = &set->traces[i];
        trace->first = used;
        for (uint32_t root = roots[i]; root != GP_NO_SPAN; root = set->items[root].next_sibling)
            used += tree_put_tree(set, root, set->order + used);
        trace->count = used - trace->first;
        for (uint32_t j = trace->first; j < used; j++)
            tree_extend(trace, &set->items[set->order[j]], set->order[j]);
    }
    free(sorted);
    free(roots);
    return 0;
}

// The time of a span without its children's, which are in the order of their starts and may overlap.
static uint64_t tree_own_ns(const gp_spans_t *set, const gp_tree_span_t *span)
{
    int64_t reached = span->from_ns;
    uint64_t own = 0;
    for (uint32_t child = span->first_child; child != GP_NO_SPAN; child = set->items[child].next_sibling) {
        const gp_tree_span_t *below = &set->items[child];
        int64_t from = below->from_ns < span->to_ns ? below->from_ns : span->to_ns;
        int64_t to = below->to_ns < span->to_ns ? below->to_ns : span->to_ns;
        if (from > reached)
            own += (uint64_t)(from - reached);
        if (to > reached)
            reached = to;
    }
    return own + (span->to_ns > reached ? (uint64_t)(span->to_ns - reached) : 0);
}

// How many services take part in each trace. Processes of one name are one service.
static int tree_count_services(gp_spans_t *set)
{
    uint32_t *named = calloc(set->process_count + 1, sizeof(*named)); // the first process of that name
    uint32_t *seen = calloc(set->process_count + 1, sizeof(*seen));   // trace, plus 1
    if (named == NULL || seen == NULL) {
        free(named);
        free(seen);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < set->process_count; i++)
        for (named[i] = 0; strcmp(set->processes[named[i]].service, set->processes[i].service) != 0;)
            named[i]++;
    for (uint32_t i = 0; i < set->trace_count; i++)
        for (uint32_t j = 0; j < set->traces[i].count; j++) {
            uint32_t service = named[set->items[set->order[set->traces[i].first + j]].process];
            if (seen[service] != i + 1)
                set->traces[i].services++;
            seen[service] = i + 1;
        }
    free(named);
    free(seen);
    return 0;
}

int gp_spans_link(gp_spans_t *set)
{
    for (size_t i = 0; i < set->count; i++) {
        gp_tree_span_t *span = &set->items[i];
        if (span->record.end_unix_ns < span->record.start_unix_ns) {
            span->record.end_unix_ns = span->record.start_unix_ns;
            span->record.flags |= GP_TREE_BACKWARDS;
        }
    }
    tree_find_parents(set);
    if (tree_cut_circles(set) < 0 || gp_spans_align(set) < 0 || tree_put_in_order(set) < 0 ||
        tree_count_services(set) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < set->count; i++)
        set->items[i].self_ns = tree_own_ns(set, &set->items[i]);
    return gp_spans_mark_critical(set);
}
