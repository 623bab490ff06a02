// SPDX-License-Identifier: MIT
// Rows of whole modules by range of code, put down before a handler asks for them.
//
// Model: the collector runs the programs of all functions of a startup module once, from end to end, and notes where
// each row begins. A handler that meets a program counter of it for the first time finds its row by three loads, in
// place of a search for the function and a run of its program. Rows that are not simple, and gaps between functions,
// have row 0: gp_resolve() asks the module itself.
//
// Room for all modules together is limited, and used once: a table is published when it is whole, and stays as it is.
// Producer: one thread at a time (prepare_tables.c). Consumers: any thread, handlers included.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "unwind/packed_row.h"

#ifndef GP_TABLE_ROWS           // a test has less room
#define GP_TABLE_ROWS (1 << 18) // of all modules: 2 MiB; Debian's files have 10,000 each at the mean
#endif

enum {
    GP_TABLE_STEP = 256,      // bytes of code. Some five rows begin in as many
    GP_TABLE_STEPS = 1 << 17, // of all modules: 32 MiB of code
    GP_TABLES_MAX = 64,
};

// Holds up to where the next one starts. The last one of a module starts at its end.
typedef struct gp_table_row {
    uint32_t start;      // bytes from the module's first one of code
    gp_packed_row_t row; // of kind GP_ROW_SP or GP_ROW_FP, or 0
} gp_table_row_t;

typedef struct gp_row_table {
    uintptr_t lo;
    uint32_t bytes;      // of code; 0: it has no table, and will have none
    uint32_t rows, step; // numbers of its first ones
} gp_row_table_t;

// Zero pages, touched as tables are made.
extern __attribute__((visibility("hidden"))) gp_table_row_t gp_table_rows[GP_TABLE_ROWS];
// For each step of code the number of the row that holds at its first byte, counted in its module.
extern __attribute__((visibility("hidden"))) uint32_t gp_table_steps[GP_TABLE_STEPS];
extern __attribute__((visibility("hidden"))) gp_row_table_t gp_row_tables[GP_TABLES_MAX];
extern __attribute__((visibility("hidden"))) _Atomic unsigned gp_row_table_count;

// A row and its code [lo, hi).
typedef struct gp_row_range {
    uintptr_t lo, hi;
    uintptr_t text_lo; // where the module's code begins
    gp_packed_row_t row;
} gp_row_range_t;

// Find the row of the code at `at`. Returns it, or 0 where none was put down. Signals: safe. Cost: ~10 ns, three cache
// lines that may be cold.
gp_packed_row_t gp_row_table_find(uintptr_t at, gp_row_range_t *range);
