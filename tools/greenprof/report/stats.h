// SPDX-License-Identifier: MIT
// Functions with calls, times and callers, as pstats.Stats of Python has them: what `report` prints.
//
// Model: made from a report. Times are seconds, as in the .prof that would be exported: rounding, order and totals are
// those of pstats. Source: Lib/pstats.py of CPython 3.11.
#pragma once

#include "base/index.h"
#include "base/memory.h"
#include "export/function_table.h"
#include "row_limit.h"
#include "sort_key.h"

typedef struct gp_stat_caller {
    uint32_t function; // number in the stats
    uint64_t calls, primitive_calls;
    double own_s, total_s; // of the callee, below this caller
} gp_stat_caller_t;

typedef struct gp_stat {
    const char *file, *function;
    uint64_t line;
    const char *text; // "file:line(function)", as tables show it
    size_t width;     // of text, in characters
    uint64_t calls, primitive_calls;
    double own_s, total_s;
    gp_stat_caller_t *callers;
    size_t caller_count, caller_capacity;
} gp_stat_t;

enum { GP_SORTS_MAX = 8 };

typedef struct gp_sorts {
    const gp_sort_key_t *keys[GP_SORTS_MAX]; // the first decides, then the next
    size_t count;
} gp_sorts_t;

typedef struct gp_stats { // zero-initialized = empty
    gp_stat_t *items;
    size_t count, capacity;
    gp_index_t index;
    gp_arena_t arena;
    uint64_t calls, primitive_calls;
    double total_s;
    double cores_s;   // seconds by which times are divided, for columns of their own; 0 = none
    size_t width;     // the widest text's
    uint32_t *order;  // uint32_t[count]
    gp_sorts_t sorts; // that made the order
} gp_stats_t;

// Add the functions of a report. Returns 0 or -ENOMEM.
int gp_stats_add_report(gp_stats_t *stats, const gp_report_t *report);

// Order the functions; before that nothing can be printed. Among equal ones the longer comes first, then by name.
int gp_stats_sort(gp_stats_t *stats, const gp_sorts_t *sorts);

void gp_stats_free(gp_stats_t *stats);

// Print a table as print_stats(), print_callers() and print_callees() of pstats do, without the
// lines above "Ordered by". Each returns 0 or -ENOMEM.
int gp_stats_print(const gp_stats_t *stats, gp_row_limits_t restrictions);
int gp_stats_print_callers(const gp_stats_t *stats, gp_row_limits_t restrictions);
int gp_stats_print_callees(const gp_stats_t *stats, gp_row_limits_t restrictions);
