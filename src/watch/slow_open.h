// SPDX-License-Identifier: MIT
// Requests that have been open for too long, in captures still being written.
//
// Model: each capture of a batch is read on, for open spans (capture/killed/recovery.h) and for coroutines that hold
// their thread (slow_held.h). A request is told once.
//
// Order of calls: look... -> free. Threads: one at a time.
#pragma once

#include "base/memory.h"
#include "capture/killed/recovery.h"
#include "ship/rows/row.h"
#include "ship/send/url.h"
#include "watch/slow_held.h"

typedef struct gp_slow_open { // zero-initialized = nothing is known
    struct gp_slow_watched *watched;
    size_t count, capacity;
    uint64_t *told; // ids of spans, until they are over
    size_t told_count, told_capacity;
    gp_slow_held_t held;
    gp_arena_t texts; // of the last look
} gp_slow_open_t;

typedef struct gp_slow_found { // valid until the next look
    gp_row_request_t *requests;
    size_t count;
    const gp_recovery_t *recovery; // of the capture; NULL = it has its end, or has gone
    gp_held_process_t *process;    // whose it is
    int fd;                        // its
} gp_slow_found_t;

// Which requests of the batch's capture have been open for so long?
//   stuck_ns: 0 = all that are open.
// Returns 0 or -ENOMEM; a capture that has gone, or has its end, has none.
int gp_slow_open_look(gp_slow_open_t *open, const gp_batch_t *batch, uint64_t stuck_ns, gp_slow_found_t *found);

// Note that a request has been told.
int gp_slow_open_told(gp_slow_open_t *open, uint64_t span);

void gp_slow_open_free_found(gp_slow_found_t *found);
void gp_slow_open_free(gp_slow_open_t *open);
