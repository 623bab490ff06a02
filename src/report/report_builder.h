// SPDX-License-Identifier: MIT
// The common part of the report builders. Private to src/report/report_*.c.
#pragma once

#include "report/report_options.h"

typedef struct gp_builder_loc { // frames of a location: an inlined function and those around it
    gp_loc_t loc;
    uint32_t first, count; // in `loc_frames`, OUTERMOST first
} gp_builder_loc_t;

typedef struct gp_builder_path { // a distinct stack
    const uint32_t *frames;      // ROOT FIRST
    uint32_t depth;
} gp_builder_path_t;

typedef struct gp_builder_mapping {
    uint32_t module; // symbolizer's module number
    uint64_t bias;
} gp_builder_mapping_t;

typedef struct gp_builder {
    gp_report_t report; // handed out: first, so that gp_report_free() finds the rest
    gp_namer_t names;
    bool symbols_stay; // as long as the report: it may have their texts without a copy
    unsigned wants;    // enum gp_want bits
    gp_arena_t arena;
    gp_report_mapping_t *mappings; // which frames refer to
    gp_builder_mapping_t *mapping_modules;
    size_t mapping_count, mapping_capacity, mapping_module_capacity;
    gp_index_t mapping_index;
    gp_label_t *labels;
    size_t label_count, label_capacity;
    gp_index_t label_index;
    gp_report_frame_t *frames;
    size_t frame_count, frame_capacity;
    gp_index_t frame_index;
    gp_report_row_t *rows;
    size_t row_count, row_capacity;
    gp_index_t row_index;
    gp_builder_path_t *paths;
    size_t path_count, paths_capacity;
    gp_index_t path_index;
    struct gp_sample_rows *pass; // maker of a capture's rows, or NULL
    gp_builder_loc_t *locs;
    size_t loc_count, loc_capacity;
    gp_index_t loc_index;
    uint32_t *loc_frames;
    size_t loc_frame_count, loc_frame_capacity;
    gp_call_t *calls;
    size_t call_count, call_capacity;
    uint32_t row_label, row_tick; // of the row that is being put together, as in gp_row_t
    uint32_t *path;               // its frames, root first
    size_t path_len, path_capacity;
    uint32_t *matches; // each frame's matches of a stack filter: see report_filter.c
    size_t match_count, match_capacity;
} gp_builder_t;

//   wants: enum gp_want bits.
// Returns NULL and errno.
gp_builder_t *gp_builder_create(const gp_facts_t *facts, gp_symbolizer_t *symbolizer, unsigned wants);

// Make room for so many distinct frames. Returns 0 or -ENOMEM.
int gp_builder_reserve(gp_builder_t *builder, size_t frames);

// Say where a module is mapped; of several places the first counts. Does nothing where addresses
// are not wanted. Returns 0 or -ENOMEM.
//   module:  symbolizer's number, or GP_SYMBOLIZER_NO_MODULE.
//   mapping: path and range; its build_id is not read.
int gp_builder_mapping(gp_builder_t *builder, uint32_t module, uint64_t bias, const gp_report_mapping_t *mapping,
                       const uint8_t *build_id, size_t build_id_len);

// Returns the mapping's number plus 1, 0 when there is none.
uint32_t gp_builder_mapping_find(const gp_builder_t *builder, uint32_t module);

// The number of a frame, found or added; texts are copied. GP_INDEX_NONE when memory is short.
uint32_t gp_builder_frame(gp_builder_t *builder, const gp_report_frame_t *frame);

// Put one row together: begin, then frames from the root to the leaf, then end. Each returns 0 or
// -ENOMEM.
void gp_builder_row_begin(gp_builder_t *builder);
int gp_builder_row_pseudo(gp_builder_t *builder, const char *name);
int gp_builder_row_loc(gp_builder_t *builder, gp_loc_t loc);
//   squares: sum of the squares of the samples' weights.
int gp_builder_row_end(gp_builder_t *builder, uint64_t weight_ns, uint64_t samples, double squares);

// End what was put together as a path, instead of a row: found or added. Returns its number,
// GP_INDEX_NONE when memory is short.
uint32_t gp_builder_path(gp_builder_t *builder);

// Find or add a label; texts are copied. Returns its number plus 1, 0 when memory is short.
uint32_t gp_builder_label(gp_builder_t *builder, const gp_label_t *label);

// Whether the row that is being put together passes a filter: 1, 0, or -ENOMEM. The filter is the same for all rows.
//   first: frames before this one do not count.
int gp_builder_row_passes(gp_builder_t *builder, const gp_stack_filter_t *filter, size_t first);

// Take frames away that are in no row, in no path and not among the roots of the pass. Returns 0 or -ENOMEM.
int gp_builder_drop_unused_frames(gp_builder_t *builder);

// Scale the rows to `total_ns` (0 = unknown: they stay as they are), sort them, and hand the report
// out. The builder is the report's from then on. Returns NULL and errno, the builder is then freed.
gp_report_t *gp_builder_finish(gp_builder_t *builder, uint64_t total_ns);

void gp_builder_free(gp_builder_t *builder);
