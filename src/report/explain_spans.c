// SPDX-License-Identifier: MIT
// The same operation again and again within one: N+1 queries, and retries of what fails.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/span_kind.h"
#include "report/explain_parts.h"

enum { LEAST_NS = 50000000, LEAST_PERCENT = 5, AGAIN = 10, RETRIES = 3, ALIKE_MAX = 256 };

typedef struct repeated {                   // operations of one kind and name, in parents of one name
    const gp_dataset_span_t *span, *parent; // one of each
    uint64_t parents, spans, failed, longest_run;
    uint64_t spent_ns, spared_ns; // in all of them; if each were once
} repeated_t;

static const gp_dataset_span_t *sorted_spans; // qsort() has no context

static int explain_spans_by_parent(const void *left, const void *right)
{
    const gp_dataset_span_t *a = &sorted_spans[*(const uint32_t *)left], *b = &sorted_spans[*(const uint32_t *)right];
    if (a->parent != b->parent)
        return a->parent < b->parent ? -1 : 1;
    if (a->is.kind != b->is.kind)
        return a->is.kind < b->is.kind ? -1 : 1;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : (a->is.start > b->is.start) - (a->is.start < b->is.start);
}

static bool explain_spans_is_alike(const gp_dataset_span_t *a, const gp_dataset_span_t *b)
{
    return a->is.kind == b->is.kind && strcmp(a->name, b->name) == 0;
}

typedef struct run { // in one parent, by time
    uint64_t count, failed, spent_ns, from_ns, to_ns;
} run_t;

// Serial calls alone add up: calls at once cost as much as the longest.
static bool explain_spans_is_serial(const run_t *run)
{
    return run->spent_ns <= (run->to_ns - run->from_ns) / 10 * 11 + 1;
}

static void explain_spans_take_run(const gp_explaining_t *explaining, repeated_t *all, size_t *count,
                                   const gp_dataset_span_t *span, const run_t *run)
{
    const gp_dataset_span_t *parent = &explaining->dataset->spans.items[span->parent];
    bool is_retry = run->count >= RETRIES && run->failed + 1 >= run->count;
    size_t at = 0;
    if ((run->count < AGAIN && !is_retry) || !explain_spans_is_serial(run))
        return;
    while (at < *count &&
           !(explain_spans_is_alike(all[at].span, span) && explain_spans_is_alike(all[at].parent, parent)))
        at++;
    if (at == ALIKE_MAX)
        return;
    if (at == *count)
        all[(*count)++] = (repeated_t){.span = span, .parent = parent};
    all[at].parents++;
    all[at].spans += run->count;
    all[at].failed += run->failed;
    all[at].longest_run = run->count > all[at].longest_run ? run->count : all[at].longest_run;
    all[at].spent_ns += run->spent_ns;
    all[at].spared_ns += run->spent_ns - run->spent_ns / run->count;
}

static const char *explain_spans_statement(const gp_dataset_span_t *span)
{
    for (uint32_t i = 0; i < span->field_count; i++)
        if (strcmp(span->fields[i].key, "db.statement") == 0 || strcmp(span->fields[i].key, "statement") == 0)
            return span->fields[i].value;
    return NULL;
}

// " of F (FILE:LINE), called by G (FILE:LINE),": what makes the call is often a function for all of its kind.
static void explain_spans_name_code(const gp_explaining_t *explaining, const gp_loc_t *path, uint32_t depth,
                                    gp_finding_t *finding, char *text, size_t size)
{
    gp_finding_t caller = {.line = 0};
    char code[384], calls[384];
    uint32_t level = gp_explain_place(explaining, path, depth, finding);
    if (finding->function[0] == '\0')
        return;
    gp_explain_code(finding, code, sizeof(code));
    if (level < depth && gp_explain_place(explaining, path, level, &caller) != UINT32_MAX)
        snprintf(text, size, " of %s, called by %s,", code, gp_explain_code(&caller, calls, sizeof(calls)));
    else
        snprintf(text, size, " of %s", code);
}

static void explain_spans_say(gp_explaining_t *explaining, const repeated_t *repeated, uint32_t stack)
{
    bool is_retry = repeated->failed * 2 > repeated->spans;
    const char *statement = explain_spans_statement(repeated->span);
    char spent[32], code[800] = "";
    const gp_facts_stack_t *site =
        &explaining->dataset->facts.stacks.items[repeated->span->stack != 0 ? repeated->span->stack : stack];
    gp_finding_t *finding = gp_explain_add(explaining, is_retry ? "retries" : "repeated-call", repeated->spared_ns);
    gp_loc_t *path = finding != NULL ? malloc(((size_t)site->depth + 1) * sizeof(*path)) : NULL;
    if (finding == NULL || path == NULL)
        return;
    for (uint32_t i = 0; i < site->depth; i++)
        path[i] = site->frames[site->depth - 1 - i];
    explain_spans_name_code(explaining, path, site->depth, finding, code, sizeof(code));
    free(path);
    finding->times = repeated->spans;
    snprintf(
        finding->sentence, sizeof(finding->sentence),
        "%.80s%s%.120s%s%.500s runs %" PRIu64 " times, one after the other, in each \"%.80s\"%s: %s, %u %% of the "
        "requests' time%s",
        repeated->span->name, statement != NULL ? " (" : "", statement != NULL ? statement : "",
        statement != NULL ? ")" : "", code, (repeated->spans + repeated->parents / 2) / repeated->parents,
        repeated->parent->name, is_retry ? ", and most of them fail" : "", gp_explain_time(repeated->spent_ns, spent),
        explaining->latency_ns > 0 ? (unsigned)((double)repeated->spent_ns * 100 / (double)explaining->latency_ns + 0.5)
                                   : 0,
        is_retry ? "" : "; one call for all of them would spare most of it");
    snprintf(finding->hurt, sizeof(finding->hurt), "%" PRIu64 " of %zu requests or parts of them", repeated->parents,
             explaining->findings->requests);
    snprintf(finding->sure, sizeof(finding->sure), "exact: each call is recorded");
    snprintf(finding->show, sizeof(finding->show), "report --by request");
}

static size_t explain_spans_gather(const gp_explaining_t *explaining, const uint32_t *order, size_t spans,
                                   repeated_t *all)
{
    const gp_dataset_span_t *items = explaining->dataset->spans.items;
    size_t count = 0;
    for (size_t i = 0, next; i < spans; i = next) {
        run_t run = {.from_ns = items[order[i]].is.start};
        for (next = i; next < spans && items[order[next]].parent == items[order[i]].parent &&
                       explain_spans_is_alike(&items[order[next]], &items[order[i]]);
             next++) {
            const gp_span_t *span = &items[order[next]].is;
            run.count++;
            run.failed += (span->flags & GP_SPAN_FAILED) != 0;
            run.spent_ns += span->end > span->start ? span->end - span->start : 0;
            run.to_ns = span->end > run.to_ns ? span->end : run.to_ns;
        }
        explain_spans_take_run(explaining, all, &count, &items[order[i]], &run);
    }
    return count;
}

static bool explain_spans_counts(const gp_explaining_t *explaining, const repeated_t *repeated)
{
    return repeated->spared_ns >= LEAST_NS && repeated->spared_ns >= explaining->latency_ns / 100 * LEAST_PERCENT;
}

// The group of an operation: its number, or `count`.
static size_t explain_spans_group_of(const gp_dataset_t *dataset, const repeated_t *all, size_t count,
                                     const gp_dataset_span_t *span)
{
    size_t at = 0;
    while (at < count && !(explain_spans_is_alike(all[at].span, span) &&
                           explain_spans_is_alike(all[at].parent, &dataset->spans.items[span->parent])))
        at++;
    return at;
}

static int explain_spans_say_all(gp_explaining_t *explaining, const uint32_t *order, size_t spans,
                                 const repeated_t *all, size_t count)
{
    const gp_dataset_t *dataset = explaining->dataset;
    uint32_t stacks[ALIKE_MAX] = {0};
    gp_span_code_t *items = calloc(spans + 1, sizeof(*items));
    size_t kept = 0;
    for (size_t i = 0; i < spans && items != NULL; i++) {
        const gp_dataset_span_t *span = &dataset->spans.items[order[i]];
        size_t group = explain_spans_group_of(dataset, all, count, span);
        if (group < count)
            items[kept++] = (gp_span_code_t){span->coro, (uint32_t)group, span->is.start, span->is.end};
    }
    int result = items != NULL ? gp_explain_span_code(explaining, items, kept, stacks, count) : -ENOMEM;
    for (size_t i = 0; i < count && result == 0; i++)
        explain_spans_say(explaining, &all[i], stacks[i]);
    free(items);
    return result;
}

int gp_explain_spans(gp_explaining_t *explaining)
{
    const gp_dataset_t *dataset = explaining->dataset;
    uint32_t *order = calloc(dataset->spans.count + 1, sizeof(*order));
    repeated_t *all = calloc(ALIKE_MAX, sizeof(*all));
    size_t spans = 0, count = 0, kept = 0;
    int result = order != NULL && all != NULL ? 0 : -ENOMEM;
    for (size_t i = 0; i < dataset->spans.count && result == 0; i++)
        if (dataset->spans.items[i].parent != GP_INDEX_NONE &&
            (explaining->trace == 0 || dataset->spans.items[i].trace == explaining->trace))
            order[spans++] = (uint32_t)i;
    sorted_spans = dataset->spans.items;
    if (spans > 0)
        qsort(order, spans, sizeof(*order), explain_spans_by_parent);
    if (spans > 0)
        count = explain_spans_gather(explaining, order, spans, all);
    for (size_t i = 0; i < count; i++)
        if (explain_spans_counts(explaining, &all[i]))
            all[kept++] = all[i];
    if (kept > 0)
        result = explain_spans_say_all(explaining, order, spans, all, kept);
    free(order);
    free(all);
    return result;
}
