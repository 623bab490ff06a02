// SPDX-License-Identifier: MIT
// Columns of numbers, as DATA.md has them. Threads: one at a time. Signals: not safe.
#pragma once

#include <stdint.h>

#include "export/write/text.h"

typedef struct gp_column {
    const char *table, *name;
    char encoding; // 'u' plain, 'd' differences
    uint64_t count, before;
    gp_text_t bytes;
} gp_column_t;

// Columns of one table. After a failed allocation a column's bytes.failed is set.
//   names: separated by spaces; one that begins with "d:" holds differences.
//   columns: room for GP_COLUMNS_MAX.
// Returns how many there are.
enum { GP_COLUMNS_MAX = 20, GP_COLUMN_NAME_SIZE = 16 };
typedef struct gp_page_table {
    const char *name;
    char names[GP_COLUMNS_MAX][GP_COLUMN_NAME_SIZE];
    gp_column_t columns[GP_COLUMNS_MAX];
    size_t count;
} gp_page_table_t;

void gp_page_table_begin(gp_page_table_t *table, const char *name, const char *columns);

// Add a row.
//   values: uint64_t[table->count]; more than 2^53 - 1 is cut to that.
void gp_page_table_row(gp_page_table_t *table, const uint64_t *values);

void gp_page_table_free(gp_page_table_t *table);
