// SPDX-License-Identifier: MIT
// The samples of a capture, read again: rows of a report. Private to src/report/report_*.c.
//
// Model: a sample that is chosen is scaled and added to the sum of (group, path). A path is a distinct stack of frames
// with the leaf of the sample's kind; a group is what rows are kept apart by besides: a label, and a root frame. While
// nothing is kept apart, sums are an array by path. Else they are a table, which is put by when it is full, in parts by
// group: a report of any number of rows takes as much memory as one part.
//
// Order of calls: create -> read -> finish -> any of the others -> free.
#pragma once

#include "report/report_builder.h"
#include "report/report_stitch.h"
#include "report/scaling.h"
#include "report/span_finder.h"
#include "report/spill.h"

typedef struct gp_sample_rows_weight {
    uint32_t group, path;
    uint64_t samples;
    double ns, squares; // scaled
} gp_sample_rows_weight_t;

typedef struct gp_sample_rows_weights { // zero-initialized = empty
    gp_sample_rows_weight_t *items;
    size_t count, capacity;
    gp_index_t index; // by (group, path)
} gp_sample_rows_weights_t;

enum { GP_SAMPLE_ROWS_BLOCK = 64 }; // weights that are looked for together

typedef struct gp_sample_rows_group {
    uint32_t label, root; // label's number plus 1, 0 = none; frame, or GP_INDEX_NONE
    uint32_t tick;        // plus 1, 0 = none
} gp_sample_rows_group_t;

typedef struct gp_sample_rows_owner { // numbers; 0 for what is not kept apart
    uint32_t coro, trace;
    uint32_t thread; // index in the capture
    uint32_t span;   // plus 1
    uint32_t tick;   // plus 1
    uint32_t group;
} gp_sample_rows_owner_t;

typedef struct gp_sample_rows_stitched {
    uint32_t stitch, slot; // of `paths`
    uint32_t path;         // as there
} gp_sample_rows_stitched_t;

typedef struct gp_sample_rows_sums {
    uint64_t sampled_ns;         // on-CPU samples that passed, as they were
    double squares;              // and the squares of their weights
    double kept_ns, left_out_ns; // scaled, what passed the stack filter and what did not
    uint64_t samples;            // that passed
} gp_sample_rows_sums_t;

// Values in `paths`, for a stack and a kind.
enum { GP_PATH_NOT_YET, GP_PATH_LEFT_OUT, GP_PATH_FIRST };

typedef struct gp_sample_rows {
    gp_builder_t *builder;
    const gp_dataset_t *dataset;
    gp_report_options_t options;
    gp_scaling_t scaling;
    bool by_coro, by_trace, by_thread; // keys kept apart
    gp_span_finder_t *spans;           // with GP_BY_SPAN: spans are as well; else NULL
    bool *heaviest;                    // bool[coro_count]: only these have labels; NULL = all have
    uint32_t *paths;                   // by stack and kind: path plus GP_PATH_FIRST, or what it is instead
    gp_stitches_t stitches;            // with them, paths are also by what stands above the stack:
    gp_sample_rows_stitched_t *stitched;
    size_t stitched_count, stitched_capacity;
    gp_index_t stitched_index;
    uint32_t last_thread, last_thread_number;

    gp_sample_rows_weights_t weights;
    gp_sample_rows_weight_t waiting[GP_SAMPLE_ROWS_BLOCK]; // not in `weights` yet
    size_t waiting_count;
    gp_sample_rows_group_t *groups;
    size_t group_count, group_capacity;
    gp_sample_rows_owner_t *owners;
    size_t owner_count, owner_capacity;
    uint32_t *last_owner; // by coroutine, or by trace: plus 1
    gp_index_t group_index, owner_index;
    gp_spill_t spill;                    // weights that were put by
    double scale;                        // of a report in parts, what weights are multiplied by at last
    struct gp_timeline_source *timeline; // NULL where it is not wanted
    void (*timeline_free)(struct gp_timeline_source *timeline);
    bool *coros_seen; // bool[coro_count]: had samples that passed; NULL without a timeline

    gp_sample_rows_sums_t sums;
} gp_sample_rows_t;

// In which part of the time it was, plus 1; 0 where parts are not kept apart.
static inline uint32_t gp_sample_rows_tick(const gp_sample_rows_t *pass, uint64_t time_ns)
{
    return pass->options.tick_ns > 0 ? (uint32_t)(time_ns / pass->options.tick_ns + 1) : 0;
}

// Are the rows of a stack together, where they are in parts?
static inline bool gp_sample_rows_is_together(const gp_sample_rows_t *pass)
{
    return pass->options.wants & GP_WANT_TOGETHER && pass->options.by == GP_BY_NONE;
}

// The facts of a chosen sample.
typedef struct gp_sample_rows_sample {
    uint32_t coro, trace; // numbers; trace is 0 where it is not needed
    uint32_t path;        // GP_INDEX_NONE: its stack does not pass the filter
    uint64_t samples;     // that it stands for
    double ns, squares;   // scaled; sum of the squares of their weights
} gp_sample_rows_sample_t;

// The pass is the builder's, and freed with it. Memory that the options point to must live as long as the report.
// Returns NULL and errno.
gp_sample_rows_t *gp_sample_rows_create(gp_builder_t *builder, const gp_dataset_t *dataset,
                                        const gp_report_options_t *options);

// Tell the symbolizer what all stacks are going to be asked about, where threads may read ahead and all are.
void gp_sample_rows_expect(const gp_sample_rows_t *pass);

// Take all samples of a reading. The second returns 0 or a negative errno value.
void gp_sample_rows_begin_reading(gp_sample_rows_t *pass, gp_reading_t *reading);
int gp_sample_rows_end_reading(gp_sample_rows_t *pass);

// Look at a sample. Returns 1 when it is chosen, 0, or -ENOMEM.
int gp_sample_rows_look(gp_sample_rows_t *pass, const gp_sample_record_t *sample, gp_sample_rows_sample_t *seen);

// Put a stack together in the builder's path. Returns 0 or -ENOMEM.
int gp_sample_rows_add_stack(gp_sample_rows_t *pass, const gp_facts_stack_t *stack);
// Add the stacks of creation, above the stacks of a coroutine.
int gp_sample_rows_add_creators(gp_sample_rows_t *pass, uint32_t coro);
int gp_sample_rows_add_leaf(gp_sample_rows_t *pass, uint32_t kind);

// Hand the rows to the builder, or, where they are in parts, hand it the means to make them. Returns 0 or -ENOMEM.
int gp_sample_rows_finish(gp_sample_rows_t *pass);

// Mark the coroutines that have the most. Returns 0 or a negative errno value.
int gp_sample_rows_find_heaviest(gp_sample_rows_t *pass);

// Add a sample that passed. Returns 0 or a negative errno value.
int gp_sample_rows_weigh_sample(gp_sample_rows_t *pass, const gp_sample_record_t *sample,
                                const gp_sample_rows_sample_t *seen);

// Take all samples in that were added. Returns 0 or a negative errno value.
int gp_sample_rows_weigh_waiting(gp_sample_rows_t *pass);

// Put the weights by, and begin with none. Returns 0 or a negative errno value.
int gp_sample_rows_spill(gp_sample_rows_t *pass);

static inline void gp_sample_rows_add_weight(gp_sample_rows_weight_t *weight, uint64_t samples, double ns,
                                             double squares)
{
    weight->samples += samples;
    weight->ns += ns;
    weight->squares += squares;
}

// Have the memory ready of at most GP_SAMPLE_ROWS_BLOCK weights that are going to be added to: they are anywhere.
void gp_sample_rows_expect_weights(const gp_sample_rows_weights_t *weights, const gp_sample_rows_weight_t *more,
                                   size_t count);

// Add to the sum of (group, path). Returns 0 or -ENOMEM.
int gp_sample_rows_weigh(gp_sample_rows_weights_t *weights, const gp_sample_rows_weight_t *more);
void gp_sample_rows_weights_free(gp_sample_rows_weights_t *weights);

void gp_sample_rows_free(gp_sample_rows_t *pass);

// Whole nanoseconds. A damaged capture may say anything.
static inline uint64_t gp_whole_ns(double ns)
{
    return ns > 0 && ns < 0x1p63 ? (uint64_t)(ns + 0.5) : ns > 0 ? INT64_MAX : 0;
}
