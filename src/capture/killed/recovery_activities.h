// SPDX-License-Identifier: MIT
// Open activities: of coroutines of open requests, without an end in the capture.
//
// Order of calls: (keep | over)... -> put -> free, tidy now and then. Memory: what is open. Threads: one at a time.
// Signals: not safe.
#pragma once

#include "base/index.h"
#include "capture/read/reader.h"
#include "capture/write/writer.h"

typedef struct gp_recovery_activities { // zero-initialized = none
    gp_activity_record_t *items;        // one for each coroutine; is_open = 0: over
    size_t count, capacity, open;
    gp_index_t index; // by coroutine
} gp_recovery_activities_t;

// Keep one that goes on, in place of what the same coroutine had. Returns 0 or -ENOMEM.
int gp_recovery_activities_keep(gp_recovery_activities_t *activities, const gp_activity_record_t *activity);

// An activity of the coroutine ends at `end_ns`: a kept one that began before is over.
void gp_recovery_activities_over(gp_recovery_activities_t *activities, uint64_t coro_id, uint64_t end_ns);

// Drop activities that are over, where they are most. Returns 0 or -ENOMEM.
int gp_recovery_activities_tidy(gp_recovery_activities_t *activities);

// Write those that are kept as the last ones of their coroutines. Returns 0 or a negative errno value.
int gp_recovery_activities_put(const gp_recovery_activities_t *activities, gp_writer_t *writer);

void gp_recovery_activities_free(gp_recovery_activities_t *activities);
