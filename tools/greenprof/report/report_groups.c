// SPDX-License-Identifier: MIT
// The tables by coroutine and by trace.
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/write/text.h"
#include "print.h"
#include "run/runtimes.h"
#include "tables.h"

enum { NAME_SIZE = 256, HINT_SIZE = 256 };

typedef struct group { // a row: a coroutine, a trace
    uint32_t number;   // in the dataset's table
    uint64_t cpu_ns, sampled_ns, samples, switches;
    uint64_t parts_ns[GP_KIND_COUNT]; // the ledger, by kind of sample
    uint64_t wall_ns, longest_ns;     // sum of these; the longest slice
    double squares_ns2;               // of the on-CPU samples' weights
    bool polled;                      // its switches were not reported
    uint32_t coro;                    // that names a trace; GP_INDEX_NONE = none does
    char *name;
} group_t;

static const gp_table_options_t *sorting; // qsort() has no context
static bool exact;                        // whether the ledger knows what was chosen

static int report_groups_by_number(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

// The value of a column, from the ledger.
static uint64_t report_groups_column_of(const group_t *group, gp_sort_t sort)
{
    static const enum gp_sample_kind kinds[] = {
        [GP_SORT_CPU] = GP_KIND_CPU,     [GP_SORT_BLOCKED] = GP_KIND_BLOCKED, [GP_SORT_PREEMPTED] = GP_KIND_PREEMPTED,
        [GP_SORT_READY] = GP_KIND_READY, [GP_SORT_PARKED] = GP_KIND_PARKED,   [GP_SORT_WAITING] = GP_KIND_WAITING,
        [GP_SORT_GIL] = GP_KIND_GIL,     [GP_SORT_QUEUED] = GP_KIND_QUEUED,
    };
    if (sort == GP_SORT_WALL)
        return group->wall_ns;
    if (sort == GP_SORT_SWITCHES)
        return group->switches;
    return sort == GP_SORT_LONGEST ? group->longest_ns : group->parts_ns[kinds[sort]];
}

static bool wall;    // whether the wall clock is shown
static bool has_gil; // whether a thread waited for the lock of its interpreter
static bool has_queued;

// The pstats keys that make sense here: calls, time, name. Time is the ledger's.
static int report_groups_compare(const void *left, const void *right)
{
    const group_t *a = left, *b = right;
    gp_sort_t sort = sorting->sorts.keys[0]->sort;
    int result = 0;
    if (sort == GP_SORT_CALLS || sort == GP_SORT_PRIMITIVE_CALLS)
        result = report_groups_by_number(b->samples, a->samples);
    else if (sort >= GP_SORT_WALL)
        result = report_groups_by_number(report_groups_column_of(b, sort), report_groups_column_of(a, sort));
    else if (sort != GP_SORT_TIME && sort != GP_SORT_CUMULATIVE)
        result = strcmp(a->name, b->name);
    if (result == 0 && wall)
        result = report_groups_by_number(b->wall_ns, a->wall_ns);
    if (result == 0)
        result = report_groups_by_number(b->cpu_ns, a->cpu_ns);
    if (result == 0)
        result = report_groups_by_number(b->sampled_ns, a->sampled_ns);
    return result != 0 ? result : report_groups_by_number(a->number, b->number);
}

#define COLUMNS_CPU    "      cpu  sampled     +-  samples  switches"
#define COLUMNS_WALL   "     wall      cpu  blocked  preempt    ready   parked  waiting"
#define COLUMNS_SLICES "  longest  switches"

static void report_groups_print_seconds(uint64_t ns, bool known)
{
    if (known)
        gp_print_seconds(ns, 9);
    else
        printf(" %8s", "-");
}

// The parts add up to wall.
static void report_groups_print_ledger(const group_t *group)
{
    static const enum gp_sample_kind kinds[] = {GP_KIND_CPU,   GP_KIND_BLOCKED, GP_KIND_PREEMPTED,
                                                GP_KIND_READY, GP_KIND_PARKED,  GP_KIND_WAITING,
                                                GP_KIND_GIL,   GP_KIND_QUEUED}; // the last two where there is any
    // Nothing said when it became ready: all of it is "waiting".
    bool undivided = group->parts_ns[GP_KIND_WAITING] > 0 && group->parts_ns[GP_KIND_READY] == 0 &&
                     group->parts_ns[GP_KIND_PARKED] == 0;
    gp_print_seconds(group->wall_ns, 9);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if ((kinds[i] == GP_KIND_GIL && !has_gil) || (kinds[i] == GP_KIND_QUEUED && !has_queued))
            continue;
        bool divided = kinds[i] == GP_KIND_READY || kinds[i] == GP_KIND_PARKED;
        bool waits = divided || kinds[i] == GP_KIND_WAITING;
        report_groups_print_seconds(group->parts_ns[kinds[i]], !(waits && group->polled) && !(divided && undivided));
    }
    report_groups_print_seconds(group->longest_ns, !group->polled);
}

static void report_groups_print_switches(const group_t *group)
{
    if (exact && !group->polled)
        printf(" %9" PRIu64, group->switches);
    else
        printf(" %9s", "-");
}

static void report_groups_print_columns(const group_t *group)
{
    if (exact && wall) {
        report_groups_print_ledger(group);
        report_groups_print_switches(group);
        return;
    }
    if (exact)
        gp_print_seconds(group->cpu_ns, 9);
    else
        printf("%9s", "-");
    gp_print_seconds(group->sampled_ns, 9);
    gp_print_seconds((uint64_t)(1.96 * sqrt(group->squares_ns2)), 7); // 95 % of what chance does
    printf(" %8" PRIu64, group->samples);
    report_groups_print_switches(group);
}

// For a stack that no hook announced.
static void report_groups_print_hint(const gp_input_t *source, const gp_facts_coro_t *coro)
{
    static const gp_dataset_t *asked;
    static char hint[HINT_SIZE];
    char text[HINT_SIZE + 128];
    if (asked != source->dataset)
        gp_runtimes_hint(source->dataset, hint, sizeof(hint));
    asked = source->dataset;
    printf(" (%s)", gp_runtimes_hint_of(coro, hint, text, sizeof(text)));
}

static void report_groups_print_coroutine(const gp_input_t *source, const group_t *group)
{
    const gp_facts_coro_t *coro = &source->dataset->facts.coros.items[group->number];
    const gp_dataset_coro_t *sums = &source->dataset->coros.items[group->number];
    char trace[64] = "-";
    if (sums->traces == 1)
        gp_report_trace_label(source->dataset, sums->trace, true, trace, sizeof(trace));
    else if (sums->traces > 1)
        snprintf(trace, sizeof(trace), "%" PRIu32 " traces", sums->traces);
    report_groups_print_columns(group);
    printf(" %6" PRIu64 " %-32s ", coro->record.id, trace);
    gp_print_text(group->name);
    if (coro->record.kind == GP_CORO_FOUND)
        report_groups_print_hint(source, coro);
    printf("\n");
}

// From the beginning of a trace's first request to the end of its last.
static void report_groups_print_latency(const gp_input_t *source, uint32_t trace)
{
    const gp_requests_t *requests = source->requests;
    uint64_t end_ns = 0;
    char text[32];
    if (requests == NULL || requests->first[trace] == requests->first[trace + 1]) {
        printf(" %9s", "-");
        return;
    }
    const gp_request_t *first = &requests->items[requests->first[trace]];
    for (uint32_t i = requests->first[trace]; i < requests->first[trace + 1]; i++)
        if (requests->items[i].end_ns > end_ns)
            end_ns = requests->items[i].end_ns;
    text[0] = '~';
    gp_text_decimal(text + 1, end_ns - first->start_ns, 1000000000, 3);
    printf(" %9s", text + !first->is_about);
}

static void report_groups_print_trace(const gp_input_t *source, const group_t *group)
{
    char label[NAME_SIZE];
    report_groups_print_columns(group);
    report_groups_print_latency(source, group->number);
    printf(" %10" PRIu32 " ", source->dataset->facts.traces.items[group->number].coros);
    gp_print_text(group->name);
    if (group->coro != GP_INDEX_NONE) {
        gp_report_coro_label(source->dataset, group->coro, source->symbolizer, true, label, sizeof(label));
        const char *name = strchr(label, ' '); // behind its number
        printf(" ");
        gp_print_text(name != NULL ? name + 1 : label);
    }
    printf("\n");
}

static void report_groups_print_order(const gp_table_options_t *options)
{
    gp_sort_t sort = options->sorts.keys[0]->sort;
    bool time = sort == GP_SORT_TIME || sort == GP_SORT_CUMULATIVE;
    bool calls = sort == GP_SORT_CALLS || sort == GP_SORT_PRIMITIVE_CALLS;
    if (sort >= GP_SORT_WALL) {
        const char *what = options->sorts.keys[0]->what;
        if (exact)
            printf("   Ordered by: %s\n", what);
        else
            printf("   Ordered by: sampled CPU time; %s is not known of this part\n", what);
        return;
    }
    printf("   Ordered by: %s\n", !time   ? calls ? "samples" : "name"
                                  : exact ? wall ? "wall time" : "exact CPU time"
                                          : "sampled CPU time");
}

static const char *report_groups_name_of(const void *context, uint32_t row)
{
    return ((const group_t *)context)[row].name;
}

static bool report_groups_any_polled(const group_t *groups, const uint32_t *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (groups[rows[i]].polled)
            return true;
    return false;
}

typedef struct layout {
    const char *columns; // behind those that all tables have
    void (*print)(const gp_input_t *, const group_t *);
} layout_t;

static int report_groups_print_groups(const gp_input_t *source, const gp_table_options_t *options, group_t *groups,
                                      size_t count, const layout_t *layout)
{
    uint32_t *rows = calloc(count + 1, sizeof(*rows));
    const gp_dataset_t *dataset = source->dataset;
    uint64_t chosen_ns = dataset->windowed ? dataset->window.to_ns - dataset->window.from_ns : dataset->facts.end_ns;
    double cores_s = gp_input_hosts(source) > 0 ? (double)chosen_ns / 1e9 : 0; // of a store, to divide by
    if (rows == NULL)
        return -ENOMEM;
    sorting = options;
    has_gil = dataset->has_gil;
    has_queued = dataset->has_queued;
    if (count > 0)
        qsort(groups, count, sizeof(*groups), report_groups_compare);
    for (size_t i = 0; i < count; i++)
        rows[i] = (uint32_t)i;
    report_groups_print_order(options);
    count = gp_restrictions_apply(options->restrictions, rows, count, report_groups_name_of, groups);
    printf("\n%s", cores_s > 0 ? "   cores " : "");
    if (exact && wall)
        printf("%s%s%s%s", COLUMNS_WALL, has_gil ? "      gil" : "", has_queued ? "   queued" : "", COLUMNS_SLICES);
    else
        printf("%s", COLUMNS_CPU);
    printf(" %s\n", layout->columns);
    for (size_t i = 0; i < count; i++) {
        if (cores_s > 0)
            printf("%8.3f ", (double)groups[rows[i]].sampled_ns / 1e9 / cores_s);
        layout->print(source, &groups[rows[i]]);
    }
    if (report_groups_any_polled(groups, rows, count))
        printf("\n   -: read at samples, no switch was seen: CPU time is the samples', switches and waits are not "
               "known\n");
    printf("\n");
    free(rows);
    return 0;
}

// Sum up what was chosen of every (coroutine, trace) pair, per coroutine or per trace.
static void report_groups_add_up(const gp_input_t *source, const gp_group_sum_t *sums, group_t *groups, bool by_trace)
{
    const gp_dataset_t *dataset = source->dataset;
    for (size_t i = 0; i < dataset->shares.count && exact; i++) {
        const gp_dataset_share_t *share = &dataset->shares.items[i];
        if (!gp_selection_has_share(&source->options.selection, share))
            continue;
        group_t *group = &groups[by_trace ? share->trace : share->coro];
        group->cpu_ns += share->ledger.cpu_ns;
        group->switches += share->ledger.switches;
        bool is_whole = gp_dataset_is_ordinary(dataset, share->coro); // also where its sleep has no stacks
        for (uint32_t kind = 0; kind < GP_KIND_COUNT; kind++) {
            uint64_t ns =
                is_whole ? gp_ledger_kind_ns(&share->ledger, kind) : gp_dataset_share_ns(dataset, share, kind);
            group->parts_ns[kind] += ns;
            group->wall_ns += ns;
        }
        if (share->ledger.longest_ns > group->longest_ns)
            group->longest_ns = share->ledger.longest_ns;
    }
    for (size_t i = 0; i < (by_trace ? dataset->facts.traces.count : dataset->facts.coros.count); i++) {
        groups[i].squares_ns2 = sums[i].squares;
        groups[i].sampled_ns = sums[i].ns;
        groups[i].samples = sums[i].samples;
    }
}

// The first coroutine with a name that worked for a trace and for nothing else: often it says which request it was.
static void report_groups_name_traces(const gp_dataset_t *dataset, group_t *groups)
{
    for (size_t i = 0; i < dataset->facts.traces.count; i++)
        groups[i].coro = GP_INDEX_NONE;
    for (size_t i = 0; i < dataset->shares.count; i++) {
        const gp_dataset_share_t *share = &dataset->shares.items[i];
        const gp_facts_coro_t *coro = &dataset->facts.coros.items[share->coro];
        uint32_t *first = &groups[share->trace].coro;
        if (dataset->facts.traces.items[share->trace].index != 0 && dataset->coros.items[share->coro].traces == 1 &&
            coro->record.name[0] != '\0' &&
            (*first == GP_INDEX_NONE || coro->record.birth_ns < dataset->facts.coros.items[*first].record.birth_ns))
            *first = share->coro;
    }
}

// The threads of such coroutines: for the ledger, they never switched.
static bool report_groups_is_polled(const gp_dataset_t *dataset, uint32_t coro, bool any)
{
    uint32_t kind = dataset->facts.coros.items[coro].record.kind;
    return kind == GP_CORO_POLLED || (kind == GP_CORO_THREAD && any && dataset->coros.items[coro].ledger.switches == 0);
}

static size_t report_groups_keep_used(const gp_input_t *source, group_t *groups, size_t count, bool by_trace)
{
    char name[NAME_SIZE];
    size_t kept = 0;
    bool any = false;
    for (size_t i = 0; i < source->dataset->facts.coros.count; i++)
        any |= source->dataset->facts.coros.items[i].record.kind == GP_CORO_POLLED;

    for (size_t i = 0; i < count; i++) {
        group_t group = groups[i];
        if (group.cpu_ns == 0 && group.switches == 0 && group.samples == 0 && !(wall && group.wall_ns > 0))
            continue;
        group.number = (uint32_t)i;
        group.polled = !by_trace && report_groups_is_polled(source->dataset, group.number, any);
        if (by_trace)
            gp_report_trace_label(source->dataset, group.number, true, name, sizeof(name));
        else
            gp_report_coro_label(source->dataset, group.number, source->symbolizer, true, name, sizeof(name));
        group.name = strdup(name);
        groups[kept++] = group;
    }
    return kept;
}

static int report_groups_print_table(const gp_input_t *source, const gp_group_sum_t *sums,
                                     const gp_table_options_t *options, bool by_trace)
{
    static const layout_t layouts[] = {
        {"    id trace                            name", report_groups_print_coroutine},
        {"  latency coroutines trace                            name", report_groups_print_trace},
    };
    size_t count = by_trace ? source->dataset->facts.traces.count : source->dataset->facts.coros.count;
    group_t *groups = calloc(count + 1, sizeof(*groups));
    if (groups == NULL)
        return -ENOMEM;
    // The ledger knows coroutines and traces, not threads, moments or functions.
    exact = !source->dataset->windowed && source->options.selection.threads == NULL &&
            source->options.stacks.focus_count == 0 && source->options.stacks.ignore_count == 0;
    wall = source->options.measure == GP_MEASURE_WALL;
    report_groups_add_up(source, sums, groups, by_trace);
    if (by_trace)
        report_groups_name_traces(source->dataset, groups);
    count = report_groups_keep_used(source, groups, count, by_trace);
    int result = 0;
    for (size_t i = 0; i < count; i++)
        if (groups[i].name == NULL)
            result = -ENOMEM;
    if (result == 0)
        result = report_groups_print_groups(source, options, groups, count, &layouts[by_trace]);
    for (size_t i = 0; i < count; i++)
        free(groups[i].name);
    free(groups); // -Wanalyzer-malloc-leak: every name is freed in the loop above
    return result;
}

int gp_report_print_coroutines(const gp_input_t *source, const gp_group_sum_t *sums, const gp_table_options_t *options)
{
    return report_groups_print_table(source, sums, options, false);
}

int gp_report_print_traces(const gp_input_t *source, const gp_group_sum_t *sums, const gp_table_options_t *options)
{
    return report_groups_print_table(source, sums, options, true);
}
