// SPDX-License-Identifier: MIT
// What piece.c and piece_paths.c share.
#pragma once

#include <string.h>

#include "model/span_kind.h"
#include "ship/rows/piece.h"

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

// A span that no other of its process is around, and that has ended.
static inline bool gp_piece_is_request(const gp_span_record_t *span)
{
    return (span->parent_id == 0 || span->flags & GP_SPAN_REMOTE_PARENT) && !(span->flags & GP_SPAN_OPEN);
}

// Sums by trace (piece_sums.c): a record; what is wanted of before the piece; times of requests, when that was read.
int gp_piece_add_ledger(void *piece, const gp_ledger_record_t *record);
int gp_piece_want_sums(const gp_piece_t *piece, gp_known_table_t *wanted);
int gp_piece_make_whole(gp_piece_t *piece);
