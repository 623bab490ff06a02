// SPDX-License-Identifier: MIT
// Above the functions of critical paths: what states and coroutines have of them, and a single path in the order of
// time.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"
#include "report/critical_path.h"
#include "report/thread_blockers.h"
#include "tables.h"

enum { NAME_SIZE = 256, CALLERS_MAX = 4, PARTS_SHOWN = 20 };

static double report_paths_percent(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part * 100 / (double)whole : 0;
}

// --- parts: what an endpoint's coroutines of one name have in one state

typedef struct part {
    uint32_t endpoint, coro; // frames; endpoint GP_INDEX_NONE: there is one request
    const char *state;
    uint64_t ns;
    uint64_t requests; // of the endpoint
} part_t;

// The state at the end of a stack on a critical path.
static const char *report_paths_state_of(const gp_report_t *report, const gp_report_row_t *row)
{
    static const char *const states[] = {
        "ready",        "parked",    "waiting", "blocked", "preempted", "not started", "at another request",
        "not recorded", "not known", "gil",     "queued"};
    for (uint32_t back = 1; back <= 2 && back < row->depth; back++) {
        const char *leaf = report->frames[row->frames[row->depth - back]].function;
        for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
            size_t len = strlen(states[i]);
            if (leaf[0] == '[' && strncmp(leaf + 1, states[i], len) == 0 && leaf[len + 1] == ']')
                return strcmp(states[i], "not started") == 0 ? "ready" : states[i];
        }
    }
    return "running";
}

static int report_paths_by_weight(const void *left, const void *right)
{
    const part_t *a = left, *b = right;
    return a->ns > b->ns ? -1 : a->ns < b->ns;
}

static bool report_paths_same_part(const void *owner, uint32_t number, const void *key)
{
    const part_t *a = &((const part_t *)owner)[number], *b = key;
    return a->endpoint == b->endpoint && a->coro == b->coro && strcmp(a->state, b->state) == 0;
}

// Returns how many, or -ENOMEM.
static int64_t report_paths_add_up(const gp_report_t *report, bool single, part_t *parts)
{
    gp_index_t index = {0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < report->row_count; i++) {
        const gp_report_row_t *row = &report->rows[i];
        part_t key = {
            .endpoint = single ? GP_INDEX_NONE : row->frames[0],
            .coro = row->frames[!single && row->depth > 1],
            .state = report_paths_state_of(report, row),
        };
        uint64_t hash = gp_hash_more(gp_hash_u64((uint64_t)key.endpoint << 32 | key.coro), (uintptr_t)key.state);
        uint32_t number = gp_index_find(&index, hash, report_paths_same_part, parts, &key);
        if (number == GP_INDEX_NONE) {
            number = count++;
            parts[number] = key;
            if (gp_index_add(&index, hash, number) < 0) {
                gp_index_free(&index);
                return -ENOMEM;
            }
        }
        parts[number].ns += row->weight_ns;
    }
    gp_index_free(&index);
    return count;
}

// How many requests an endpoint has, of those that were chosen; 0 = not known.
//   frame: as in rows: "[rest_dispatch GET /servers]".
static uint64_t report_paths_requests_of(const gp_input_t *source, const char *frame)
{
    const gp_requests_t *requests = source->requests;
    char text[NAME_SIZE];
    uint64_t count = 0;
    for (size_t i = 0; requests != NULL && i < requests->count; i++) {
        gp_endpoint_text(&requests->endpoints[requests->items[i].endpoint], text, sizeof(text) - 2);
        size_t len = strlen(text);
        count += source->requests_chosen[i] && strncmp(frame + 1, text, len) == 0 && frame[len + 1] == ']';
    }
    return count;
}

static int report_paths_print_parts(const gp_input_t *source, const gp_report_t *report)
{
    bool single = source->path_sums.requests == 1, per_request = !single && source->requests != NULL;
    part_t *parts = calloc((size_t)report->row_count + 1, sizeof(*parts));
    int64_t count = parts != NULL ? report_paths_add_up(report, single, parts) : -ENOMEM;
    if (count < 0) {
        free(parts);
        return (int)count;
    }
    qsort(parts, (size_t)count, sizeof(*parts), report_paths_by_weight);
    for (int64_t i = 0; i < count && i < PARTS_SHOWN && per_request; i++)
        parts[i].requests = report_paths_requests_of(source, report->frames[parts[i].endpoint].function);
    printf("   Coroutines and their states on the critical path%s, milliseconds\n\n", single ? "" : "s");
    printf("        ms %s     %% state     coroutine\n", per_request ? "a request " : "");
    for (int64_t i = 0; i < count && i < PARTS_SHOWN; i++) {
        gp_print_ms(parts[i].ns, 10);
        if (per_request)
            gp_print_ms(parts[i].requests > 0 ? parts[i].ns / parts[i].requests : 0, 11);
        printf(" %6.1f %-9s ", report_paths_percent(parts[i].ns, report->total_ns), parts[i].state);
        const char *coroutine = report->frames[parts[i].coro].function;
        if (single)
            gp_print_name(coroutine, 28);
        else
            gp_print_text(coroutine);
        if (!single) {
            printf(" of ");
            gp_print_text(report->frames[parts[i].endpoint].function);
        }
        printf("\n");
    }
    if (count > PARTS_SHOWN)
        printf("   and %" PRId64 " more\n", count - PARTS_SHOWN);
    printf("\n");
    free(parts);
    return 0;
}

// --- a single path

struct gp_shown_paths {
    gp_path_segment_t *segments; // of a single request
    size_t count;
    gp_gains_t *gains; // of several
};
typedef struct gp_shown_paths path_t;

static int report_paths_keep_path(void *context, uint32_t request, const gp_path_segment_t *segments, size_t count)
{
    path_t *path = context;
    (void)request;
    path->segments = malloc((count + 1) * sizeof(*segments));
    if (path->segments == NULL)
        return -ENOMEM;
    memcpy(path->segments, segments, count * sizeof(*segments));
    path->count = count;
    return 0;
}

static int report_paths_by_number(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a > b ? -1 : a < b;
}

// How long a segment must be to be among the `most` longest. Returns UINT64_MAX when memory is short.
static uint64_t report_paths_shortest(const path_t *path, size_t most)
{
    uint64_t *lengths = calloc(path->count + 1, sizeof(*lengths));
    if (lengths == NULL)
        return UINT64_MAX;
    for (size_t i = 0; i < path->count; i++)
        lengths[i] = path->segments[i].to_ns - path->segments[i].from_ns;
    qsort(lengths, path->count, sizeof(*lengths), report_paths_by_number);
    uint64_t least = most > 0 && path->count > most ? lengths[most - 1] : 0;
    free(lengths);
    return least;
}

const char *gp_report_path_state(const gp_path_segment_t *segment)
{
    static const char *const texts[GP_KIND_COUNT] = {
        [GP_KIND_CPU] = "running",     [GP_KIND_PREEMPTED] = "preempted", [GP_KIND_PARKED] = "parked",
        [GP_KIND_WAITING] = "waiting", [GP_KIND_READY] = "ready",         [GP_KIND_BLOCKED] = "blocked",
        [GP_KIND_GIL] = "gil",         [GP_KIND_QUEUED] = "queued"};
    return segment->flags & (GP_PATH_UNRECORDED | GP_PATH_UNKNOWN) ? "unknown" : texts[segment->state];
}

void gp_report_print_path_stack(const gp_input_t *source, const gp_path_segment_t *segment)
{
    const gp_dataset_t *dataset = source->dataset;
    const gp_facts_stack_t *stack =
        segment->stack != GP_INDEX_NONE ? &dataset->facts.stacks.items[segment->stack] : NULL;
    if (stack == NULL && segment->state == GP_KIND_QUEUED) {
        const gp_facts_coro_t *coro = &dataset->facts.coros.items[segment->coro];
        gp_print_text(gp_report_loc_name(dataset, source->symbolizer, coro->pool));
        return;
    }
    if (stack == NULL) {
        printf("%s", segment->flags & GP_PATH_NOT_STARTED  ? "[not started]"
                     : segment->flags & GP_PATH_UNRECORDED ? "[not recorded]"
                     : segment->flags & GP_PATH_ELSEWHERE  ? "[at another request]"
                     : segment->flags & GP_PATH_UNKNOWN    ? "[not known]"
                                                           : "[not sampled]");
        return;
    }
    for (uint16_t i = 0; i < stack->depth && i < CALLERS_MAX; i++) {
        printf("%s", i > 0 ? " < " : "");
        gp_print_text(gp_report_loc_name(dataset, source->symbolizer, stack->frames[i]));
    }
}

static void report_paths_print_coro(const gp_input_t *source, uint32_t coro, int width)
{
    char text[NAME_SIZE];
    size_t len = gp_report_coro_label(source->dataset, coro, source->symbolizer, false, text, sizeof(text));
    gp_print_text(text);
    for (; (int)len < width; len++)
        putchar(' ');
}

static void report_paths_print_segment(const gp_input_t *source, const gp_path_segment_t *segment, uint64_t start_ns,
                                       uint64_t latency_ns, const gp_path_ready_t *ready)
{
    gp_print_ms(segment->from_ns - start_ns, 10);
    gp_print_ms(segment->to_ns - segment->from_ns, 11);
    printf(" %6.1f %-9s ", report_paths_percent(segment->to_ns - segment->from_ns, latency_ns),
           gp_report_path_state(segment));
    report_paths_print_coro(source, segment->coro, 28);
    printf(" ");
    gp_report_print_path_stack(source, segment);
    if (segment->state == GP_KIND_PARKED && segment->blame != GP_INDEX_NONE) {
        printf("; woken by ");
        report_paths_print_coro(source, segment->blame, 0);
    }
    for (uint32_t i = 0; ready != NULL && i < ready->keeper_count; i++) {
        printf("%s ", i > 0 ? "," : segment->state == GP_KIND_READY ? "; behind" : "; meanwhile");
        report_paths_print_coro(source, ready->keepers[i].coro, 0);
        printf(" for ");
        gp_print_ms(ready->keepers[i].ns, 0);
        printf(" ms");
    }
    printf("\n");
}

// Who kept the thread while a segment was ready, or may have been. The caller frees what is returned; NULL when memory
// is short.
static gp_path_ready_t *report_paths_find_keepers(const gp_dataset_t *dataset, const path_t *path, uint32_t *numbers)
{
    gp_path_ready_t *ready = calloc(path->count + 1, sizeof(*ready));
    size_t count = 0;
    for (size_t i = 0; i < path->count && ready != NULL; i++) {
        const gp_path_segment_t *segment = &path->segments[i];
        numbers[i] = GP_INDEX_NONE;
        if (segment->thread != 0)
            ready[count++] = (gp_path_ready_t){.from_ns = segment->from_ns,
                                               .to_ns = segment->to_ns,
                                               .coro = segment->coro,
                                               .thread = segment->thread,
                                               .tag = (uint32_t)i};
    }
    if (ready != NULL && gp_critical_keepers(dataset, ready, count) < 0) {
        free(ready);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        numbers[ready[i].tag] = (uint32_t)i;
    return ready;
}

static int report_paths_print_segments(const gp_input_t *source, const gp_request_t *request, const path_t *path,
                                       size_t most)
{
    uint32_t *numbers = calloc(path->count + 1, sizeof(*numbers));
    gp_path_ready_t *ready = numbers != NULL ? report_paths_find_keepers(source->dataset, path, numbers) : NULL;
    uint64_t least = report_paths_shortest(path, most), left_out_ns = 0;
    size_t left_out = 0;
    if (ready == NULL || least == UINT64_MAX) {
        free(ready);
        free(numbers);
        return -ENOMEM;
    }
    printf("   The path in the order of time, milliseconds since the beginning\n\n");
    printf("        at         ms      %% state     coroutine                    where\n");
    for (size_t i = 0; i < path->count; i++) {
        const gp_path_segment_t *segment = &path->segments[i];
        if (segment->to_ns - segment->from_ns >= least) {
            report_paths_print_segment(source, segment, request->start_ns, request->end_ns - request->start_ns,
                                       numbers[i] != GP_INDEX_NONE ? &ready[numbers[i]] : NULL);
            continue;
        }
        left_out++;
        left_out_ns += segment->to_ns - segment->from_ns;
    }
    if (left_out > 0) {
        printf("   and %zu shorter pieces, ", left_out);
        gp_print_ms(left_out_ns, 0);
        printf(" ms together (-n 0 shows all)\n");
    }
    printf("\n");
    free(ready);
    free(numbers);
    return 0;
}

static void report_paths_print_request(const gp_input_t *source, const gp_request_t *request)
{
    char text[NAME_SIZE], trace[64];
    gp_report_trace_label(source->dataset, request->trace, true, trace, sizeof(trace));
    printf("   Request ");
    gp_print_text(gp_endpoint_text(&source->requests->endpoints[request->endpoint], text, sizeof(text)));
    printf(", trace %s, ", trace);
    gp_print_seconds(request->start_ns, 0);
    printf(" s after the start of the capture\n\n");
}

gp_shown_paths_t *gp_shown_paths_begin(const gp_input_t *source, gp_report_options_t *options)
{
    path_t *path = calloc(1, sizeof(*path));
    size_t chosen = 0;
    if (path == NULL || source->requests == NULL)
        return path;
    for (size_t i = 0; i < source->requests->count; i++)
        chosen += source->requests_chosen[i];
    path->gains = chosen != 1 ? gp_gains_create(source->requests) : NULL;
    options->path_taker = chosen != 1 ? gp_gains_take : report_paths_keep_path;
    options->path_context = chosen != 1 ? (void *)path->gains : path;
    if (options->path_context != NULL)
        return path;
    free(path);
    return NULL;
}

int gp_shown_paths_print(const gp_shown_paths_t *shown, const gp_input_t *source, const gp_report_t *report,
                         size_t segments)
{
    uint32_t number = 0;
    if (source->path_sums.requests != 1) {
        int result = report_paths_print_parts(source, report);
        if (result == 0 && shown->gains != NULL)
            gp_gains_print(source, shown->gains);
        return result;
    }
    while (number < source->requests->count && !source->requests_chosen[number])
        number++;
    const gp_request_t *request = &source->requests->items[number];
    report_paths_print_request(source, request);
    int result = report_paths_print_parts(source, report);
    return result == 0 ? report_paths_print_segments(source, request, shown, segments) : result;
}

void gp_shown_paths_free(gp_shown_paths_t *shown)
{
    if (shown == NULL)
        return;
    gp_gains_free(shown->gains);
    free(shown->segments);
    free(shown);
}
