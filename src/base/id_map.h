// SPDX-License-Identifier: MIT
// Numbers by id, for ids that are small on the whole: an array, where an index would hash and compare.
//
// Model: ids far beyond the dense ones are not kept; a caller that needs them puts those into an index.
// Threads: one at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"

typedef struct gp_id_map { // zero-initialized = empty
    uint32_t *numbers;     // number plus 1 by id; 0 = none
    size_t size, count;
} gp_id_map_t;

// Returns the number or GP_INDEX_NONE.
static inline uint32_t gp_id_map_find(const gp_id_map_t *map, uint64_t id)
{
    return id < map->size ? map->numbers[id] - 1 : GP_INDEX_NONE; // 0 - 1 is GP_INDEX_NONE
}

// Keep a number if its id is not too far out, and memory is not short. Returns whether it is kept.
bool gp_id_map_add(gp_id_map_t *map, uint64_t id, uint32_t number);

void gp_id_map_free(gp_id_map_t *map);
