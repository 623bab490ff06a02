// SPDX-License-Identifier: MIT
// The parts of a recording that have the requests of a batch: the batch's own, and earlier ones in which requests began
// (`greenprof run --rotate`).
//
// Order of calls: open -> close. Threads: one at a time.
#pragma once

#include "capture/several/captures.h"
#include "ship/rows/row.h"

typedef struct gp_slow_parts { // zero-initialized = none
    int *fds;                  // [count], the oldest first; positions are at their starts
    char **paths;              // [count]
    size_t count;
} gp_slow_parts_t;

// Open the parts that exist. The batch's own, the last one, may have another name by now.
//   from_ns: CLOCK_REALTIME: earlier parts count if written to since then.
// Returns 0, with no parts where its own has gone; -ENOMEM. Close in each case.
int gp_slow_parts_open(gp_slow_parts_t *parts, const gp_batch_t *batch, uint64_t from_ns);

// Put the first `count` of them into `captures`. Returns 0 or a negative errno value.
int gp_slow_parts_add(const gp_slow_parts_t *parts, size_t count, gp_captures_t *captures);

void gp_slow_parts_close(gp_slow_parts_t *parts);
