// SPDX-License-Identifier: MIT
// Building a gp_report_t: names for locations, distinct rows, weights scaled to the exact total.
//
// Threads: one report at a time a thread; the symbolizer may be shared. Signals: not safe.
#pragma once

#include "facts/dataset.h"
#include "facts/names.h"
#include "model/snapshot.h"
#include "report/critical_path.h"
#include "report/report.h"
#include "report/selection.h"

typedef enum gp_by {
    GP_BY_NONE,
    GP_BY_COROUTINE,
    GP_BY_TRACE,
    GP_BY_SPAN, // "[span 16hex]"
    GP_BY_REQUEST,
    GP_BY_CRITICAL_PATH,
    GP_BY_POOL,
} gp_by_t;

// On-CPU samples of each coroutine or trace that are in the rows, before they are scaled.
typedef struct gp_group_sum {
    uint64_t ns, samples;
    double squares; // of the samples' weights
} gp_group_sum_t;

typedef struct gp_group_sums {
    gp_group_sum_t *items; // by number of the coroutine or trace, zeros at first
    bool by_trace;
} gp_group_sums_t;

// The requests of a report of critical paths.
typedef struct gp_path_sums {
    uint64_t requests;     // with a path in the rows
    uint64_t about;        // of these, without a span: beginning and end are not exact
    uint64_t latency_ns;   // together, before stacks were left out
    uint64_t divided_ns;   // of activities with short waits: how much is exact, when is not
    uint64_t inferred_ns;  // of children of which nothing says that they were waited for
    uint64_t unsampled_ns; // without a stack
} gp_path_sums_t;

// The selection from a capture, and the frames at the root of every stack.
typedef struct gp_report_options {
    gp_by_t by;
    gp_selection_t selection;
    bool stitch; // put the stack at which a coroutine was created above its own, and its creator's
                 // above that
    gp_stack_filter_t stacks;
    gp_measure_t measure;        // delays need GP_KEEP_HOGS; they are selected by the coroutine that had to wait
    unsigned wants;              // enum gp_want bits
    const gp_group_sums_t *sums; // to be added to; NULL = not wanted
    // With GP_BY_CRITICAL_PATH, which has the measure GP_MEASURE_LATENCY: the requests, and sums about them.
    const gp_requests_t *requests;
    const bool *requests_chosen; // bool[requests->count]; NULL = all
    gp_path_sums_t *path_sums;   // to be set; NULL = not wanted
    gp_path_taker_t *path_taker; // who is given each path as well; NULL = nobody
    void *path_context;
    uint64_t tick_ns; // rows are apart by ticks of this length; 0 = they are not
    gp_page_t *page;  // rows are for this page: delays have labels, critical paths have these and segments; NULL = none
} gp_report_options_t;

// Build a report from a capture, which is read again for it. The dataset and what the options point
// to must outlive the report.
// total_ns is the exact CPU time of what was chosen: of the process (last counters record), of
// threads, or of coroutines and traces by the ledger. Where no exact time is known (a part of the
// time, threads and coroutines at once) it is what the samples add up to; of what `stacks` leaves
// it is the samples' share of an exact time. `basis` says which. Without a single
// sample there is one row, "[no samples]", that has the whole total. Returns NULL and errno.
gp_report_t *gp_report_from_capture(const gp_dataset_t *dataset, const gp_report_options_t *options,
                                    gp_symbolizer_t *symbolizer);

// The same in two steps, for several reports of one reading: begin each, have `reading` read, end each with the result
// of that, which frees what is being made. Each returns NULL and errno. Not with GP_WANT_PAGE.
typedef struct gp_making gp_making_t;
gp_making_t *gp_report_begin(const gp_dataset_t *dataset, const gp_report_options_t *options,
                             gp_symbolizer_t *symbolizer, gp_reading_t *reading);
gp_report_t *gp_report_end(gp_making_t *making, int result);

// Build a report from a profile of this process.
//   wants:      enum gp_want bits; labels there are none.
//   symbolizer: outlives the report, which has its texts.
// Returns NULL and errno.
gp_report_t *gp_report_from_snapshot(const gp_snapshot_t *snapshot, unsigned wants, gp_symbolizer_t *symbolizer);

void gp_report_free(gp_report_t *report);

// The same with GP_WANT_PAGE, for gp_report_from_capture(): all reports that a page shows.
gp_report_t *gp_report_with_page(const gp_dataset_t *dataset, const gp_report_options_t *options,
                                 gp_symbolizer_t *symbolizer);
// NULL is allowed.
void gp_page_free(gp_page_t *page);

// "[coroutine 12 name]" or "[thread name]" for a coroutine of a dataset, as --by coroutine shows it; "12 name" without
// the word and the brackets where `bare` is true. Returns the length, which is less than `size`.
size_t gp_report_coro_label(const gp_dataset_t *dataset, uint32_t coro, gp_symbolizer_t *symbolizer, bool bare,
                            char *text, size_t size);

// The first function of a coroutine, from one of its samples: behind a C++ runtime's template, the program's own.
// Returns false where it is not known.
bool gp_report_coro_entry(const gp_dataset_t *dataset, uint32_t coro, gp_symbolizer_t *symbolizer, char *text,
                          size_t size);

// "[trace 32hex]" or "[no trace]"; without the word and the brackets where `bare` is true.
size_t gp_report_trace_label(const gp_dataset_t *dataset, uint32_t trace, bool bare, char *text, size_t size);

// The function at a location, no inlined one: its name; "module+0x12" and "[lost function]" where it has none. As long
// as the dataset and the symbolizer.
const char *gp_report_loc_name(const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer, gp_loc_t loc);
