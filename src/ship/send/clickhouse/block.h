// SPDX-License-Identifier: MIT
// Rows of batches as a block of ClickHouse's format Native, column by column, which the store takes as a whole.
//
// Order of calls: write -> use `bytes` -> write... -> free. Threads: one at a time. Signals: not safe.
// Source: dbms/src/DataStreams/NativeBlockOutputStream.cpp of ClickHouse 18.16.
#pragma once

#include "ship/send/clickhouse/schema.h"

typedef struct gp_block { // zero-initialized = empty
    uint8_t *bytes;
    size_t len, room;
    int error; // -ENOMEM, sticky
} gp_block_t;

typedef struct gp_rows { // a selection of the rows of one table: `rows` from `first` on of each batch
    const gp_batch_t *batches;
    size_t *first, *rows; // [count]
    size_t count;
    uint64_t now_s;
} gp_rows_t;

// How many rows of a table a batch has.
size_t gp_rows_count(enum gp_schema_table table, const gp_batch_t *batch);

// The day of a row, since 1970; 0 where it has none.
uint32_t gp_rows_day(enum gp_schema_table table, const gp_batch_t *batch, size_t number);

// Write a block over the one before. block->error says what went wrong.
void gp_block_write(gp_block_t *block, enum gp_schema_table table, const gp_rows_t *rows);

void gp_block_free(gp_block_t *block);
