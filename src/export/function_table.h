// SPDX-License-Identifier: MIT
// A report by function: self and inclusive time of every function, and of every caller-callee pair.
//
// Model: a function is (name, file, first line). In one row each function's and each pair's inclusive time counts once,
// however often recursion puts it there. Counts are numbers of samples: `calls` counts a function as often as it is on
// the stack, `primitive_calls` once a sample, so that they differ where there is recursion, as in cProfile. A pair's
// `primitive_calls` counts where the pair holds the outermost frame of the callee: over all callers they add up to the
// callee's own.
//
// In a report of exact mode, the functions are the called ones, and all numbers are of calls; a pair's
// `primitive_calls` and time are then of its outermost calls: no other call of the pair was in progress, as in
// cProfile.
//
// Threads: one at a time; immutable after gp_function_table_create(). Signals: not safe.
#pragma once

#include "report/report.h"

typedef struct gp_function {
    const gp_report_frame_t *frame; // any of its frames: name, file, first line, kind
    uint64_t calls, primitive_calls;
    uint64_t self_ns, total_ns;
    uint32_t first_caller, caller_count; // in `pairs`
} gp_function_t;

typedef struct gp_function_pair {
    uint32_t caller, callee; // in `functions`
    uint64_t calls, primitive_calls;
    uint64_t self_ns, total_ns; // of the callee, below this caller
} gp_function_pair_t;

typedef struct gp_function_table {
    gp_function_t *functions; // in order of appearance
    uint32_t function_count;
    gp_function_pair_t *pairs; // by callee
    uint32_t pair_count;
    uint32_t *of_frame; // uint32_t[report->frame_count]: function of each frame
} gp_function_table_t;

// Returns NULL and errno. The report must outlive the table.
gp_function_table_t *gp_function_table_create(const gp_report_t *report);

// The functions and of_frame only: no times, no counts, no pairs.
gp_function_table_t *gp_function_table_create_uncharged(const gp_report_t *report);

void gp_function_table_free(gp_function_table_t *table);
