// What the formats that show a timeline have in common.
#ifndef GP_EXPORT_TIMELINE_H
#define GP_EXPORT_TIMELINE_H

#include "export/model.h"

// One slice of a track.
typedef struct gp_slice {
    const char *state; // "running", "interleaved", "parked", "ready", "waiting"
    uint64_t from_ns, to_ns;
} gp_slice_t;

enum { GP_SLICES_MAX = 3 };

// A span as slices that adjoin; none is empty. "interleaved" is: it ran and waited in turns, each
// too short to be shown. Of a thread's own stack only what it ran is shown, while it waits its
// coroutines run. Returns how many.
size_t gp_timeline_slices(const gp_timeline_t *timeline, const gp_span_t *span,
                          gp_slice_t slices[GP_SLICES_MAX]);

// Whether all of the span's active time was one slice, or nearly.
bool gp_timeline_is_whole(const gp_span_t *span);

// Arrows from one track to another.
typedef struct gp_arrow {
    const char *what; // "spawn", "wake"
    uint64_t id;      // distinct among a timeline's
    uint32_t from, to; // tracks
    uint64_t from_ns, to_ns;
} gp_arrow_t;

// The arrow that ends where the span `number` does: who woke it. False where it is not known.
bool gp_timeline_wake(const gp_timeline_t *timeline, size_t number, gp_arrow_t *arrow);

// The arrow that ends where a track begins: who spawned it. False where it is not known.
bool gp_timeline_spawn(const gp_timeline_t *timeline, uint32_t track, gp_arrow_t *arrow);

#endif
