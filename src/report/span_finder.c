// SPDX-License-Identifier: MIT
#include "report/span_finder.h"

#include <stdlib.h>

enum { SPAWNERS_MAX = 64 }; // that are asked for a coroutine without spans

struct gp_span_finder {
    const gp_dataset_t *dataset;
    uint32_t *spans;     // numbers, by coroutine, then by beginning
    uint32_t *first;     // uint32_t[coro_count + 1]: where those of a coroutine begin in `spans`
    uint32_t *enclosing; // by number of the span: the one around it on its coroutine, or GP_INDEX_NONE
    uint32_t *inherited; // by coroutine: the span at its creation plus 2; 0 = not looked for yet, 1 = none
};

static void span_finder_sort_by_coro(gp_span_finder_t *finder)
{
    const gp_dataset_t *dataset = finder->dataset;
    for (size_t i = 0; i < dataset->spans.count; i++)
        finder->first[dataset->spans.items[i].coro + 1]++;
    for (size_t i = 0; i < dataset->facts.coros.count; i++)
        finder->first[i + 1] += finder->first[i];
    for (size_t i = dataset->spans.count; i-- > 0;) { // a coroutine's spans are put from behind
        uint32_t coro = dataset->spans.items[i].coro;
        finder->spans[--finder->first[coro + 1]] = (uint32_t)i;
    }
    // Now first[coro + 1] is where those of `coro` begin.
    for (size_t i = 0; i < dataset->facts.coros.count; i++)
        finder->first[i] = finder->first[i + 1];
    finder->first[dataset->facts.coros.count] = (uint32_t)dataset->spans.count;
}

static void span_finder_find_enclosing(gp_span_finder_t *finder)
{
    const gp_dataset_span_t *spans = finder->dataset->spans.items;
    for (size_t coro = 0; coro < finder->dataset->facts.coros.count; coro++) {
        uint32_t around = GP_INDEX_NONE;
        for (uint32_t i = finder->first[coro]; i < finder->first[coro + 1]; i++) {
            uint32_t number = finder->spans[i];
            while (around != GP_INDEX_NONE && spans[around].is.end <= spans[number].is.start)
                around = finder->enclosing[around];
            finder->enclosing[number] = around;
            around = number;
        }
    }
}

gp_span_finder_t *gp_span_finder_create(const gp_dataset_t *dataset)
{
    gp_span_finder_t *finder = calloc(1, sizeof(*finder));
    if (finder == NULL)
        return NULL;
    finder->dataset = dataset;
    finder->spans = calloc(dataset->spans.count + 1, sizeof(uint32_t));
    finder->first = calloc(dataset->facts.coros.count + 2, sizeof(uint32_t));
    finder->enclosing = calloc(dataset->spans.count + 1, sizeof(uint32_t));
    finder->inherited = calloc(dataset->facts.coros.count + 1, sizeof(uint32_t));
    if (finder->spans == NULL || finder->first == NULL || finder->enclosing == NULL || finder->inherited == NULL) {
        gp_span_finder_free(finder);
        return NULL;
    }
    span_finder_sort_by_coro(finder);
    span_finder_find_enclosing(finder);
    return finder;
}

static bool span_finder_is_open(const gp_dataset_span_t *span, uint64_t time_ns)
{
    return span->is.start <= time_ns && time_ns <= span->is.end;
}

static uint32_t span_finder_find_own(const gp_span_finder_t *finder, uint32_t coro, uint64_t time_ns)
{
    const gp_dataset_span_t *spans = finder->dataset->spans.items;
    uint32_t lo = finder->first[coro], hi = finder->first[coro + 1], begin = lo;
    while (lo < hi) { // the last one that has begun
        uint32_t middle = lo + (hi - lo) / 2;
        if (spans[finder->spans[middle]].is.start <= time_ns)
            lo = middle + 1;
        else
            hi = middle;
    }
    uint32_t span = lo > begin ? finder->spans[lo - 1] : GP_INDEX_NONE;
    while (span != GP_INDEX_NONE && !span_finder_is_open(&spans[span], time_ns))
        span = finder->enclosing[span];
    return span;
}

// The span in which a coroutine was created. A spawner without a span of its own may have been created in one.
static uint32_t span_finder_find_inherited(gp_span_finder_t *finder, uint32_t coro)
{
    const gp_dataset_t *dataset = finder->dataset;
    uint32_t *known = &finder->inherited[coro], span = GP_INDEX_NONE;
    if (*known != 0)
        return *known - 2; // of 1: GP_INDEX_NONE
    for (int i = 0; i < SPAWNERS_MAX && span == GP_INDEX_NONE; i++) {
        const gp_coro_record_t *record = &dataset->facts.coros.items[coro].record;
        coro = record->parent_id != 0 ? gp_dataset_coro_find(dataset, record->parent_id) : GP_INDEX_NONE;
        if (coro == GP_INDEX_NONE)
            break;
        span = span_finder_find_own(finder, coro, record->birth_ns);
    }
    *known = span + 2;
    return span;
}

uint32_t gp_span_find(gp_span_finder_t *finder, uint32_t coro, uint64_t time_ns)
{
    const gp_dataset_span_t *spans = finder->dataset->spans.items;
    uint32_t span = span_finder_find_own(finder, coro, time_ns);
    if (span != GP_INDEX_NONE)
        return span;
    span = span_finder_find_inherited(finder, coro);
    for (int i = 0; i < SPAWNERS_MAX && span != GP_INDEX_NONE && !span_finder_is_open(&spans[span], time_ns); i++)
        span = spans[span].parent;
    return span != GP_INDEX_NONE && span_finder_is_open(&spans[span], time_ns) ? span : GP_INDEX_NONE;
}

void gp_span_finder_free(gp_span_finder_t *finder)
{
    if (finder == NULL)
        return;
    free(finder->spans);
    free(finder->first);
    free(finder->enclosing);
    free(finder->inherited);
    free(finder);
}
