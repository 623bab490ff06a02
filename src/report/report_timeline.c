// SPDX-License-Identifier: MIT
#include "report/report_timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/sample_rows.h"
#include "report/sorter.h"

typedef struct chosen_activity { // as it is sorted
    gp_activity_record_t record;
    uint32_t coro, trace; // numbers
} chosen_activity_t;

// The tables that activities are made with, each time they are asked for.
struct gp_timeline_source {
    gp_sample_rows_t *pass;
    gp_sorter_t activities;
    uint32_t *tracks;     // number of a coroutine in the dataset -> of its track, or GP_NO_TRACK
    const char **traces;  // number of a trace in the dataset -> its id, NULL until it is asked for
    const char **threads; // the same with names of threads
    gp_timeline_t *timeline;
    gp_track_t *all_tracks;
};

static int report_timeline_compare_activities(const void *left, const void *right)
{
    const chosen_activity_t *a = left, *b = right;
    if (a->coro != b->coro)
        return a->coro < b->coro ? -1 : 1;
    if (a->record.start_ns != b->record.start_ns)
        return a->record.start_ns < b->record.start_ns ? -1 : 1;
    return a->record.end_ns < b->record.end_ns ? -1 : a->record.end_ns > b->record.end_ns;
}

static bool report_timeline_is_chosen(const gp_timeline_source_t *source, const chosen_activity_t *item)
{
    const gp_selection_t *selection = &source->pass->options.selection;
    const gp_activity_record_t *activity = &item->record;
    if (item->coro == GP_INDEX_NONE || item->trace == GP_INDEX_NONE || activity->start_ns > activity->left_ns ||
        activity->left_ns > activity->end_ns || (selection->coros != NULL && !selection->coros[item->coro]) ||
        (selection->traces != NULL && !selection->traces[item->trace]))
        return false;
    if (selection->threads == NULL)
        return true;
    uint32_t thread = gp_dataset_thread_find(source->pass->dataset, activity->thread);
    return thread != GP_INDEX_NONE && selection->threads[thread];
}

static int report_timeline_take_activity(void *context, const gp_activity_record_t *record)
{
    gp_timeline_source_t *source = context;
    const gp_dataset_t *dataset = source->pass->dataset;
    chosen_activity_t item = {
        .record = *record,
        .coro = gp_dataset_coro_find(dataset, record->coro_id),
        .trace = gp_dataset_trace_index_find(dataset, record->trace),
    };
    if (!gp_dataset_has_activity(dataset, record) || !report_timeline_is_chosen(source, &item))
        return 0;
    source->tracks[item.coro] = 0;
    return gp_sorter_add(&source->activities, &item);
}

// Coroutines of which there is something to show have a track: with activities, or with samples.
static int report_timeline_end_collecting(gp_timeline_source_t *source)
{
    for (size_t i = 0; i < source->pass->dataset->facts.coros.count; i++)
        if (source->pass->coros_seen[i])
            source->tracks[i] = 0;
    return gp_sorter_end(&source->activities);
}

static int report_timeline_name_tracks(gp_timeline_source_t *source)
{
    const gp_dataset_t *dataset = source->pass->dataset;
    gp_arena_t *arena = &source->pass->builder->arena;
    uint32_t count = 0;
    char name[256];
    source->all_tracks = gp_arena_alloc(arena, (dataset->facts.coros.count + 1) * sizeof(gp_track_t));
    if (source->all_tracks == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < dataset->facts.coros.count; i++) {
        const gp_coro_record_t *record = &dataset->facts.coros.items[i].record;
        if (source->tracks[i] == GP_NO_TRACK)
            continue;
        gp_track_t *track = &source->all_tracks[count];
        size_t len =
            gp_report_coro_label(dataset, i, source->pass->builder->names.symbolizer, false, name, sizeof(name));
        track->name = gp_arena_text(arena, name, len);
        track->coroutine_id = record->id;
        track->is_thread = record->kind == GP_CORO_THREAD;
        track->birth_ns = record->birth_ns;
        source->tracks[i] = count++;
        if (track->name == NULL)
            return -ENOMEM;
    }
    source->timeline->tracks = source->all_tracks;
    source->timeline->track_count = count;
    return 0;
}

static uint32_t report_timeline_track_of(const gp_timeline_source_t *source, uint64_t coro_id)
{
    uint32_t coro = coro_id != 0 ? gp_dataset_coro_find(source->pass->dataset, coro_id) : GP_INDEX_NONE;
    return coro != GP_INDEX_NONE ? source->tracks[coro] : GP_NO_TRACK;
}

static void report_timeline_find_parents(gp_timeline_source_t *source)
{
    for (uint32_t i = 0; i < source->pass->dataset->facts.coros.count; i++)
        if (source->tracks[i] != GP_NO_TRACK)
            source->all_tracks[source->tracks[i]].parent =
                report_timeline_track_of(source, source->pass->dataset->facts.coros.items[i].record.parent_id);
}

static const char *report_timeline_trace_text(gp_timeline_source_t *source, uint32_t trace)
{
    char text[40];
    if (source->pass->dataset->facts.traces.items[trace].index == 0 || source->traces[trace] != NULL)
        return source->traces[trace];
    size_t len = gp_report_trace_label(source->pass->dataset, trace, true, text, sizeof(text));
    return source->traces[trace] = gp_arena_text(&source->pass->builder->arena, text, len);
}

static void report_timeline_place_thread(gp_timeline_source_t *source, uint32_t index, gp_activity_t *activity)
{
    uint32_t number = gp_dataset_thread_find(source->pass->dataset, index);
    activity->thread_name = "";
    if (number == GP_INDEX_NONE)
        return;
    const gp_thread_record_t *thread = &source->pass->dataset->facts.threads.items[number];
    if (source->threads[number] == NULL)
        source->threads[number] =
            gp_arena_text(&source->pass->builder->arena, thread->name, strnlen(thread->name, sizeof(thread->name)));
    activity->thread_id = thread->tid;
    if (source->threads[number] != NULL)
        activity->thread_name = source->threads[number];
}

static uint64_t report_timeline_within(const gp_dataset_t *dataset, uint64_t time_ns)
{
    if (!dataset->windowed)
        return time_ns;
    if (time_ns < dataset->window.from_ns)
        return dataset->window.from_ns;
    return time_ns < dataset->window.to_ns ? time_ns : dataset->window.to_ns;
}

// An activity as far as it is in the window. Its slices shrink with its active time.
static void report_timeline_clip(const gp_dataset_t *dataset, gp_activity_t *activity)
{
    uint64_t whole = activity->left_ns - activity->start_ns;
    activity->goes_on = activity->goes_on || (dataset->windowed && activity->end_ns > dataset->window.to_ns);
    activity->start_ns = report_timeline_within(dataset, activity->start_ns);
    activity->left_ns = report_timeline_within(dataset, activity->left_ns);
    activity->end_ns = report_timeline_within(dataset, activity->end_ns);
    activity->ready_ns = report_timeline_within(dataset, activity->ready_ns);
    if (activity->slice_ns > whole)
        activity->slice_ns = whole;
    if (whole > 0)
        activity->slice_ns =
            (uint64_t)((unsigned __int128)activity->slice_ns * (activity->left_ns - activity->start_ns) / whole);
}

static gp_activity_t report_timeline_make_activity(gp_timeline_source_t *source, const chosen_activity_t *item)
{
    const gp_activity_record_t *record = &item->record;
    gp_activity_t activity = {
        .track = source->tracks[item->coro],
        .waker = report_timeline_track_of(source, record->waker_id),
        .start_ns = record->start_ns,
        .left_ns = record->left_ns,
        .end_ns = record->end_ns,
        .slice_ns = record->slice_ns,
        .ready_ns = record->ready_ns,
        .is_ready_known =
            record->ready_ns >= record->left_ns && record->ready_ns != 0 && record->ready_ns <= record->end_ns,
        .goes_on = record->is_open,
        .trace = report_timeline_trace_text(source, item->trace),
    };
    report_timeline_place_thread(source, record->thread, &activity);
    report_timeline_clip(source->pass->dataset, &activity);
    return activity;
}

// Activities on their way out: one is held back until it is known which comes next.
typedef struct handing {
    gp_timeline_source_t *source;
    gp_activity_taker_t *take;
    void *context;
    gp_activity_t before, held;
    bool has_before, has_held;
    size_t number;
} handing_t;

static int report_timeline_hand_out(handing_t *handing)
{
    bool follows = handing->has_before && handing->before.track == handing->held.track;
    int result = handing->take(handing->context, &handing->held, follows ? &handing->before : NULL, handing->number++);
    handing->before = handing->held;
    handing->has_before = true;
    return result;
}

// An activity that begins before the one before it has ended was written twice, when an exec failed: the later one is
// right.
static int report_timeline_take_sorted(void *context, const void *record)
{
    handing_t *handing = context;
    gp_activity_t activity = report_timeline_make_activity(handing->source, record);
    bool overlaps =
        handing->has_held && handing->held.track == activity.track && handing->held.end_ns > activity.start_ns;
    int result = handing->has_held && !overlaps ? report_timeline_hand_out(handing) : 0;
    handing->held = activity;
    handing->has_held = true;
    return result;
}

int gp_timeline_source_activities(gp_timeline_source_t *source, gp_activity_taker_t *take, void *context)
{
    handing_t handing = {.source = source, .take = take, .context = context};
    int result = gp_sorter_each(&source->activities, report_timeline_take_sorted, &handing);
    return result == 0 && handing.has_held ? report_timeline_hand_out(&handing) : result;
}

static void report_timeline_free(gp_timeline_source_t *source)
{
    gp_sorter_free(&source->activities);
    free(source->tracks);
    free(source->traces);
    free(source->threads);
    free(source);
}

int gp_report_timeline_begin(gp_sample_rows_t *pass, gp_reading_t *reading)
{
    static const gp_reader_handlers_t handlers = {.activity = report_timeline_take_activity};
    const gp_dataset_t *dataset = pass->dataset;
    gp_timeline_source_t *source = calloc(1, sizeof(*source));
    if (source == NULL)
        return -ENOMEM;
    pass->timeline = source;
    pass->timeline_free = report_timeline_free;
    source->pass = pass;
    source->tracks = malloc((dataset->facts.coros.count + 1) * sizeof(uint32_t));
    source->traces = calloc(dataset->facts.traces.count + 1, sizeof(char *));
    source->threads = calloc(dataset->facts.threads.count + 1, sizeof(char *));
    source->timeline = gp_arena_alloc(&pass->builder->arena, sizeof(gp_timeline_t));
    gp_sorter_init(&source->activities, sizeof(chosen_activity_t), report_timeline_compare_activities);
    if (source->tracks == NULL || source->traces == NULL || source->threads == NULL || source->timeline == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < dataset->facts.coros.count; i++)
        source->tracks[i] = GP_NO_TRACK;
    if (dataset->activities_read > 0)
        gp_reading_add(reading, &handlers, source);
    return 0;
}

int gp_report_timeline_end(gp_sample_rows_t *pass)
{
    gp_timeline_source_t *source = pass->timeline;
    source->timeline->pid = pass->dataset->facts.header.pid;
    source->timeline->source = source;
    int result = report_timeline_end_collecting(source);
    if (result < 0 || report_timeline_name_tracks(source) < 0)
        return result < 0 ? result : -ENOMEM;
    report_timeline_find_parents(source);
    pass->builder->report.timeline = source->timeline;
    return 0;
}
