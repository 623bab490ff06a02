// SPDX-License-Identifier: MIT
// The records of captures that are merged. Private to merge*.c.
#ifndef GP_TOOLS_MERGE_RECORDS_H
#define GP_TOOLS_MERGE_RECORDS_H

#include "capture/reader.h"
#include "capture/writer.h"
#include "merge_ids.h"

// Texts that the merged capture has where all inputs have the same.
enum { GP_MERGE_EXE, GP_MERGE_CMDLINE, GP_MERGE_HOSTNAME, GP_MERGE_TEXTS };
extern const char *const gp_merge_text_keys[GP_MERGE_TEXTS];

typedef struct gp_merge_text {
    char *text; // ended by NUL, and may have more of them; NULL = not known
    size_t len;
} gp_merge_text_t;

typedef struct gp_merge_input {
    const char *path;
    gp_file_header_t header;
    gp_merge_text_t texts[GP_MERGE_TEXTS];
    uint64_t shift_ns; // what is added to its times
    gp_counters_record_t totals;
    uint64_t counters[GP_COUNTER_COUNT];
    bool ended;
    gp_end_record_t end;
    uint64_t coro_first, coro_last; // in the merged capture; last < first: none
    uint32_t thread_first, thread_last;
} gp_merge_input_t;

typedef struct gp_merge {
    const char *path; // of the merged capture
    const char *name; // what messages call it
    gp_merge_input_t *inputs;
    size_t count;
    gp_merge_input_t *input; // the current one
    gp_merge_ids_t ids;
    gp_writer_t writer;
    gp_file_header_t header;
    gp_loc_t *locs; // scratch: the stack that is being translated
    size_t loc_room;
} gp_merge_t;

// Pass on the records of merge->input, a gp_merge_t being the context; keep its totals and texts.
extern const gp_reader_handlers_t gp_merge_handlers;

// Room for a record of the merged capture, zeroed; NULL when there is none: see gp_merge_error().
void *gp_merge_room(gp_merge_t *merge, enum gp_chunk_type type, size_t bytes);

// Why there is no room: a negative errno value.
int gp_merge_error(const gp_merge_t *merge);

#endif
