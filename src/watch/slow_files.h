// SPDX-License-Identifier: MIT
// The files of slow requests, and of coroutines that hold their thread, a folder each.
#pragma once

#include "capture/killed/recovery.h"
#include "ship/rows/row.h"
#include "ship/send/url.h"
#include "symbol/symbolizer.h"
#include "watch/slow_held.h"

typedef struct gp_slow_request {
    const gp_row_request_t *row;
    uint64_t from_ns; // the latency from which on it is slow
    bool is_open;     // has not ended
} gp_slow_request_t;

// Sources of the files, besides the batch.
typedef struct gp_slow_means {
    int directory;    // descriptor, and its path for messages
    const char *path; //
    gp_symbolizer_t *symbolizer;
    const gp_recovery_t *recovery; // of the capture, where there are requests that have not ended; else NULL
    int fd;                        // its
    // Says what all coroutines do, into a file of the folder: see gp_ship_options_t. NULL = it is not asked.
    bool (*coroutines)(uint32_t pid, const char *capture, const char *trace, int folder, const char *name);
} gp_slow_means_t;

// Make the files of a batch's requests; existing folders stay. A folder appears when all is in it:
//   request.json, request.prof (CPU), wall.prof, critical-path.folded, request.html, verdict.txt; of requests that have
//   not ended coroutines.txt as well.
// Where the capture has gone meanwhile there is request.json alone, which says so.
//   requests: all ended, or none.
// Returns 0, or a negative errno value and what is wrong.
int gp_slow_files_write(const gp_slow_means_t *means, const gp_batch_t *batch, const gp_slow_request_t *requests,
                        size_t count, char error[GP_FLEET_ERROR_SIZE]);

// Make the folder of a coroutine that holds its thread:
//   held.json, held.prof (CPU), wall.prof, held.html: its work since then, as far as it is in this part of the
//   recording; coroutines.txt.
//   from_ns: the shortest hold to be told.
// Returns 0, or a negative errno value and what is wrong.
int gp_slow_files_write_held(const gp_slow_means_t *means, const gp_batch_t *batch, const gp_held_found_t *held,
                             uint64_t from_ns, char error[GP_FLEET_ERROR_SIZE]);

#define GP_SLOW_HELD_FILES "held.json", "held.prof", "held.html" // besides those of requests

// Has a folder been made of a request that was open?
bool gp_slow_files_has_open(int directory, uint64_t span);

// Remove the oldest folders of requests, until `keep` are left. Other folders stay.
void gp_slow_files_keep(int directory, size_t keep);
