// SPDX-License-Identifier: MIT
#include "report/timeline.h"

#include "report/report_timeline.h"

enum { WAITS_NS = 1000, WAITS_PART = 100 }; // short waits that do not make a slice an interleaved one

bool gp_timeline_is_whole(const gp_activity_t *activity)
{
    uint64_t active = activity->left_ns - activity->start_ns;
    return active - activity->slice_ns <= WAITS_NS + active / WAITS_PART;
}

static size_t timeline_add(gp_slice_t *slices, size_t count, const char *state, uint64_t from_ns, uint64_t to_ns)
{
    if (to_ns <= from_ns)
        return count;
    slices[count] = (gp_slice_t){state, from_ns, to_ns};
    return count + 1;
}

size_t gp_timeline_slices(const gp_timeline_t *timeline, const gp_activity_t *activity,
                          gp_slice_t slices[GP_SLICES_MAX])
{
    const char *active = gp_timeline_is_whole(activity) ? "running" : "interleaved";
    size_t count = timeline_add(slices, 0, active, activity->start_ns, activity->left_ns);
    if (timeline->tracks[activity->track].is_thread)
        return count;
    if (!activity->is_ready_known)
        return timeline_add(slices, count, "waiting", activity->left_ns, activity->end_ns);
    count = timeline_add(slices, count, "parked", activity->left_ns, activity->ready_ns);
    return timeline_add(slices, count, "ready", activity->ready_ns, activity->end_ns);
}

int gp_timeline_each_activity(const gp_timeline_t *timeline, gp_activity_taker_t *take, void *context)
{
    const gp_activity_t *activities = timeline->activities;
    int result = 0;
    if (timeline->source != NULL)
        return gp_timeline_source_activities(timeline->source, take, context);
    for (size_t i = 0; i < timeline->activity_count && result == 0; i++)
        result = take(context, &activities[i],
                      i > 0 && activities[i - 1].track == activities[i].track ? &activities[i - 1] : NULL, i);
    return result;
}

bool gp_timeline_wake(const gp_activity_t *activity, size_t number, gp_arrow_t *arrow)
{
    if (!activity->is_ready_known || activity->goes_on || activity->waker == GP_NO_TRACK ||
        activity->waker == activity->track)
        return false;
    *arrow = (gp_arrow_t){
        .what = "wake",
        .id = 2 * (uint64_t)number + 2,
        .from = activity->waker,
        .to = activity->track,
        .from_ns = activity->ready_ns,
        .to_ns = activity->end_ns,
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
