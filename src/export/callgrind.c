// SPDX-License-Identifier: MIT
// callgrind: for callgrind_annotate and KCachegrind.
//
// Readers take a function's inclusive cost to be the sum of the calls into it. Therefore a function "[root]" calls the
// root of every stack, and an edge into a function that is on the stack already (recursion, direct or not) has its
// calls but no cost. Calls are numbers of samples; of exact mode they are calls, and the second event is waiting.
//
// Source: callgrind's cl-format.html, and callgrind_annotate 3.19.
#include "export/formats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/function_table.h"
#include "export/write/string_table.h"
#include "export/write/text.h"

enum { ROOT_ID = 1, FIRST_ID = 2 }; // callgrind's numbers of functions
#define ROOT UINT32_MAX             // as a caller

typedef struct cost {
    uint64_t ns, samples; // of exact mode: ns of waiting
} cost_t;

typedef struct edge {
    uint32_t caller; // frame, or ROOT
    uint32_t callee; // function
    uint64_t calls;
    cost_t cost;
} edge_t;

typedef struct callgrind {
    const gp_report_t *report;
    gp_function_table_t *table;
    cost_t *self;      // by frame
    uint32_t *seen;    // by function: the last row that had it, plus 1
    uint32_t *ordered; // frames, by function and line
    bool *named;       // by function: its name was written
    bool *namesake;    // by function: another of unknown source has its name
    edge_t *edges;
    size_t edge_count, edge_capacity;
    gp_index_t edge_index;
    gp_string_table_t files, objects;
    cost_t total;
    uint32_t rows; // added so far
    FILE *out;
} callgrind_t;

static bool callgrind_same_edge(const void *owner, uint32_t number, const void *key)
{
    const edge_t *a = &((const callgrind_t *)owner)->edges[number], *b = key;
    return a->caller == b->caller && a->callee == b->callee;
}

static edge_t *callgrind_edge_of(callgrind_t *callgrind, uint32_t caller, uint32_t callee)
{
    edge_t key = {.caller = caller, .callee = callee};
    uint64_t hash = gp_hash_u64((uint64_t)caller << 32 | callee);
    uint32_t number = gp_index_find(&callgrind->edge_index, hash, callgrind_same_edge, callgrind, &key);
    if (number != GP_INDEX_NONE)
        return &callgrind->edges[number];
    if (gp_grow(&callgrind->edges, &callgrind->edge_capacity, callgrind->edge_count, sizeof(*callgrind->edges)) < 0 ||
        gp_index_add(&callgrind->edge_index, hash, (uint32_t)callgrind->edge_count) < 0)
        return NULL;
    callgrind->edges[callgrind->edge_count] = key;
    return &callgrind->edges[callgrind->edge_count++];
}

static void callgrind_add_cost(cost_t *cost, const gp_report_row_t *row)
{
    cost->ns += row->weight_ns;
    cost->samples += row->samples;
}

static int callgrind_add_row(callgrind_t *callgrind, const gp_report_row_t *row)
{
    uint32_t stamp = ++callgrind->rows, caller = ROOT;
    for (uint32_t i = 0; i < row->depth; i++) {
        uint32_t callee = callgrind->table->of_frame[row->frames[i]];
        edge_t *edge = callgrind_edge_of(callgrind, caller, callee);
        if (edge == NULL)
            return -ENOMEM;
        edge->calls += row->samples;
        if (callgrind->seen[callee] != stamp)
            callgrind_add_cost(&edge->cost, row);
        callgrind->seen[callee] = stamp;
        caller = row->frames[i];
    }
    if (row->depth > 0)
        callgrind_add_cost(&callgrind->self[caller], row);
    return 0;
}

static int callgrind_add_part(void *context, const gp_report_row_t *rows, size_t count)
{
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++)
        result = callgrind_add_row(context, &rows[i]);
    return result;
}

static int callgrind_add_call(callgrind_t *callgrind, const gp_call_t *call)
{
    uint32_t caller = call->caller == GP_CALL_NO_CALLER ? ROOT : call->caller;
    edge_t *edge = callgrind_edge_of(callgrind, caller, callgrind->table->of_frame[call->callee]);
    if (edge == NULL)
        return -ENOMEM;
    edge->calls += call->calls;
    edge->cost.ns += call->cpu_ns;
    edge->cost.samples += call->wait_ns;
    callgrind->self[call->callee].ns += call->self_cpu_ns;
    callgrind->self[call->callee].samples += call->self_wait_ns;
    callgrind->total.ns += call->self_cpu_ns;
    callgrind->total.samples += call->self_wait_ns;
    return 0;
}

// By function, then by line, then by number.
static int callgrind_compare_frames(const callgrind_t *callgrind, uint32_t a, uint32_t b)
{
    const uint32_t *of_frame = callgrind->table->of_frame;
    const gp_report_frame_t *frames = callgrind->report->frames;
    if (a == b)
        return 0;
    if (a == ROOT || b == ROOT)
        return a == ROOT ? -1 : 1;
    if (of_frame[a] != of_frame[b])
        return of_frame[a] < of_frame[b] ? -1 : 1;
    if (frames[a].line != frames[b].line)
        return frames[a].line < frames[b].line ? -1 : 1;
    return a < b ? -1 : 1;
}

static int callgrind_compare_ordered(const void *left, const void *right, void *callgrind)
{
    return callgrind_compare_frames(callgrind, *(const uint32_t *)left, *(const uint32_t *)right);
}

static int callgrind_compare_edges(const void *left, const void *right, void *callgrind)
{
    const edge_t *a = left, *b = right;
    int callers = callgrind_compare_frames(callgrind, a->caller, b->caller);
    if (callers != 0)
        return callers;
    return a->callee < b->callee ? -1 : a->callee > b->callee;
}

static int callgrind_sum_up(callgrind_t *callgrind)
{
    const gp_report_t *report = callgrind->report;
    int result = 0;
    callgrind->total = (cost_t){.ns = report->total_ns, .samples = report->samples};
    if (report->exact_calls)
        callgrind->total = (cost_t){0};
    if (!report->exact_calls)
        result = gp_report_each_part(report, callgrind_add_part, callgrind);
    for (uint32_t i = 0; i < report->call_count && result == 0; i++)
        result = callgrind_add_call(callgrind, &report->calls[i]);
    for (uint32_t i = 0; i < report->frame_count; i++)
        callgrind->ordered[i] = i;
    if (result < 0 || callgrind->edge_count == 0)
        return result;
    qsort_r(callgrind->ordered, report->frame_count, sizeof(uint32_t), callgrind_compare_ordered, callgrind);
    qsort_r(callgrind->edges, callgrind->edge_count, sizeof(edge_t), callgrind_compare_edges, callgrind);
    return 0;
}

// "SPEC=(number) text"; the text only the first time.
static void callgrind_put_text(callgrind_t *callgrind, const char *spec, gp_string_table_t *table, const char *text)
{
    gp_string_table_number(table, ""); // not counted as new
    size_t known = table->count;
    uint32_t number = gp_string_table_number(table, text[0] != '\0' ? text : "???");

    fprintf(callgrind->out, "%s=(%" PRIu32 ")", spec, number);
    if (table->count > known) {
        putc(' ', callgrind->out);
        gp_text_put_line(callgrind->out, text[0] != '\0' ? text : "???");
    }
    putc('\n', callgrind->out);
}

static bool callgrind_has_source(const gp_report_frame_t *frame)
{
    return strcmp(frame->file, frame->module) != 0;
}

// callgrind_annotate goes by file and name, whatever the object, and looks for the lines of each file that is there.
static int callgrind_find_namesakes(callgrind_t *callgrind)
{
    const gp_function_table_t *table = callgrind->table;
    uint32_t *first = calloc((size_t)table->function_count + 2, sizeof(*first));
    gp_string_table_t names = {0};
    for (uint32_t i = 0; i < table->function_count && first != NULL; i++) {
        if (callgrind_has_source(table->functions[i].frame))
            continue;
        uint32_t number = gp_string_table_number(&names, table->functions[i].frame->function);
        if (first[number] != 0)
            callgrind->namesake[i] = callgrind->namesake[first[number] - 1] = true;
        else
            first[number] = i + 1;
    }
    int result = first != NULL && !names.failed ? 0 : -ENOMEM;
    gp_string_table_free(&names);
    free(first);
    return result;
}

// Name a function: object, file, name. The specs are "ob", "fl", "fn" or those of a callee.
static void callgrind_put_function(callgrind_t *callgrind, const char *const specs[3], uint32_t function)
{
    const gp_report_frame_t *frame = callgrind->table->functions[function].frame;
    callgrind_put_text(callgrind, specs[0], &callgrind->objects, frame->module);
    bool file = callgrind_has_source(frame) || callgrind->namesake[function];
    callgrind_put_text(callgrind, specs[1], &callgrind->files, file ? frame->file : "");
    fprintf(callgrind->out, "%s=(%" PRIu32 ")", specs[2], function + FIRST_ID);
    if (!callgrind->named[function]) {
        putc(' ', callgrind->out);
        gp_text_put_line(callgrind->out, frame->function);
    }
    callgrind->named[function] = true;
    putc('\n', callgrind->out);
}

static void callgrind_put_cost(callgrind_t *callgrind, uint32_t line, const cost_t *cost)
{
    fprintf(callgrind->out, "%" PRIu32 " %" PRIu64 " %" PRIu64 "\n", line, cost->ns, cost->samples);
}

static void callgrind_put_self(callgrind_t *callgrind, uint32_t frame)
{
    const cost_t *cost = &callgrind->self[frame];
    if (cost->ns > 0 || cost->samples > 0)
        callgrind_put_cost(callgrind, callgrind->report->frames[frame].line, cost);
}

static void callgrind_put_edge(callgrind_t *callgrind, const edge_t *edge)
{
    static const char *const specs[] = {"cob", "cfi", "cfn"};
    uint32_t line = edge->caller == ROOT ? 0 : callgrind->report->frames[edge->caller].line;
    callgrind_put_function(callgrind, specs, edge->callee);
    fprintf(callgrind->out, "calls=%" PRIu64 " %" PRIu32 "\n", edge->calls,
            callgrind->table->functions[edge->callee].frame->first_line);
    callgrind_put_cost(callgrind, line, &edge->cost);
}

// Functions come in order of their numbers, and so do edges: each function takes its own from the front.
static void callgrind_put_functions(callgrind_t *callgrind)
{
    static const char *const specs[] = {"ob", "fl", "fn"};
    const uint32_t *of_frame = callgrind->table->of_frame;
    size_t frame = 0, edge = 0;
    putc('\n', callgrind->out);
    callgrind_put_text(callgrind, specs[0], &callgrind->objects, "");
    callgrind_put_text(callgrind, specs[1], &callgrind->files, "");
    fprintf(callgrind->out, "fn=(%d) [root]\n", ROOT_ID);
    for (; edge < callgrind->edge_count && callgrind->edges[edge].caller == ROOT; edge++)
        callgrind_put_edge(callgrind, &callgrind->edges[edge]);
    for (uint32_t i = 0; i < callgrind->table->function_count; i++) {
        putc('\n', callgrind->out);
        callgrind_put_function(callgrind, specs, i);
        for (; frame < callgrind->report->frame_count && of_frame[callgrind->ordered[frame]] == i; frame++)
            callgrind_put_self(callgrind, callgrind->ordered[frame]);
        for (; edge < callgrind->edge_count && of_frame[callgrind->edges[edge].caller] == i; edge++)
            callgrind_put_edge(callgrind, &callgrind->edges[edge]);
    }
}

static void callgrind_put_all(callgrind_t *callgrind)
{
    const gp_report_t *report = callgrind->report;
    FILE *out = callgrind->out;
    fputs("# callgrind format\nversion: 1\ncreator: greenprof\ncmd: ", out);
    gp_text_put_line(out, report->title);
    fputs(report->exact_calls ? "\npart: 1\ndesc: Calls: all were counted\npositions: line\nevents: CpuNs WaitNs\n"
                              : "\npart: 1\ndesc: Calls: numbers of samples\npositions: line\nevents: CpuNs Samples\n",
          out);
    fprintf(out, "summary: %" PRIu64 " %" PRIu64 "\n", callgrind->total.ns, callgrind->total.samples);
    callgrind_put_functions(callgrind);
    fprintf(out, "\ntotals: %" PRIu64 " %" PRIu64 "\n", callgrind->total.ns, callgrind->total.samples);
}

static bool callgrind_allocate(callgrind_t *callgrind)
{
    size_t frames = (size_t)callgrind->report->frame_count + 1;
    callgrind->table = gp_function_table_create_uncharged(callgrind->report);
    if (callgrind->table == NULL)
        return false;
    callgrind->self = calloc(frames, sizeof(*callgrind->self));
    callgrind->ordered = calloc(frames, sizeof(*callgrind->ordered));
    callgrind->seen = calloc(frames, sizeof(*callgrind->seen));
    callgrind->named = calloc(frames, sizeof(*callgrind->named));
    callgrind->namesake = calloc(frames, sizeof(*callgrind->namesake));
    return callgrind->self != NULL && callgrind->ordered != NULL && callgrind->seen != NULL &&
           callgrind->named != NULL && callgrind->namesake != NULL;
}

int gp_callgrind_write(const gp_report_t *report, FILE *out)
{
    callgrind_t callgrind = {.report = report, .out = out};
    int result = callgrind_allocate(&callgrind) ? callgrind_sum_up(&callgrind) : -ENOMEM;
    if (result == 0)
        result = callgrind_find_namesakes(&callgrind);
    if (result == 0)
        callgrind_put_all(&callgrind);
    if (callgrind.files.failed || callgrind.objects.failed)
        result = -ENOMEM;
    gp_string_table_free(&callgrind.files);
    gp_string_table_free(&callgrind.objects);
    gp_index_free(&callgrind.edge_index);
    gp_function_table_free(callgrind.table);
    free(callgrind.self);
    free(callgrind.ordered);
    free(callgrind.seen);
    free(callgrind.named);
    free(callgrind.namesake);
    free(callgrind.edges);
    return result;
}
