// SPDX-License-Identifier: MIT
// Two sets of samples compared, function by function and stack by stack. Private to diff*.c.
//
// Model: each side is a report. A function is told by its name and the name of its file, so that the same one is found
// in another build. A value is CPU time in the unit that was asked for. The standard error comes from the samples' own
// weights: they are taken as independent, which overstates it where a coroutine's samples are scaled to its exact time.
// The error says whether chance in sampling explains a change, not whether the two runs did the same work.
#pragma once

#include "base/index.h"
#include "base/memory.h"
#include "export/write/json_text.h"
#include "input.h"
#include "report/report_options.h"
#include "row_limits.h"

enum { GP_BASE, GP_FILE, GP_SIDES };

typedef struct gp_weights { // of a function or a node, on one side
    uint64_t ns, samples;
    double squares_ns2;
} gp_weights_t;

typedef struct gp_change {                     // as shown
    double value[GP_SIDES], difference, error; // error: 0 = none can be told
    double z;
    bool is_significant;
} gp_change_t;

typedef struct gp_diff_side {
    gp_input_t source;
    gp_report_t *report;
    double squares_ns2;  // of all samples
    double factor;       // value of a nanosecond
    uint32_t *functions; // uint32_t[report->frame_count]: number of each frame's function
} gp_diff_side_t;

typedef struct gp_diff_function {
    const char *name, *file;
    bool pseudo;
    gp_weights_t own[GP_SIDES], total[GP_SIDES];
    gp_change_t own_change, total_change;
} gp_diff_function_t;

typedef struct gp_diff {
    gp_diff_side_t sides[GP_SIDES];
    const char *unit; // "%", "ms", "ms a second", ...
    gp_diff_function_t *functions;
    size_t function_count, function_capacity;
    gp_index_t function_index;
    size_t comparisons; // how many were made: each of them may be wrong by chance
    gp_json_t *json;    // NULL = text
    double z_critical;  // larger ones are not explained by chance, 95 % sure of all together
} gp_diff_t;

// Add a row to what has it.
void gp_diff_charge(gp_weights_t *weights, const gp_report_row_t *row);

// From here on that many are compared: how large a z is more than chance.
void gp_diff_compare_all(gp_diff_t *diff, size_t comparisons);

// Charge the functions with both sides' rows and compare them. Returns 0 or -ENOMEM.
int gp_diff_compare(gp_diff_t *diff);

// Compare what has these weights.
gp_change_t gp_diff_change(const gp_diff_t *diff, const gp_weights_t weights[GP_SIDES]);

// The head of a text, and the numbers of one change.
void gp_diff_print_header(const gp_diff_t *diff);
void gp_diff_print_change(const gp_change_t *change);

// The same as JSON: begin, rows, end.
void gp_diff_json_begin(const gp_diff_t *diff, const char *by, const char *order);
void gp_diff_json_function(gp_json_t *json, const gp_diff_function_t *function);
void gp_diff_json_change(gp_json_t *json, const char *key, const gp_change_t *change);
void gp_diff_json_end(gp_json_t *json);

// After gp_diff_compare(): compare whole stacks instead of functions, and print them. Returns 0 or -ENOMEM.
int gp_diff_print_stacks(gp_diff_t *diff, const char *order, gp_row_limits_t restrictions);

// Compare the requests of both sides, by endpoint, and print them. Returns 0 or -ENOMEM.
int gp_diff_print_endpoints(gp_diff_t *diff, gp_row_limits_t restrictions);

void gp_diff_free(gp_diff_t *diff);
