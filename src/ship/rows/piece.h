// SPDX-License-Identifier: MIT
// A piece of a capture as a batch: samples summed up by the grain, spans, requests.
//
// Model: gp_piece_make() reads whole chunks from a place on, at most as many bytes as asked for, or exactly as many as
// once before. Samples are summed up by (grain, trace, coroutine, state, stack) as they come; then ids become names.
// Definitions that were dropped since are read again from the file's beginning on.
//
// Order of calls: make -> use `batch` -> free, before the capture's next. Threads: one at a time. Signals: not safe.
// Memory: 64 bytes a row, at most GP_BATCH_ROWS_MAX of them; stacks as gp_capture_names_t.
#pragma once

#include <string.h>

#include "model/span_kind.h"
#include "ship/rows/capture_names.h"
#include "ship/rows/row.h"

typedef struct gp_piece_options {
    uint64_t grain_ns;
    bool no_traces, with_info;
} gp_piece_options_t;

typedef struct gp_piece_row { // of one stack, trace and coroutine of the capture
    uint64_t bucket;          // grains since 1970
    uint64_t coro_id;
    uint64_t hog_id; // another coroutine that the stack is of; 0 = its own stack
    uint64_t weight_ns;
    double squares_ns2;
    uint32_t trace, stack_id, samples;
    uint8_t kind;
    uint8_t measure; // enum gp_row_measure
} gp_piece_row_t;

typedef struct gp_piece { // zero-initialized = empty
    gp_batch_t batch;
    gp_capture_names_t *known;
    const gp_piece_options_t *options;
    uint64_t grain_ns, shift_ns; // shift: start of the capture since 1970
    gp_piece_row_t *rows;
    size_t row_count, row_capacity;
    uint32_t *slots; // of `rows`: number plus 1
    size_t slot_count;
    gp_row_sample_t *samples;
    gp_row_stack_t *stacks;
    size_t stack_count, stack_capacity;
    gp_row_span_t *spans;
    size_t span_count, span_capacity;
    gp_row_request_t *requests;
    size_t request_count, request_capacity;
    gp_capture_names_table_t stack_numbers; // by the row's id
    gp_capture_names_table_t coro_names;    // by coroutine, to const char *
    gp_capture_names_table_t sums;          // by trace, to gp_capture_names_sum_t *: of its ledger's records
    uint64_t ledger_ns;                     // the latest of them
    gp_arena_t arena;
    uint64_t samples_read, weight_read; // for self-checks: equal to the sums of `samples`
} gp_piece_t;

// Read [from, to) of a capture, or, with to = 0, whole chunks from `from` on up to about `max` bytes.
//   fd: its position is changed.
// piece->batch.to is set; equal to `from` when there is nothing new. Returns 0 or a negative errno value.
int gp_piece_make(gp_piece_t *piece, gp_capture_names_t *known, int fd, uint64_t from, uint64_t to, uint64_t max,
                  const gp_piece_options_t *options, char error[GP_READER_ERROR_SIZE]);

// Critical paths and delays of a capture that has ended: the piece [size, size + 1). All of the capture is summed up
// for it. Returns as gp_piece_make(); -EOVERFLOW where they are too many rows.
int gp_piece_make_paths(gp_piece_t *piece, gp_capture_names_t *known, int fd, uint64_t size,
                        const gp_piece_options_t *options, char error[GP_READER_ERROR_SIZE]);

// After the acknowledgement: add this piece's ledgers to the sums of requests still open.
void gp_piece_keep_sums(gp_piece_t *piece);

void gp_piece_free(gp_piece_t *piece);

// --- what piece.c, piece_paths.c and piece_sums.c share

// Add to the row of its key. Returns 0, -EOVERFLOW where there are GP_BATCH_ROWS_MAX others, -ENOMEM.
int gp_piece_add_row(gp_piece_t *piece, const gp_piece_row_t *row);

// Rows with ids become rows with names; what is not known is read from the file before `from`.
int gp_piece_name(gp_piece_t *piece, int fd, uint64_t from, bool is_first, char *error);

// The number that stands for a trace's id until all of the piece is read.
static inline uint32_t gp_piece_trace_number(const uint8_t trace[16])
{
    uint32_t number;
    memcpy(&number, trace, sizeof(number));
    return number;
}

// A span without another of its process around it, and with an end.
static inline bool gp_piece_is_request(const gp_span_record_t *span)
{
    return (span->parent_id == 0 || span->flags & GP_SPAN_REMOTE_PARENT) && !(span->flags & GP_SPAN_OPEN);
}

// Sums by trace (piece_sums.c): a record; what is wanted of before the piece; times of requests, when that was read.
int gp_piece_add_ledger(void *piece, const gp_ledger_record_t *record);
int gp_piece_want_sums(const gp_piece_t *piece, gp_capture_names_table_t *wanted);
int gp_piece_make_whole(gp_piece_t *piece);
