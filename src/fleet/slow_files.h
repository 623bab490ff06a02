// SPDX-License-Identifier: MIT
// The files of slow requests, a folder each.
#pragma once

#include "fleet/row.h"
#include "fleet/url.h"
#include "symbol/symbolizer.h"

typedef struct gp_slow_request {
    const gp_row_request_t *row;
    uint64_t from_ns; // the latency from which on it is slow
} gp_slow_request_t;

// Make them, of one batch; those that are there stay. A folder appears when all is in it:
//   request.json, request.prof (CPU), wall.prof, critical-path.folded, request.html.
// Where the capture has gone meanwhile there is request.json alone, which says so.
//   directory: descriptor, and its path for messages.
// Returns 0, or a negative errno value and what is wrong.
int gp_slow_files_write(int directory, const char *path, const gp_batch_t *batch, const gp_slow_request_t *requests,
                        size_t count, gp_symbolizer_t *symbolizer, char error[GP_FLEET_ERROR_SIZE]);

// Take the oldest away, until there are `keep`. What is no folder of these stays.
void gp_slow_files_keep(int directory, size_t keep);
