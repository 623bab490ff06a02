// SPDX-License-Identifier: MIT
#include "facts/dataset_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KEPT_BYTES = 64 << 20 }; // some 9 million samples

uint32_t gp_dataset_trace_find(const gp_dataset_t *dataset, const uint8_t id[16])
{
    for (size_t i = 1; i < dataset->facts.traces.count; i++)
        if (dataset->facts.traces.items[i].defined && memcmp(dataset->facts.traces.items[i].id, id, 16) == 0)
            return (uint32_t)i;
    return GP_INDEX_NONE;
}

int gp_dataset_sum_coros(gp_dataset_t *dataset)
{
    while (dataset->coros.count < dataset->facts.coros.count)
        if (gp_table_append(&dataset->coros.table) == GP_INDEX_NONE)
            return -ENOMEM;
    return 0;
}

static int dataset_on_call(void *context, const gp_call_count_t *call)
{
    gp_dataset_t *dataset = context;
    uint32_t number = gp_table_need(&dataset->calls.table, gp_table_pair(call->caller, call->callee));
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    dataset->calls.items[number] = *call;
    return 0;
}

static int dataset_on_census(void *context, const gp_census_record_t *record)
{
    gp_dataset_t *dataset = context;
    if (record->number < dataset->census_number)
        return 0;
    if (record->number > dataset->census_number)
        dataset->census.count = 0;
    dataset->census_number = record->number;
    uint32_t number = gp_table_append(&dataset->census.table);
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    dataset->census.items[number] = *record;
    gp_facts_seen_at(&dataset->facts, record->time_ns);
    return 0;
}

bool gp_dataset_has_activity(const gp_dataset_t *dataset, const gp_activity_record_t *activity)
{
    return !dataset->windowed ||
           (activity->end_ns > dataset->window.from_ns && activity->start_ns < dataset->window.to_ns);
}

int gp_dataset_extend(gp_dataset_t *dataset, uint32_t trace, uint64_t coro_id, uint64_t from_ns, uint64_t to_ns)
{
    size_t known = dataset->extents.count;
    if (trace == 0 || !(dataset->keep & (GP_KEEP_SPANS | GP_KEEP_REQUESTS)))
        return 0;
    uint32_t number = gp_table_need(&dataset->extents.table, trace);
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    gp_dataset_extent_t *extent = &dataset->extents.items[number];
    if (number >= known || from_ns < extent->first_ns) {
        extent->first_ns = from_ns;
        extent->coro_id = coro_id;
    }
    if (number >= known || to_ns > extent->last_ns) {
        extent->last_ns = to_ns;
        extent->last_coro_id = coro_id;
    }
    return 0;
}

// Both are known, unless it is outside of the window.
static int dataset_keep_work(gp_dataset_t *dataset, const gp_activity_record_t *activity)
{
    uint32_t coro = gp_dataset_coro_find(dataset, activity->coro_id);
    uint32_t trace = gp_dataset_trace_index_find(dataset, activity->trace);
    size_t known = dataset->works.count;
    if (!(dataset->keep & GP_KEEP_WORKS) || activity->trace == 0 || coro == GP_INDEX_NONE || trace == GP_INDEX_NONE)
        return 0;
    uint32_t number = gp_table_need(&dataset->works.table, gp_table_pair(coro, trace));
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    gp_dataset_work_t *work = &dataset->works.items[number];
    bool is_new = number >= known;
    work->from_ns = is_new || activity->start_ns < work->from_ns ? activity->start_ns : work->from_ns;
    work->to_ns = is_new || activity->end_ns > work->to_ns ? activity->end_ns : work->to_ns;
    return 0;
}

// Activities are looked at when the capture is read again; what they refer to is known by then.
static int dataset_on_activity(void *context, const gp_activity_record_t *activity)
{
    gp_dataset_t *dataset = context;
    dataset->activities_read++;
    gp_facts_seen_at(&dataset->facts, activity->end_ns);
    if (gp_dataset_has_activity(dataset, activity) &&
        (gp_dataset_coro_need(dataset, activity->coro_id) == GP_INDEX_NONE ||
         gp_dataset_trace_need(dataset, activity->trace) == GP_INDEX_NONE))
        return -ENOMEM;
    if (activity->slice_ns > 0 && activity->left_ns > activity->start_ns &&
        gp_dataset_extend(dataset, activity->trace, activity->coro_id, activity->start_ns, activity->left_ns) < 0)
        return -ENOMEM;
    return dataset_keep_work(dataset, activity);
}

static const gp_reader_handlers_t handlers = {
    .samples = gp_dataset_on_samples,
    .sum = gp_dataset_on_sum,
    .ledger = gp_dataset_on_ledger,
    .hog = gp_dataset_on_hog,
    .span = gp_dataset_on_span,
    .delay = gp_dataset_on_delay,
    .activity = dataset_on_activity,
    .census = dataset_on_census,
    .call = dataset_on_call,
};

// The summary of several captures: whole where all have an end. Losses of each are in dataset->captures.
static gp_reader_summary_t dataset_summary_of(const gp_captures_t *captures)
{
    gp_reader_summary_t sum = {.ended = true};
    for (size_t i = 0; i < captures->count; i++)
        sum.ended = sum.ended && captures->inputs[i].summary.ended;
    return captures->count == 1 ? captures->inputs[0].summary : sum;
}

static int dataset_load(gp_dataset_t *dataset, char error[GP_READER_ERROR_SIZE])
{
    gp_captures_t *captures = &dataset->captures;
    const gp_taker_t sums = {&handlers, dataset, NULL}, takers = {&gp_facts_handlers, &dataset->facts, &sums};
    if (gp_facts_init(&dataset->facts, false) < 0)
        return -ENOMEM;
    int result = gp_captures_read(captures, &takers, error);
    if (captures->count == 1) {
        captures->inputs[0].samples = dataset->samples_read;
        captures->inputs[0].activities = dataset->activities_read;
    }
    dataset->summary = dataset_summary_of(captures);
    if (result == 0)
        result = gp_dataset_sum_coros(dataset);
    if (result == 0)
        result = gp_dataset_finish_spans(dataset);
    if (result == 0)
        result = gp_dataset_apply_lifetimes(dataset, error);
    if (result == 0)
        gp_dataset_sum_up(dataset);
    return result;
}

gp_dataset_t *gp_dataset_load_captures(gp_captures_t *captures, unsigned keep, const gp_dataset_window_t *window,
                                       char error[GP_READER_ERROR_SIZE])
{
    gp_dataset_t *dataset = malloc(sizeof(*dataset));
    int result = -ENOMEM;
    strcpy(error, "not enough memory");
    if (dataset == NULL) {
        gp_captures_free(captures);
    } else {
        *dataset = (gp_dataset_t){
            .keep = keep,
            .captures = *captures,
            .window = window != NULL ? *window : (gp_dataset_window_t){0},
            .windowed = window != NULL,
            .coros = GP_TABLE_PLAIN(gp_dataset_coro_t),
            .shares = GP_TABLE_BY_PAIR(gp_dataset_share_t, coro),
            .thread_sums = GP_TABLE_BY(gp_dataset_thread_sum_t, index),
            .hogs = GP_TABLE_BY(gp_dataset_hog_t, id),
            .delays = GP_TABLE_PLAIN(gp_dataset_delay_t),
            .sums = GP_TABLE_PLAIN(gp_sum_record_t),
            .spans = GP_TABLE_SPARSE(gp_dataset_span_t, is.id),
            .calls = GP_TABLE_BY_PAIR(gp_call_count_t, caller),
            .extents = GP_TABLE_BY(gp_dataset_extent_t, trace),
            .works = GP_TABLE_BY_PAIR(gp_dataset_work_t, coro),
            .census = GP_TABLE_PLAIN(gp_census_record_t),
        };
        dataset->captures.keep_words = keep & GP_KEEP_PLAIN && window == NULL ? GP_PLAIN_WORDS : 0;
        dataset->captures.keep_bytes = KEPT_BYTES;
        result = dataset_load(dataset, error);
        captures->at = dataset->captures.at;
    }
    if (result == 0)
        return dataset;
    gp_dataset_free(dataset);
    errno = -result;
    return NULL;
}

gp_dataset_t *gp_dataset_load_fd(int fd, unsigned keep, char error[GP_READER_ERROR_SIZE])
{
    gp_captures_t captures = {0};
    int result = gp_captures_add(&captures, fd, "");
    if (result == 0)
        return gp_dataset_load_captures(&captures, keep, NULL, error);
    snprintf(error, GP_READER_ERROR_SIZE, "%s", strerror(-result));
    gp_captures_free(&captures);
    errno = -result;
    return NULL;
}

gp_dataset_t *gp_dataset_load(const char *path, unsigned keep, char error[GP_READER_ERROR_SIZE])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        strcpy(error, strerror(errno));
        return NULL;
    }
    gp_dataset_t *dataset = gp_dataset_load_fd(fd, keep, error);
    int saved = errno;
    close(fd);
    errno = saved;
    return dataset;
}

void gp_dataset_free(gp_dataset_t *dataset)
{
    if (dataset == NULL)
        return;
    gp_table_free(&dataset->coros.table);
    gp_table_free(&dataset->shares.table);
    gp_table_free(&dataset->thread_sums.table);
    gp_table_free(&dataset->hogs.table);
    gp_table_free(&dataset->delays.table);
    gp_table_free(&dataset->sums.table);
    gp_index_free(&dataset->sum_index);
    gp_table_free(&dataset->spans.table);
    gp_table_free(&dataset->calls.table);
    gp_table_free(&dataset->extents.table);
    gp_table_free(&dataset->works.table);
    gp_table_free(&dataset->census.table);
    free(dataset->lifetimes);
    free(dataset->lives);
    gp_arena_free(&dataset->arena);
    gp_facts_free(&dataset->facts);
    gp_captures_free(&dataset->captures);
    free(dataset);
}
