// SPDX-License-Identifier: MIT
// The numbers of a capture, made unique among several that are read as one.
//
// Model: coroutines, threads and the functions of exact mode are numbered on from those of the captures before. Traces,
// modules, functions and stacks are told by their content: a table of each is common to all captures, and each capture
// has a map into it. A reference that comes before its definition gets a number, which stays undefined where a damaged
// chunk had the definition.
#pragma once

#include <stdbool.h>

#include "base/index.h"
#include "capture/format.h"

typedef enum gp_common {
    GP_COMMON_TRACES,
    GP_COMMON_MODULES,
    GP_COMMON_FUNCTIONS,
    GP_COMMON_STACKS,
    GP_COMMONS
} gp_common_t;
typedef enum gp_counted { GP_COUNTED_COROS, GP_COUNTED_THREADS, GP_COUNTED_CALLED, GP_COUNTEDS } gp_counted_t;

typedef struct gp_common_key { // identity: a hash of the content, or a trace's id
    uint64_t words[2];
} gp_common_key_t;

typedef struct gp_common_table { // the first one has number 1
    gp_common_key_t *keys;
    size_t count, capacity;
    gp_index_t index;
} gp_common_table_t;

typedef struct gp_common_map { // number in a capture -> common number, 0 = not seen
    uint32_t *numbers;
    size_t size;
} gp_common_map_t;

typedef struct gp_captures_ids { // zero-initialized = empty
    gp_common_table_t tables[GP_COMMONS];
    uint64_t last[GP_COUNTEDS]; // the largest number given out
} gp_captures_ids_t;

typedef struct gp_capture_ids { // of one capture; zero-initialized but for `first`
    gp_common_map_t maps[GP_COMMONS];
    uint64_t first[GP_COUNTEDS], last[GP_COUNTEDS]; // added to its numbers; the largest sum
} gp_capture_ids_t;

// The number of what the capture defines as `number`, which is new to all captures or not. Returns 0 when memory or
// numbers are short.
uint32_t gp_common_define(gp_captures_ids_t *all, gp_capture_ids_t *ids, gp_common_t kind, uint32_t number,
                          gp_common_key_t key, bool *is_new);

// The number of what the capture refers to as `number`; 0 for 0. Returns 0 also when memory is short.
uint32_t gp_common_find(gp_captures_ids_t *all, gp_capture_ids_t *ids, gp_common_t kind, uint32_t number);

// The same for a location.
gp_loc_t gp_common_loc(gp_captures_ids_t *all, gp_capture_ids_t *ids, gp_loc_t loc);

// The number of a coroutine, a thread or a function of exact mode; 0 for 0.
static inline uint64_t gp_counted_on(gp_capture_ids_t *ids, gp_counted_t kind, uint64_t number)
{
    if (number == 0)
        return 0;
    number += ids->first[kind];
    if (number > ids->last[kind])
        ids->last[kind] = number;
    return number;
}

void gp_captures_ids_free(gp_captures_ids_t *all);
void gp_capture_ids_free(gp_capture_ids_t *ids);
