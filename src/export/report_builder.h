// The common part of the report builders. Private to src/export/report*.c.
#ifndef GP_EXPORT_REPORT_BUILDER_H
#define GP_EXPORT_REPORT_BUILDER_H

#include "export/report.h"

typedef struct gp_builder_loc { // frames of a location: an inlined function and those around it
    uint64_t module;            // symbolizer's module number
    uint64_t address;
    uint32_t first, count; // in `loc_frames`, OUTERMOST first
} gp_builder_loc_t;

typedef struct gp_builder {
    gp_report_t report; // what is handed out: first, so that gp_report_free() finds the rest
    gp_symbolizer_t *symbolizer;
    gp_arena_t arena;
    gp_frame_t *frames;
    size_t frame_count, frame_capacity;
    gp_index_t frame_index;
    gp_row_t *rows;
    size_t row_count, row_capacity;
    gp_index_t row_index;
    gp_builder_loc_t *locs;
    size_t loc_count, loc_capacity;
    gp_index_t loc_index;
    uint32_t *loc_frames;
    size_t loc_frame_count, loc_frame_capacity;
    uint32_t *path; // the row that is being put together, root first
    size_t path_len, path_capacity;
} gp_builder_t;

// Returns NULL and errno.
gp_builder_t *gp_builder_create(gp_symbolizer_t *symbolizer);

// Put one row together: begin, then frames from the root to the leaf, then end. Each returns 0 or
// -ENOMEM.
void gp_builder_row_begin(gp_builder_t *builder);
int gp_builder_row_pseudo(gp_builder_t *builder, const char *name);
//   module: symbolizer's number of the module of `loc`, which counts where `loc` has one.
int gp_builder_row_loc(gp_builder_t *builder, uint32_t module, gp_loc_t loc);
int gp_builder_row_end(gp_builder_t *builder, uint64_t weight_ns, uint64_t samples);

// Scale the rows to `total_ns` (0 = unknown: they stay as they are), sort them, and hand the report
// out. The builder is the report's from then on. Returns NULL and errno, the builder is then freed.
gp_report_t *gp_builder_finish(gp_builder_t *builder, uint64_t total_ns);

void gp_builder_free(gp_builder_t *builder);

#endif
