// SPDX-License-Identifier: MIT
#include "page/page_facts.h"

#include <errno.h>
#include <stdlib.h>

enum { TICK_SHIFT_MAX = 6 }; // longer ones are of little use

static bool page_facts_same_label(const void *owner, uint32_t number, const void *key)
{
    const gp_page_label_t *a = &((const gp_page_labels_t *)owner)->items[number], *b = key;
    return a->coro == b->coro && a->thread == b->thread && a->trace == b->trace && a->request == b->request;
}

uint32_t gp_page_label(gp_page_labels_t *labels, const gp_page_label_t *label)
{
    uint64_t hash = gp_hash_more(gp_hash_u64((uint64_t)label->coro << 32 | label->thread),
                                 (uint64_t)label->trace << 32 | label->request);
    uint32_t number = gp_index_find(&labels->index, hash, page_facts_same_label, labels, label);
    if (number != GP_INDEX_NONE)
        return number;
    if (gp_grow(&labels->items, &labels->capacity, labels->count, sizeof(*label)) < 0 ||
        gp_index_add(&labels->index, hash, (uint32_t)labels->count) < 0)
        return GP_INDEX_NONE;
    labels->items[labels->count] = *label;
    return (uint32_t)labels->count++;
}

void gp_page_labels_free(gp_page_labels_t *labels)
{
    free(labels->items);
    gp_index_free(&labels->index);
    *labels = (gp_page_labels_t){0};
}

static bool page_facts_same_fact(const void *owner, uint32_t number, const void *key)
{
    const gp_fact_t *a = &((const gp_page_facts_t *)owner)->items[number], *b = key;
    return a->node == b->node && a->label == b->label && a->tick == b->tick && a->state == b->state &&
           a->side == b->side;
}

// Leave out of a row what all leave out. Returns false when memory is short.
static bool page_facts_make_coarse(gp_page_facts_t *facts, gp_fact_t *fact, unsigned shift_more)
{
    const gp_coarseness_t *coarse = &facts->coarse;
    if (fact->tick > 0)
        fact->tick = coarse->no_ticks ? 0 : ((fact->tick - 1) >> shift_more) + 1;
    gp_page_label_t label = facts->labels->items[fact->label];
    if ((coarse->no_threads && label.thread != 0) || (coarse->no_traces && label.trace != 0)) {
        label.thread = coarse->no_threads ? 0 : label.thread;
        label.trace = coarse->no_traces ? 0 : label.trace;
        fact->label = gp_page_label(facts->labels, &label);
    }
    return fact->label != GP_INDEX_NONE;
}

// Find or add, as it is.
static int page_facts_add(gp_page_facts_t *facts, const gp_fact_t *fact)
{
    uint64_t hash = gp_hash_more(gp_hash_u64((uint64_t)fact->node << 32 | fact->label),
                                 (uint64_t)fact->tick << 32 | (uint32_t)fact->state << 16 | fact->side);
    uint32_t number = gp_index_find(&facts->index, hash, page_facts_same_fact, facts, fact);
    if (number != GP_INDEX_NONE) {
        facts->items[number].weight_ns += fact->weight_ns;
        facts->items[number].samples += fact->samples;
        facts->items[number].squares_ns2 += fact->squares_ns2;
        return 0;
    }
    if (gp_grow(&facts->items, &facts->capacity, facts->count, sizeof(*fact)) < 0 ||
        gp_index_add(&facts->index, hash, (uint32_t)facts->count) < 0)
        return -ENOMEM;
    facts->items[facts->count++] = *fact;
    return 0;
}

// Returns false when nothing more can be left out.
static bool page_facts_next_coarseness(gp_coarseness_t *coarse)
{
    if (coarse->tick_shift < TICK_SHIFT_MAX)
        coarse->tick_shift++;
    else if (!coarse->no_threads)
        coarse->no_threads = true;
    else if (!coarse->no_ticks)
        coarse->no_ticks = true;
    else if (!coarse->no_traces)
        coarse->no_traces = true;
    else
        return false;
    return true;
}

// All rows anew, with less in them.
static int page_facts_shrink(gp_page_facts_t *facts)
{
    size_t count = facts->count;
    unsigned before = facts->coarse.tick_shift;
    if (!page_facts_next_coarseness(&facts->coarse)) {
        facts->limit = SIZE_MAX; // as many as there are
        return 0;
    }
    gp_index_free(&facts->index);
    facts->count = 0;
    for (size_t i = 0; i < count; i++) {
        gp_fact_t fact = facts->items[i];
        if (!page_facts_make_coarse(facts, &fact, facts->coarse.tick_shift - before) ||
            page_facts_add(facts, &fact) < 0)
            return -ENOMEM;
    }
    return 0;
}

int gp_page_facts_add(gp_page_facts_t *facts, const gp_fact_t *fact)
{
    gp_fact_t coarse = *fact;
    int result =
        page_facts_make_coarse(facts, &coarse, facts->coarse.tick_shift) ? page_facts_add(facts, &coarse) : -ENOMEM;
    while (result == 0 && facts->count > facts->limit)
        result = page_facts_shrink(facts);
    return result;
}

static int page_facts_compare(const void *left, const void *right)
{
    const gp_fact_t *a = left, *b = right;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    if (a->label != b->label)
        return a->label < b->label ? -1 : 1;
    if (a->tick != b->tick)
        return a->tick < b->tick ? -1 : 1;
    return a->state != b->state ? (int)a->state - (int)b->state : (int)a->side - (int)b->side;
}

void gp_page_facts_sort(gp_page_facts_t *facts, const uint32_t *order)
{
    for (size_t i = 0; i < facts->count; i++)
        facts->items[i].node = order[facts->items[i].node];
    if (facts->count > 0)
        qsort(facts->items, facts->count, sizeof(*facts->items), page_facts_compare);
    gp_index_free(&facts->index);
}

double gp_root_of(double square)
{
    double root = square;
    if (!(square > 0 && square < 0x1p1000))
        return 0;
    for (unsigned i = 0; i < 1000; i++) {
        double next = (root + square / root) / 2;
        if (next >= root && i > 0)
            break;
        root = next;
    }
    return root;
}

void gp_page_facts_free(gp_page_facts_t *facts)
{
    free(facts->items);
    gp_index_free(&facts->index);
    facts->items = NULL;
    facts->count = facts->capacity = 0;
}
