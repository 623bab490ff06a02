#include "export/report_timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct maker {
    gp_builder_t *builder;
    const gp_dataset_t *dataset;
    const gp_report_options_t *options;
    uint32_t *tracks;    // number of a coroutine in the dataset -> of its track, or GP_NO_TRACK
    const char **traces; // number of a trace in the dataset -> its id, NULL until it is asked for
    const char **threads; // the same with names of threads
    gp_timeline_t *timeline;
    gp_track_t *all_tracks;
} maker_t;

static bool is_chosen(const maker_t *maker, const gp_dataset_span_t *item)
{
    const gp_selection_t *selection = &maker->options->selection;
    const gp_span_record_t *span = &item->record;

    if (span->start_ns > span->left_ns || span->left_ns > span->end_ns ||
        (selection->coros != NULL && !selection->coros[item->coro]) ||
        (selection->traces != NULL && !selection->traces[item->trace]))
        return false;
    if (selection->threads == NULL)
        return true;
    uint32_t thread = gp_dataset_thread_find(maker->dataset, span->thread);
    return thread != GP_INDEX_NONE && selection->threads[thread];
}

// Mark the coroutines of which there is something to show.
static size_t find_tracks(maker_t *maker, const gp_timed_stack_t *stacks)
{
    const gp_dataset_t *dataset = maker->dataset;
    size_t spans = 0;

    for (size_t i = 0; i < dataset->coro_count; i++)
        maker->tracks[i] = GP_NO_TRACK;
    for (size_t i = 0; i < dataset->weight_count; i++)
        if (stacks[i].frames != NULL)
            maker->tracks[stacks[i].track] = 0;
    for (size_t i = 0; i < dataset->span_count; i++) {
        if (!is_chosen(maker, &dataset->spans[i]))
            continue;
        maker->tracks[dataset->spans[i].coro] = 0;
        spans++;
    }
    return spans;
}

static int name_tracks(maker_t *maker)
{
    const gp_dataset_t *dataset = maker->dataset;
    gp_arena_t *arena = &maker->builder->arena;
    uint32_t count = 0;
    char name[256];

    maker->all_tracks = gp_arena_alloc(arena, (dataset->coro_count + 1) * sizeof(gp_track_t));
    if (maker->all_tracks == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < dataset->coro_count; i++) {
        const gp_coro_record_t *record = &dataset->coros[i].record;
        if (maker->tracks[i] == GP_NO_TRACK)
            continue;
        gp_track_t *track = &maker->all_tracks[count];
        size_t len = gp_report_coro_label(dataset, i, maker->builder->symbolizer, false, name, sizeof(name));
        track->name = gp_arena_text(arena, name, len);
        track->coroutine_id = record->id;
        track->is_thread = record->kind == GP_CORO_THREAD;
        track->birth_ns = record->birth_ns;
        maker->tracks[i] = count++;
        if (track->name == NULL)
            return -ENOMEM;
    }
    maker->timeline->tracks = maker->all_tracks;
    maker->timeline->track_count = count;
    return 0;
}

static uint32_t track_of(const maker_t *maker, uint64_t coro_id)
{
    uint32_t coro = coro_id != 0 ? gp_dataset_coro_find(maker->dataset, coro_id) : GP_INDEX_NONE;

    return coro != GP_INDEX_NONE ? maker->tracks[coro] : GP_NO_TRACK;
}

static void find_parents(maker_t *maker)
{
    for (uint32_t i = 0; i < maker->dataset->coro_count; i++)
        if (maker->tracks[i] != GP_NO_TRACK)
            maker->all_tracks[maker->tracks[i]].parent =
                track_of(maker, maker->dataset->coros[i].record.parent_id);
}

static const char *trace_text(maker_t *maker, uint32_t trace)
{
    char text[40];

    if (maker->dataset->traces[trace].index == 0 || maker->traces[trace] != NULL)
        return maker->traces[trace];
    size_t len = gp_report_trace_label(maker->dataset, trace, true, text, sizeof(text));
    return maker->traces[trace] = gp_arena_text(&maker->builder->arena, text, len);
}

static void place_thread(maker_t *maker, uint32_t index, gp_span_t *span)
{
    uint32_t number = gp_dataset_thread_find(maker->dataset, index);

    span->thread_name = "";
    if (number == GP_INDEX_NONE)
        return;
    const gp_thread_record_t *thread = &maker->dataset->threads[number];
    if (maker->threads[number] == NULL)
        maker->threads[number] = gp_arena_text(&maker->builder->arena, thread->name,
                                               strnlen(thread->name, sizeof(thread->name)));
    span->thread_id = thread->tid;
    if (maker->threads[number] != NULL)
        span->thread_name = maker->threads[number];
}

static uint64_t within(const gp_dataset_t *dataset, uint64_t time_ns)
{
    if (!dataset->windowed)
        return time_ns;
    if (time_ns < dataset->window.from_ns)
        return dataset->window.from_ns;
    return time_ns < dataset->window.to_ns ? time_ns : dataset->window.to_ns;
}

// A span as far as it is in the window. Of its slices, as many as of its active time.
static void clip(const gp_dataset_t *dataset, gp_span_t *span)
{
    uint64_t whole = span->left_ns - span->start_ns;

    span->goes_on = span->goes_on || (dataset->windowed && span->end_ns > dataset->window.to_ns);
    span->start_ns = within(dataset, span->start_ns);
    span->left_ns = within(dataset, span->left_ns);
    span->end_ns = within(dataset, span->end_ns);
    span->ready_ns = within(dataset, span->ready_ns);
    if (span->slice_ns > whole)
        span->slice_ns = whole;
    if (whole > 0)
        span->slice_ns = (uint64_t)((unsigned __int128)span->slice_ns * (span->left_ns - span->start_ns) / whole);
}

static int compare_spans(const void *left, const void *right)
{
    const gp_span_t *a = left, *b = right;

    if (a->track != b->track)
        return a->track < b->track ? -1 : 1;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

// A span that begins before the one before it has ended was told twice, when an exec failed: the later one is right.
static size_t drop_overlaps(gp_span_t *spans, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        bool overlap = i + 1 < count && spans[i].track == spans[i + 1].track &&
                       spans[i].end_ns > spans[i + 1].start_ns;
        if (!overlap)
            spans[kept++] = spans[i];
    }
    return kept;
}

static int make_spans(maker_t *maker, size_t count)
{
    const gp_dataset_t *dataset = maker->dataset;
    gp_span_t *spans = gp_arena_alloc(&maker->builder->arena, (count + 1) * sizeof(*spans));
    size_t made = 0;

    if (spans == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < dataset->span_count; i++) {
        const gp_dataset_span_t *item = &dataset->spans[i];
        const gp_span_record_t *record = &item->record;
        if (!is_chosen(maker, item))
            continue;
        gp_span_t *span = &spans[made++];
        *span = (gp_span_t){
            .track = maker->tracks[item->coro],
            .waker = track_of(maker, record->waker_id),
            .start_ns = record->start_ns,
            .left_ns = record->left_ns,
            .end_ns = record->end_ns,
            .slice_ns = record->slice_ns,
            .ready_ns = record->ready_ns,
            .is_ready_known = record->ready_ns >= record->left_ns && record->ready_ns != 0 &&
                              record->ready_ns <= record->end_ns,
            .goes_on = record->is_open,
            .trace = trace_text(maker, item->trace),
        };
        place_thread(maker, record->thread, span);
        clip(dataset, span);
    }
    qsort(spans, made, sizeof(*spans), compare_spans);
    maker->timeline->spans = spans;
    maker->timeline->span_count = drop_overlaps(spans, made);
    return 0;
}

static int make_moments(maker_t *maker, gp_timed_stack_t *stacks)
{
    const gp_dataset_t *dataset = maker->dataset;
    gp_timed_sample_t *moments =
        gp_arena_alloc(&maker->builder->arena, (dataset->moment_count + 1) * sizeof(*moments));
    size_t count = 0;

    if (moments == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < dataset->weight_count; i++)
        if (stacks[i].frames != NULL)
            stacks[i].track = maker->tracks[stacks[i].track];
    for (size_t i = 0; i < dataset->moment_count; i++) {
        const gp_dataset_moment_t *moment = &dataset->moments[i];
        if (stacks[moment->weight].frames != NULL)
            moments[count++] = (gp_timed_sample_t){moment->time_ns, moment->weight_ns, moment->weight};
    }
    maker->timeline->stacks = stacks;
    maker->timeline->stack_count = (uint32_t)dataset->weight_count;
    maker->timeline->moments = moments;
    maker->timeline->moment_count = count;
    return 0;
}

int gp_report_timeline(gp_builder_t *builder, const gp_dataset_t *dataset,
                       const gp_report_options_t *options, gp_timed_stack_t *stacks)
{
    maker_t maker = {
        .builder = builder,
        .dataset = dataset,
        .options = options,
        .tracks = malloc((dataset->coro_count + 1) * sizeof(uint32_t)),
        .traces = calloc(dataset->trace_count + 1, sizeof(char *)),
        .threads = calloc(dataset->thread_count + 1, sizeof(char *)),
        .timeline = gp_arena_alloc(&builder->arena, sizeof(gp_timeline_t)),
    };
    int result = -ENOMEM;

    if (maker.tracks == NULL || maker.traces == NULL || maker.threads == NULL ||
        maker.timeline == NULL)
        goto out;
    maker.timeline->pid = dataset->header.pid;
    size_t spans = find_tracks(&maker, stacks);
    if (name_tracks(&maker) < 0)
        goto out;
    find_parents(&maker);
    if (make_spans(&maker, spans) < 0 || make_moments(&maker, stacks) < 0)
        goto out;
    builder->report.timeline = maker.timeline;
    result = 0;
out:
    free(maker.tracks);
    free(maker.traces);
    free(maker.threads);
    return result;
}
