// SPDX-License-Identifier: MIT
// Code of operations: where their coroutines were, by samples, while these went on.
#include <errno.h>
#include <stdlib.h>

#include "report/explain_parts.h"

enum { CANDIDATES = 16 };

typedef struct span_code_stacks { // the heaviest stacks of a group; a full table gives up its lightest
    uint32_t stacks[CANDIDATES];
    uint64_t ns[CANDIDATES];
} span_code_stacks_t;

typedef struct span_code_reading {
    const gp_dataset_t *dataset;
    const gp_span_code_t *spans; // by coroutine, then by beginning
    size_t count;
    span_code_stacks_t *groups;
} span_code_reading_t;

static int explain_span_code_by_coro(const void *left, const void *right)
{
    const gp_span_code_t *a = left, *b = right;
    if (a->coro != b->coro)
        return a->coro < b->coro ? -1 : 1;
    return a->from_ns < b->from_ns ? -1 : a->from_ns > b->from_ns;
}

static const gp_span_code_t *explain_span_code_at(const span_code_reading_t *reading, uint32_t coro, uint64_t at_ns)
{
    size_t lo = 0, hi = reading->count;
    while (lo < hi) { // the first that begins later
        size_t mid = lo + (hi - lo) / 2;
        const gp_span_code_t *span = &reading->spans[mid];
        if (span->coro < coro || (span->coro == coro && span->from_ns <= at_ns))
            lo = mid + 1;
        else
            hi = mid;
    }
    const gp_span_code_t *span = lo > 0 ? &reading->spans[lo - 1] : NULL;
    return span != NULL && span->coro == coro && at_ns <= span->to_ns ? span : NULL;
}

static void explain_span_code_add(span_code_stacks_t *group, uint32_t stack, uint64_t ns)
{
    size_t at = 0;
    for (size_t i = 0; i < CANDIDATES; i++) {
        if (group->stacks[i] == stack) {
            at = i;
            break;
        }
        at = group->ns[i] < group->ns[at] ? i : at;
    }
    group->ns[at] = (group->stacks[at] == stack ? group->ns[at] : 0) + ns;
    group->stacks[at] = stack;
}

static int explain_span_code_take(void *context, const gp_sample_record_t *samples, size_t count)
{
    span_code_reading_t *reading = context;
    for (size_t i = 0; i < count; i++) {
        uint32_t coro = gp_dataset_coro_find(reading->dataset, samples[i].coro_id);
        uint32_t stack = gp_dataset_stack_find(reading->dataset, samples[i].stack_id);
        if (coro == GP_INDEX_NONE || stack == GP_INDEX_NONE || stack == 0)
            continue;
        const gp_span_code_t *span = explain_span_code_at(reading, coro, samples[i].time_ns);
        if (span != NULL)
            explain_span_code_add(&reading->groups[span->group], stack, samples[i].weight_ns);
    }
    return 0;
}

int gp_explain_span_code(const gp_explaining_t *explaining, gp_span_code_t *spans, size_t count, uint32_t *stacks,
                         size_t groups)
{
    static const gp_reader_handlers_t handlers = {.samples = explain_span_code_take};
    span_code_reading_t reading = {explaining->dataset, spans, count, calloc(groups + 1, sizeof(*reading.groups))};
    if (reading.groups == NULL)
        return -ENOMEM;
    if (count > 0)
        qsort(spans, count, sizeof(*spans), explain_span_code_by_coro);
    int result = gp_dataset_read_for(explaining->dataset, &handlers, &reading);
    for (size_t i = 0; i < groups; i++) {
        size_t heaviest = 0;
        for (size_t j = 1; j < CANDIDATES; j++)
            heaviest = reading.groups[i].ns[j] > reading.groups[i].ns[heaviest] ? j : heaviest;
        stacks[i] = reading.groups[i].stacks[heaviest];
    }
    free(reading.groups);
    return result;
}
