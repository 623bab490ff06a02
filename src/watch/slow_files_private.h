// SPDX-License-Identifier: MIT
// The making of folders, of slow requests and of held threads.
#pragma once

#include "export/write/json_text.h"
#include "report/report_options.h"
#include "report/requests.h"
#include "watch/slow_files.h"
#include "watch/slow_parts.h"

enum { GP_SLOW_NAME_SIZE = 160 };

typedef struct gp_slow_view { // a file made of the capture
    const char *name, *format;
    gp_by_t by;
    gp_measure_t measure;
} gp_slow_view_t;

typedef struct gp_slow_capture { // source of the files
    const gp_slow_means_t *means;
    const gp_batch_t *batch;
    gp_slow_parts_t parts;
    gp_dataset_t *dataset; // NULL = the capture is not there any more
    gp_requests_t *requests;
} gp_slow_capture_t;

// Name a folder, so that they are in the order of `end_ns` (CLOCK_REALTIME):
// "20261124T144243.088Z-380ms-GET_mixed-SPAN".
//   between: what stands before the words: "-", "-open-", "-held-".
void gp_slow_files_name(uint64_t end_ns, uint64_t took_ns, const char *between, const char *words, uint64_t id,
                        char name[GP_SLOW_NAME_SIZE]);

// Make a folder, which appears when all is in it; an existing one stays.
//   fill: puts the files there; `path` is the folder's. Returns 0 or a negative errno value, as this does.
typedef int gp_slow_fill_t(const gp_slow_capture_t *capture, const void *subject, int folder, const char *path);
int gp_slow_files_make(const gp_slow_capture_t *capture, const char *name, gp_slow_fill_t *fill, const void *subject);

// Put a file of the capture there.
int gp_slow_files_view(const gp_slow_capture_t *capture, const gp_slow_view_t *view, const gp_report_options_t *chosen,
                       const char *folder);

// Begin and end a file of one JSON object. Return 0 or a negative errno value.
int gp_slow_files_json(int folder, const char *name, gp_json_t *json);
int gp_slow_files_json_end(gp_json_t *json);

// Add the capture as it would be if its process were killed now.
int gp_slow_files_recovered(const gp_slow_capture_t *capture, gp_captures_t *captures);
