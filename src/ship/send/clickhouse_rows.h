// SPDX-License-Identifier: MIT
// Rows of batches as blocks for a table of the schema.
#pragma once

#include "ship/send/clickhouse_schema.h"
#include "ship/send/native.h"

typedef struct gp_rows { // a selection of the rows of one table: `first`, `count` of each batch
    const gp_batch_t *batches;
    const size_t *first, *rows; // [count]
    size_t count;
    uint64_t now_s;
} gp_rows_t;

// The days, since 1970, of a row of a table with days; 0 for others.
uint32_t gp_rows_day(enum gp_schema_table table, const gp_batch_t *batch, size_t row);

// How many rows of a table a batch has.
size_t gp_rows_count(enum gp_schema_table table, const gp_batch_t *batch);

// Write a block. block->error says what went wrong.
void gp_rows_write(gp_native_t *block, enum gp_schema_table table, const gp_rows_t *rows);
