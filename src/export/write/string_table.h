// SPDX-License-Identifier: MIT
// Texts by number, for formats that refer to texts: number 0 is "".
// Threads: one at a time. Signals: not safe.
#pragma once

#include "base/index.h"
#include "base/memory.h"

typedef struct gp_string_table { // zero-initialized = empty
    const char **texts;
    size_t count, capacity;
    gp_index_t index;
    gp_arena_t arena;
    bool failed; // memory was short; what is returned from then on is 0
} gp_string_table_t;

// Find or add a text; it is copied as it is. Returns its number.
uint32_t gp_string_table_number(gp_string_table_t *table, const char *text);

void gp_string_table_free(gp_string_table_t *table);
