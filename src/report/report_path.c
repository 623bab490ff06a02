// SPDX-License-Identifier: MIT
#include "report/report_path.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/critical_path.h"
#include "report/report_names.h"
#include "report/sample_rows.h"
#include "report/thread_blockers.h"

enum { LABEL_SIZE = 256 };

typedef struct path_row {
    uint32_t endpoint, coro, stack, state, flags;
    uint32_t keeper;  // coroutine that kept the thread; GP_INDEX_NONE = not known
    uint32_t request; // for a page; else 0
    uint64_t ns, segments;
    uint32_t path; // for a page: the builder's number
} path_row_t;

struct gp_path_rows {
    gp_sample_rows_t *pass;
    const gp_requests_t *requests;
    bool single;                 // a single request: coroutines have their numbers
    bool apart;                  // for a page: rows are apart by request and coroutine, and have labels
    gp_page_segment_t *segments; // their stacks are numbers of rows until these have paths
    size_t segment_count, segment_capacity;
    uint32_t *frames; // by coroutine: number of its frame plus 1; 0 = not made yet
    uint32_t *same;   // by coroutine: one that is called the same, plus 1
    path_row_t *items;
    size_t count, capacity;
    gp_index_t index;
    gp_index_t name_index; // coroutines by frame
    gp_path_ready_t *ready;
    uint32_t *ready_rows; // row of each, by its tag
    size_t ready_count, ready_capacity, ready_rows_capacity;
    gp_path_sums_t sums;
    gp_critical_t *critical;
};
typedef struct gp_path_rows path_rows_t;

// --- what is called the same is the same, where there are several requests

static void report_path_coro_text(const path_rows_t *rows, uint32_t coro, char *text, size_t size)
{
    gp_report_coro_label(rows->pass->dataset, coro, rows->pass->builder->names.symbolizer, false, text, size);
    char *number = strchr(text, ' ');
    if (rows->single || number == NULL || !isdigit((unsigned char)number[1]) ||
        rows->pass->dataset->facts.coros.items[coro].record.kind == GP_CORO_THREAD)
        return;
    size_t digits = strspn(number + 1, "0123456789");
    if (number[1 + digits] == ' ')
        memmove(number, number + 1 + digits, strlen(number + 1 + digits) + 1);
}

static bool report_path_same_frame(const void *owner, uint32_t number, const void *key)
{
    return ((const path_rows_t *)owner)->frames[number] == *(const uint32_t *)key;
}

// The frame of a coroutine; sets the coroutine that stands for all of its name. Returns 0 or -ENOMEM.
static int report_path_find_coro(path_rows_t *rows, uint32_t *coro)
{
    char text[LABEL_SIZE];
    if (rows->apart)
        return 0;
    if (rows->frames[*coro] == 0) {
        report_path_coro_text(rows, *coro, text, sizeof(text));
        const gp_report_frame_t frame = {.function = text, .file = "~", .module = "", .pseudo = true};
        uint32_t number = gp_builder_frame(rows->pass->builder, &frame);
        if (number == GP_INDEX_NONE)
            return -ENOMEM;
        const uint32_t key = number + 1;
        uint32_t first = gp_index_find(&rows->name_index, gp_hash_u64(key), report_path_same_frame, rows, &key);
        if (first == GP_INDEX_NONE && gp_index_add(&rows->name_index, gp_hash_u64(key), *coro) < 0)
            return -ENOMEM;
        rows->frames[*coro] = key;
        rows->same[*coro] = first == GP_INDEX_NONE ? *coro + 1 : first + 1;
    }
    *coro = rows->same[*coro] - 1;
    return 0;
}

// --- sums

static bool report_path_same_row(const void *owner, uint32_t number, const void *key)
{
    const path_row_t *a = &((const path_rows_t *)owner)->items[number], *b = key;
    return a->endpoint == b->endpoint && a->coro == b->coro && a->stack == b->stack && a->state == b->state &&
           a->flags == b->flags && a->keeper == b->keeper && a->request == b->request;
}

// Find or add. Returns its number, GP_INDEX_NONE when memory is short.
static uint32_t report_path_find_row(path_rows_t *rows, const path_row_t *key)
{
    uint64_t hash =
        gp_hash_more(gp_hash_u64((uint64_t)key->coro << 32 | key->stack), (uint64_t)key->request << 32 | key->state);
    hash = gp_hash_more(hash, (uint64_t)key->endpoint << 32 | key->keeper);
    uint32_t number = gp_index_find(&rows->index, hash, report_path_same_row, rows, key);
    if (number != GP_INDEX_NONE)
        return number;
    if (gp_grow(&rows->items, &rows->capacity, rows->count, sizeof(*key)) < 0 ||
        gp_index_add(&rows->index, hash, (uint32_t)rows->count) < 0)
        return GP_INDEX_NONE;
    rows->items[rows->count] = *key;
    return (uint32_t)rows->count++;
}

static int report_path_keep_ready(path_rows_t *rows, const gp_path_segment_t *segment, uint32_t row)
{
    if (gp_grow(&rows->ready, &rows->ready_capacity, rows->ready_count, sizeof(*rows->ready)) < 0 ||
        gp_grow(&rows->ready_rows, &rows->ready_rows_capacity, rows->ready_count, sizeof(*rows->ready_rows)) < 0)
        return -ENOMEM;
    rows->ready_rows[rows->ready_count] = row;
    rows->ready[rows->ready_count] = (gp_path_ready_t){
        .from_ns = segment->from_ns,
        .to_ns = segment->to_ns,
        .coro = segment->coro,
        .thread = segment->thread,
        .tag = (uint32_t)rows->ready_count,
    };
    rows->ready_count++;
    return 0;
}

static int report_path_keep_segment(path_rows_t *rows, const gp_path_segment_t *segment, uint32_t row)
{
    if (!rows->apart || segment->to_ns == segment->from_ns)
        return 0;
    if (gp_grow(&rows->segments, &rows->segment_capacity, rows->segment_count, sizeof(*rows->segments)) < 0)
        return -ENOMEM;
    rows->segments[rows->segment_count++] = (gp_page_segment_t){
        .from_ns = segment->from_ns,
        .to_ns = segment->to_ns,
        .request = rows->items[row].request,
        .coro = segment->coro,
        .state = segment->state,
        .stack = row,
    };
    return 0;
}

static int report_path_take_segment(path_rows_t *rows, uint32_t number, const gp_path_segment_t *segment)
{
    enum { SHOWN = GP_PATH_NOT_STARTED | GP_PATH_UNRECORDED | GP_PATH_ELSEWHERE | GP_PATH_UNKNOWN };
    uint64_t ns = segment->to_ns - segment->from_ns;
    path_row_t key = {
        .endpoint = rows->requests->items[number].endpoint,
        .request = rows->apart ? number : 0,
        .coro = segment->coro,
        .stack = segment->stack,
        .state = segment->state,
        .flags = segment->flags & SHOWN,
        .keeper = GP_INDEX_NONE,
    };
    uint32_t row = report_path_find_coro(rows, &key.coro) == 0 ? report_path_find_row(rows, &key) : GP_INDEX_NONE;
    if (row == GP_INDEX_NONE || report_path_keep_segment(rows, segment, row) < 0)
        return -ENOMEM;
    rows->items[row].segments++;
    rows->sums.divided_ns += segment->flags & GP_PATH_DIVIDED ? ns : 0;
    rows->sums.inferred_ns += segment->flags & GP_PATH_INFERRED ? ns : 0;
    rows->sums.unsampled_ns += segment->stack == GP_INDEX_NONE && key.flags == 0 ? ns : 0;
    if ((segment->state == GP_KIND_READY || segment->state == GP_KIND_QUEUED) && segment->thread != 0)
        return report_path_keep_ready(rows, segment, row);
    rows->items[row].ns += ns;
    return 0;
}

static int report_path_take_path(void *context, uint32_t number, const gp_path_segment_t *segments, size_t count)
{
    path_rows_t *rows = context;
    const gp_request_t *request = &rows->requests->items[number];
    const gp_report_options_t *options = &rows->pass->options;
    int result = options->path_taker != NULL ? options->path_taker(options->path_context, number, segments, count) : 0;
    rows->sums.requests++;
    rows->sums.about += request->is_about;
    rows->sums.latency_ns += request->end_ns - request->start_ns;
    for (size_t i = 0; i < count && result == 0; i++)
        result = report_path_take_segment(rows, number, &segments[i]);
    return result;
}

static int report_path_divide_ready(path_rows_t *rows)
{
    int result = gp_critical_keepers(rows->pass->dataset, rows->ready, rows->ready_count);
    for (size_t i = 0; i < rows->ready_count && result == 0; i++) {
        const gp_path_ready_t *ready = &rows->ready[i];
        uint32_t plain = rows->ready_rows[ready->tag];
        uint64_t left = ready->to_ns - ready->from_ns;
        for (uint32_t j = 0; j < ready->keeper_count && result == 0; j++) {
            path_row_t key = rows->items[plain];
            key.ns = 0;
            key.segments = 1;
            key.keeper = ready->keepers[j].coro;
            uint32_t row =
                report_path_find_coro(rows, &key.keeper) == 0 ? report_path_find_row(rows, &key) : GP_INDEX_NONE;
            if (row == GP_INDEX_NONE)
                return -ENOMEM;
            rows->items[row].ns += ready->keepers[j].ns;
            left -= ready->keepers[j].ns;
        }
        rows->items[plain].ns += left;
    }
    return result;
}

// --- rows

static int report_path_add_frame(gp_builder_t *builder, uint32_t frame)
{
    return gp_builder_row_pseudo(builder, builder->frames[frame].function);
}

static int report_path_add_stack(const path_rows_t *rows, const path_row_t *row)
{
    const gp_dataset_t *dataset = rows->pass->dataset;
    gp_builder_t *builder = rows->pass->builder;
    gp_loc_t entry = dataset->facts.coros.items[row->coro].record.entry;
    int result = gp_sample_rows_add_creators(rows->pass, row->coro);
    if (result < 0 || row->stack != GP_INDEX_NONE)
        return result < 0 ? result : gp_sample_rows_add_stack(rows->pass, &dataset->facts.stacks.items[row->stack]);
    if (row->flags & GP_PATH_NOT_STARTED)
        return gp_builder_row_pseudo(builder, "[not started]");
    if (row->flags & GP_PATH_UNRECORDED)
        return gp_builder_row_pseudo(builder, "[not recorded]");
    if (row->flags & GP_PATH_ELSEWHERE)
        return gp_builder_row_pseudo(builder, "[at another request]");
    if (entry != 0)
        result = gp_builder_row_loc(builder, entry);
    if (result == 0 && row->state == GP_KIND_QUEUED)
        return gp_builder_row_loc(builder, dataset->facts.coros.items[row->coro].pool);
    if (result < 0)
        return result;
    return gp_builder_row_pseudo(builder, row->flags & GP_PATH_UNKNOWN ? "[not known]" : "[not sampled]");
}

static int report_path_add_leaf(const path_rows_t *rows, const path_row_t *row)
{
    const gp_dataset_t *dataset = rows->pass->dataset;
    char text[LABEL_SIZE], label[LABEL_SIZE];
    const gp_facts_stack_t *stack = row->stack != GP_INDEX_NONE ? &dataset->facts.stacks.items[row->stack] : NULL;
    bool is_told = row->flags != 0 || (stack != NULL && stack->depth > 0 && gp_kind_is_told(stack->frames[0]));
    int result = is_told ? 0 : gp_sample_rows_add_leaf(rows->pass, row->state);
    if (result < 0 || row->keeper == GP_INDEX_NONE)
        return result;
    report_path_coro_text(rows, row->keeper, label, sizeof(label));
    snprintf(text, sizeof(text), "[behind %.*s", (int)(LABEL_SIZE - sizeof("[behind ")), label + 1);
    return gp_builder_row_pseudo(rows->pass->builder, text);
}

// The endpoint where there are several requests, and the coroutine.
static int report_path_add_roots(const path_rows_t *rows, const path_row_t *row)
{
    char text[LABEL_SIZE], frame[LABEL_SIZE];
    int result = 0;
    if (!rows->single) {
        gp_endpoint_text(&rows->requests->endpoints[row->endpoint], text, sizeof(text) - 2);
        snprintf(frame, sizeof(frame), "[%.*s]", (int)sizeof(frame) - 3, text);
        result = gp_builder_row_pseudo(rows->pass->builder, frame);
    }
    return result == 0 ? report_path_add_frame(rows->pass->builder, rows->frames[row->coro] - 1) : result;
}

static int report_path_set_label(const path_rows_t *rows, path_row_t *row)
{
    gp_builder_t *builder = rows->pass->builder;
    uint32_t trace = rows->requests->items[row->request].trace;
    builder->row_label = gp_report_request_label(rows->pass->dataset, builder, row->coro, trace, row->request);
    row->path = gp_builder_path(builder);
    return builder->row_label != 0 && row->path != GP_INDEX_NONE ? 0 : -ENOMEM;
}

static int report_path_add_row(const path_rows_t *rows, path_row_t *row)
{
    gp_builder_t *builder = rows->pass->builder;
    gp_builder_row_begin(builder);
    int result = rows->apart ? 0 : report_path_add_roots(rows, row);
    size_t first = builder->path_len;
    if (result == 0)
        result = report_path_add_stack(rows, row);
    if (result == 0)
        result = report_path_add_leaf(rows, row);
    if (result == 0 && rows->apart)
        result = report_path_set_label(rows, row);
    if (result == 0)
        result = gp_builder_row_passes(builder, &rows->pass->options.stacks, first);
    if (result == 0)
        rows->pass->sums.left_out_ns += (double)row->ns;
    return result <= 0 || row->ns == 0 ? (result < 0 ? result : 0)
                                       : gp_builder_row_end(builder, row->ns, row->segments, 0);
}

// Copies that live as long as the report.
static int report_path_hand_over_segments(path_rows_t *rows)
{
    gp_builder_t *builder = rows->pass->builder;
    gp_page_t *page = rows->pass->options.page;
    gp_timed_stack_t *stacks = gp_arena_alloc(&builder->arena, (builder->path_count + 1) * sizeof(*stacks));
    for (size_t i = 0; i < builder->path_count && stacks != NULL; i++)
        stacks[i] = (gp_timed_stack_t){builder->paths[i].frames, builder->paths[i].depth};
    for (size_t i = 0; i < rows->segment_count; i++)
        rows->segments[i].stack = rows->items[rows->segments[i].stack].path;
    page->segments = gp_arena_copy(&builder->arena, rows->segments, rows->segment_count * sizeof(*rows->segments));
    page->segment_count = rows->segment_count;
    page->stacks = stacks;
    page->stack_count = (uint32_t)builder->path_count;
    return stacks != NULL && (page->segments != NULL || rows->segment_count == 0) ? 0 : -ENOMEM;
}

static size_t report_path_count_chosen(const gp_requests_t *requests, const bool *chosen)
{
    size_t count = 0;
    for (size_t i = 0; i < requests->count; i++)
        count += chosen == NULL || chosen[i];
    return count;
}

gp_path_rows_t *gp_report_paths_begin(gp_sample_rows_t *pass, gp_reading_t *reading)
{
    const gp_requests_t *requests = pass->options.requests;
    const bool *chosen = pass->options.requests_chosen;
    size_t coros = pass->dataset->facts.coros.count;
    path_rows_t *rows = calloc(1, sizeof(*rows));
    if (rows == NULL)
        return NULL;
    rows->pass = pass;
    rows->requests = requests;
    rows->single = report_path_count_chosen(requests, chosen) == 1;
    rows->apart = pass->options.page != NULL;
    rows->frames = calloc(coros + 1, sizeof(*rows->frames));
    rows->same = calloc(coros + 1, sizeof(*rows->same));
    if (rows->frames != NULL && rows->same != NULL)
        rows->critical = gp_critical_begin(pass->dataset, requests, chosen, reading);
    if (rows->critical != NULL)
        return rows;
    gp_report_paths_free(rows);
    return NULL;
}

int gp_report_paths_add(gp_path_rows_t *rows)
{
    int result = gp_critical_walk(rows->critical, report_path_take_path, rows);
    if (result == 0)
        result = report_path_divide_ready(rows);
    for (size_t i = 0; i < rows->count && result == 0; i++)
        if (rows->items[i].ns > 0 || rows->apart)
            result = report_path_add_row(rows, &rows->items[i]);
    if (result == 0 && rows->apart)
        result = report_path_hand_over_segments(rows);
    if (rows->pass->options.path_sums != NULL)
        *rows->pass->options.path_sums = rows->sums;
    return result;
}

void gp_report_paths_free(gp_path_rows_t *rows)
{
    if (rows == NULL)
        return;
    int saved = errno;
    gp_critical_free(rows->critical);
    free(rows->segments);
    free(rows->frames);
    free(rows->same);
    free(rows->items);
    free(rows->ready);
    free(rows->ready_rows);
    gp_index_free(&rows->index);
    gp_index_free(&rows->name_index);
    free(rows);
    errno = saved;
}
