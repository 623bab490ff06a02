// SPDX-License-Identifier: MIT
// Rows of critical paths. Private to src/report/report_*.c.
#pragma once

struct gp_sample_rows;
struct gp_reading;
typedef struct gp_path_rows gp_path_rows_t;

// Add a row for each (endpoint, coroutine, stack, state, what kept the thread) on the critical paths that the pass'
// options choose: weights add up to the latencies. Frames: the endpoint where there are several requests, the coroutine
// (then without its number), the stack, the state. Begin, have `reading` read, add: 0 or a negative errno value; free.
gp_path_rows_t *gp_report_paths_begin(struct gp_sample_rows *pass, struct gp_reading *reading);
int gp_report_paths_add(gp_path_rows_t *rows);
// NULL is allowed.
void gp_report_paths_free(gp_path_rows_t *rows);
