// SPDX-License-Identifier: MIT
// Common parts of the formats that show a timeline.
#pragma once

#include "report/report.h"

// A slice of a track.
typedef struct gp_slice {
    const char *state; // "running", "interleaved", "parked", "ready", "waiting"
    uint64_t from_ns, to_ns;
} gp_slice_t;

enum { GP_SLICES_MAX = 3 };

// An activity as slices that adjoin; none is empty. "interleaved": ran and waited in turns, each too short to be shown.
// A thread's own stack shows only running; while it waits its coroutines run. Returns how many.
size_t gp_timeline_slices(const gp_timeline_t *timeline, const gp_activity_t *activity,
                          gp_slice_t slices[GP_SLICES_MAX]);

// Whether all of the activity's active time was one slice, or nearly.
bool gp_timeline_is_whole(const gp_activity_t *activity);

// Hand out all activities of a timeline.
//   take: returns 0, or a negative value that ends it and is returned.
//         before: the activity before it on the same track, or NULL. number: 0, 1, 2, ... of the activity.
// Returns 0 or a negative errno value.
typedef int gp_activity_taker_t(void *context, const gp_activity_t *activity, const gp_activity_t *before,
                                size_t number);
int gp_timeline_each_activity(const gp_timeline_t *timeline, gp_activity_taker_t *take, void *context);

// Arrows from one track to another.
typedef struct gp_arrow {
    const char *what;  // "spawn", "wake"
    uint64_t id;       // distinct among a timeline's
    uint32_t from, to; // tracks
    uint64_t from_ns, to_ns;
} gp_arrow_t;

// The arrow from the waking coroutine to the end of an activity. False where it is not known.
bool gp_timeline_wake(const gp_activity_t *activity, size_t number, gp_arrow_t *arrow);

// The arrow that ends where a track begins, from its spawner. False where it is not known.
bool gp_timeline_spawn(const gp_timeline_t *timeline, uint32_t track, gp_arrow_t *arrow);
