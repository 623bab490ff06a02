// SPDX-License-Identifier: MIT
// The tables of `greenprof report`.
#pragma once

#include "input.h"
#include "stats.h"

typedef struct gp_table_options {
    gp_sorts_t sorts;
    gp_row_limits_t restrictions;
} gp_table_options_t;

// The header above every table: the capture, how much it holds, and what is missing.
void gp_report_print_header(const gp_input_t *source, const gp_report_t *report);

// Its part that says what is missing, and a clock engine's name.
void gp_report_print_counters(const gp_dataset_t *dataset);

// A line on the budget that the capture was recorded with, if there was one.
void gp_report_print_budget(const gp_dataset_t *dataset);
const char *gp_report_engine_name(uint32_t engine);

// The tables by coroutine and by trace. Return 0 or -ENOMEM.
//   sums: see gp_input_report_sums().
int gp_report_print_coroutines(const gp_input_t *source, const gp_group_sum_t *sums, const gp_table_options_t *options);
int gp_report_print_traces(const gp_input_t *source, const gp_group_sum_t *sums, const gp_table_options_t *options);

// Where delays are not known: the long slices, by the code that most of each was in. Returns 0 or a negative errno
// value.
int gp_report_print_slices(const gp_input_t *source);

// The table by request, and that of endpoints. Returns 0 or -ENOMEM.
int gp_report_print_requests(const gp_input_t *source, const gp_table_options_t *options);

// The tables of pools of threads. Returns 0 or -ENOMEM.
int gp_report_print_pools(const gp_input_t *source, const gp_table_options_t *options);

// The part above the functions of critical paths: by state and by coroutine and, for a single request, the path itself.
// Its data come while the rows are made: begin, make the report with the options, print, free.
typedef struct gp_shown_paths gp_shown_paths_t;
// Returns NULL when memory is short.
gp_shown_paths_t *gp_shown_paths_begin(const gp_input_t *source, gp_report_options_t *options);
// Returns 0 or a negative errno value.
//   segments: how many of the path to show, the longest; 0 = all.
int gp_shown_paths_print(const gp_shown_paths_t *shown, const gp_input_t *source, const gp_report_t *report,
                         size_t segments);
// NULL is allowed.
void gp_shown_paths_free(gp_shown_paths_t *shown);

// Its table for many requests: the stacks that have most of their paths.
typedef struct gp_gains gp_gains_t;
gp_gains_t *gp_gains_create(const gp_requests_t *requests);
// A gp_path_taker_t; the context is the gp_gains_t.
struct gp_path_segment;
int gp_gains_take(void *gains, uint32_t request, const struct gp_path_segment *segments, size_t count);
void gp_gains_print(const gp_input_t *source, gp_gains_t *gains);
void gp_gains_free(gp_gains_t *gains);

// A segment of a path: "running", and its stack, innermost first.
const char *gp_report_path_state(const struct gp_path_segment *segment);
void gp_report_print_path_stack(const gp_input_t *source, const struct gp_path_segment *segment);
