// SPDX-License-Identifier: MIT
// What piece.c and piece_paths.c share.
#pragma once

#include "fleet/piece.h"

// Add to the row of its key. Returns 0, -EOVERFLOW where there are GP_BATCH_ROWS_MAX others, -ENOMEM.
int gp_piece_add_row(gp_piece_t *piece, const gp_piece_row_t *row);

// Rows with ids become rows with names; what is not known is read from the file before `from`.
int gp_piece_name(gp_piece_t *piece, int fd, uint64_t from, bool is_first, char *error);
