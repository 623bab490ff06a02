#include "export/timeline.h"

#include "export/report_timeline.h"

enum { WAITS_NS = 1000, WAITS_PART = 100 }; // short waits that do not make a slice an interleaved one

bool gp_timeline_is_whole(const gp_span_t *span)
{
    uint64_t active = span->left_ns - span->start_ns;
    return active - span->slice_ns <= WAITS_NS + active / WAITS_PART;
}

static size_t add(gp_slice_t *slices, size_t count, const char *state, uint64_t from_ns, uint64_t to_ns)
{
    if (to_ns <= from_ns)
        return count;
    slices[count] = (gp_slice_t){state, from_ns, to_ns};
    return count + 1;
}

size_t gp_timeline_slices(const gp_timeline_t *timeline, const gp_span_t *span, gp_slice_t slices[GP_SLICES_MAX])
{
    const char *active = gp_timeline_is_whole(span) ? "running" : "interleaved";
    size_t count = add(slices, 0, active, span->start_ns, span->left_ns);
    if (timeline->tracks[span->track].is_thread)
        return count;
    if (!span->is_ready_known)
        return add(slices, count, "waiting", span->left_ns, span->end_ns);
    count = add(slices, count, "parked", span->left_ns, span->ready_ns);
    return add(slices, count, "ready", span->ready_ns, span->end_ns);
}

int gp_timeline_each_span(const gp_timeline_t *timeline, gp_span_taker_t *take, void *context)
{
    const gp_span_t *spans = timeline->spans;
    int result = 0;
    if (timeline->source != NULL)
        return gp_timeline_source_spans(timeline->source, take, context);
    for (size_t i = 0; i < timeline->span_count && result == 0; i++)
        result = take(context, &spans[i], i > 0 && spans[i - 1].track == spans[i].track ? &spans[i - 1] : NULL, i);
    return result;
}

int gp_timeline_each_sample(const gp_timeline_t *timeline, gp_timed_sample_taker_t *take, void *context)
{
    int result = 0;
    if (timeline->source != NULL)
        return gp_timeline_source_samples(timeline->source, take, context);
    for (size_t i = 0; i < timeline->sample_count && result == 0; i++)
        result = take(context, &timeline->samples[i]);
    return result;
}

bool gp_timeline_wake(const gp_span_t *span, size_t number, gp_arrow_t *arrow)
{
    if (!span->is_ready_known || span->goes_on || span->waker == GP_NO_TRACK || span->waker == span->track)
        return false;
    *arrow = (gp_arrow_t){
        .what = "wake",
        .id = 2 * (uint64_t)number + 2,
        .from = span->waker,
        .to = span->track,
        .from_ns = span->ready_ns,
        .to_ns = span->end_ns,
    };
    return true;
}

bool gp_timeline_spawn(const gp_timeline_t *timeline, uint32_t track, gp_arrow_t *arrow)
{
    const gp_track_t *child = &timeline->tracks[track];
    if (child->parent == GP_NO_TRACK || child->parent == track || child->birth_ns == 0)
        return false;
    *arrow = (gp_arrow_t){
        .what = "spawn",
        .id = 2 * (uint64_t)track + 1,
        .from = child->parent,
        .to = track,
        .from_ns = child->birth_ns,
        .to_ns = child->birth_ns,
    };
    return true;
}
