// SPDX-License-Identifier: MIT
// The table by thread: its CPU time, by the kernel and by samples, and where its own stack was meanwhile.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"
#include "report_json.h"
#include "tables.h"

typedef struct thread_row {
    const gp_thread_record_t *thread;
    uint64_t sampled_ns, samples, cpu_ns, parts_ns[GP_KIND_COUNT], switches;
    char name[32];
} thread_row_t;

static const gp_table_options_t *sorting; // qsort() has no context

static uint64_t report_threads_column_of(const thread_row_t *row, gp_sort_t sort)
{
    static const enum gp_sample_kind kinds[] = {
        [GP_SORT_CPU] = GP_KIND_CPU,     [GP_SORT_BLOCKED] = GP_KIND_BLOCKED, [GP_SORT_PREEMPTED] = GP_KIND_PREEMPTED,
        [GP_SORT_READY] = GP_KIND_READY, [GP_SORT_PARKED] = GP_KIND_PARKED,   [GP_SORT_WAITING] = GP_KIND_WAITING,
        [GP_SORT_GIL] = GP_KIND_GIL,     [GP_SORT_LOCK] = GP_KIND_LOCK,
    };
    if (sort == GP_SORT_CALLS || sort == GP_SORT_PRIMITIVE_CALLS)
        return row->samples;
    if (sort == GP_SORT_SWITCHES)
        return row->switches;
    bool is_state = sort > GP_SORT_WALL && sort < sizeof(kinds) / sizeof(kinds[0]) && sort != GP_SORT_CPU &&
                    sort != GP_SORT_LONGEST;
    return is_state ? row->parts_ns[kinds[sort]] : row->cpu_ns;
}

static int report_threads_compare(const void *left, const void *right)
{
    const thread_row_t *a = left, *b = right;
    gp_sort_t sort = sorting->sorts.keys[0]->sort;
    bool by_name = sort == GP_SORT_NAME || sort == GP_SORT_STANDARD_NAME || sort == GP_SORT_NAME_FILE_LINE;
    int result = by_name ? strcmp(a->name, b->name) : 0;
    uint64_t x = report_threads_column_of(a, sort), y = report_threads_column_of(b, sort);
    if (result != 0 || x != y)
        return result != 0 ? result : x > y ? -1 : 1;
    if (a->sampled_ns != b->sampled_ns)
        return a->sampled_ns > b->sampled_ns ? -1 : 1;
    return a->thread->index < b->thread->index ? -1 : a->thread->index > b->thread->index;
}

static const char *report_threads_name_of(const void *context, uint32_t row)
{
    return ((const thread_row_t *)context)[row].name;
}

// The ledger is that of the thread's own stack: what coroutines did there stands under these.
static void report_threads_add_ledger(thread_row_t *row, const gp_dataset_share_t *share)
{
    for (uint32_t kind = 0; kind < GP_KIND_COUNT; kind++)
        row->parts_ns[kind] += gp_ledger_kind_ns(&share->ledger, kind);
    row->switches += share->ledger.switches;
}

static void report_threads_fill(const gp_dataset_t *dataset, thread_row_t *rows)
{
    for (size_t i = 0; i < dataset->facts.threads.count; i++) {
        const gp_thread_record_t *thread = &dataset->facts.threads.items[i];
        rows[i] = (thread_row_t){.thread = thread, .cpu_ns = thread->cpu_ns};
        snprintf(rows[i].name, sizeof(rows[i].name), "%.*s", (int)sizeof(thread->name), thread->name);
    }
    for (size_t i = 0; i < dataset->thread_sums.count; i++) {
        uint32_t number = gp_dataset_thread_find(dataset, dataset->thread_sums.items[i].index);
        if (number == GP_INDEX_NONE)
            continue;
        rows[number].sampled_ns += dataset->thread_sums.items[i].sampled.ns;
        rows[number].samples += dataset->thread_sums.items[i].sampled.samples;
    }
    for (size_t i = 0; i < dataset->shares.count; i++) {
        const gp_dataset_share_t *share = &dataset->shares.items[i];
        const gp_coro_record_t *coro = &dataset->facts.coros.items[share->coro].record;
        uint32_t number = coro->kind == GP_CORO_THREAD ? gp_dataset_thread_find(dataset, coro->thread) : GP_INDEX_NONE;
        if (number != GP_INDEX_NONE)
            report_threads_add_ledger(&rows[number], share);
    }
}

// Waits of the own stack: its CPU time is a part of the thread's.
static void report_threads_print_row(const thread_row_t *row, bool is_exact, const bool *is_shown)
{
    static const enum gp_sample_kind kinds[] = {GP_KIND_BLOCKED, GP_KIND_PREEMPTED, GP_KIND_READY, GP_KIND_PARKED,
                                                GP_KIND_WAITING, GP_KIND_GIL,       GP_KIND_LOCK};
    if (is_exact)
        gp_print_seconds(row->cpu_ns, 9);
    else
        printf("%9s", "-");
    gp_print_seconds(row->sampled_ns, 9);
    printf(" %8" PRIu64, row->samples);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (!is_shown[kinds[i]])
            continue;
        else if (is_exact)
            gp_print_seconds(row->parts_ns[kinds[i]], 9);
        else
            printf("%9s", "-");
    printf(" %8" PRIu32 " ", row->thread->tid);
    gp_print_text(row->name);
    printf("\n");
}

static void report_threads_json_row(gp_json_t *json, const thread_row_t *row, bool is_exact)
{
    uint64_t parts_ns[GP_KIND_COUNT];
    memcpy(parts_ns, row->parts_ns, sizeof(parts_ns));
    parts_ns[GP_KIND_CPU] = row->cpu_ns;
    gp_json_open(json, '{');
    gp_json_key_text(json, "name", row->name);
    gp_json_key_uint(json, "tid", row->thread->tid);
    gp_json_key_uint(json, "start_ns", row->thread->start_ns);
    gp_report_json_known(json, "end_ns", row->thread->end_ns != 0, row->thread->end_ns);
    gp_json_key_uint(json, "sampled_ns", row->sampled_ns);
    gp_json_key_uint(json, "samples", row->samples);
    gp_report_json_states(json, parts_ns, is_exact);
    gp_json_close(json, '}');
    gp_json_line(json);
}

static void report_threads_put(const gp_input_t *source, const gp_table_options_t *options, thread_row_t *rows,
                               uint32_t *numbers, size_t count)
{
    bool is_exact = !source->dataset->windowed && source->options.selection.traces == NULL &&
                    source->options.selection.coros == NULL && source->options.selection.threads == NULL;
    bool is_shown[GP_KIND_COUNT];
    for (uint32_t kind = 0; kind < GP_KIND_COUNT; kind++)
        is_shown[kind] = gp_dataset_has_kind(source->dataset, kind);
    sorting = options;
    if (count > 0)
        qsort(rows, count, sizeof(*rows), report_threads_compare);
    for (size_t i = 0; i < count; i++)
        numbers[i] = (uint32_t)i;
    if (options->json != NULL) {
        count = gp_report_json_restrict(options->restrictions, numbers, count, report_threads_name_of, rows);
        for (size_t i = 0; i < count; i++)
            report_threads_json_row(options->json, &rows[numbers[i]], is_exact);
        gp_json_close(options->json, ']');
        return;
    }
    count = gp_restrictions_apply(options->restrictions, numbers, count, report_threads_name_of, rows);
    printf("   Waits are those of the threads' own stacks: what coroutines wait for is in --by coroutine\n\n");
    printf("      cpu  sampled  samples  blocked  preempt    ready   parked  waiting%s%s      tid name\n",
           is_shown[GP_KIND_GIL] ? "      gil" : "", is_shown[GP_KIND_LOCK] ? "     lock" : "");
    for (size_t i = 0; i < count; i++)
        report_threads_print_row(&rows[numbers[i]], is_exact, is_shown);
    printf("\n");
}

int gp_report_print_threads(const gp_input_t *source, const gp_table_options_t *options)
{
    size_t count = source->dataset->facts.threads.count;
    thread_row_t *rows = calloc(count + 1, sizeof(*rows));
    uint32_t *numbers = calloc(count + 1, sizeof(*numbers));
    int result = rows != NULL && numbers != NULL ? 0 : -ENOMEM;
    if (result == 0) {
        report_threads_fill(source->dataset, rows);
        report_threads_put(source, options, rows, numbers, count);
    }
    free(rows);
    free(numbers);
    return result;
}
