// SPDX-License-Identifier: MIT
// Numbers of one capture to those of the merged one.
//
// Model: coroutines, threads and the functions of exact mode are moved behind those of the captures before. Traces,
// modules, functions and stacks are told by what they are: the merged capture's table of each is kept, and each input
// has a map into it. What an input refers to before it defines it gets a number; where the definition was lost with a
// damaged chunk, that number stays undefined.
#ifndef GP_TOOLS_MERGE_IDS_H
#define GP_TOOLS_MERGE_IDS_H

#include <stdbool.h>

#include "base/index.h"
#include "capture/format.h"

typedef struct gp_merge_map { // number in an input -> number in the merged capture, 0 = not seen
    uint32_t *numbers;
    size_t size;
} gp_merge_map_t;

typedef struct gp_merge_key { // what something is: a hash of its content, or a trace's id
    uint64_t words[2];
} gp_merge_key_t;

typedef struct gp_merge_table { // of the merged capture; the first one has number 1
    gp_merge_key_t *keys;
    size_t count, capacity;
    gp_index_t index;
} gp_merge_table_t;

typedef enum gp_merge_kind {
    GP_MERGE_TRACES,
    GP_MERGE_MODULES,
    GP_MERGE_FUNCTIONS,
    GP_MERGE_STACKS,
    GP_MERGE_KINDS,
} gp_merge_kind_t;

typedef struct gp_merge_ids {
    gp_merge_table_t tables[GP_MERGE_KINDS];
    gp_merge_map_t maps[GP_MERGE_KINDS]; // of the current input
    uint64_t coro_base, coro_last;       // added to its coroutines' ids; the largest id given out
    uint32_t thread_base, thread_last;
    uint32_t called_base, called_last; // functions of exact mode
} gp_merge_ids_t;

// Forget the maps of the input before; what follows is of the next one.
void gp_merge_ids_next(gp_merge_ids_t *ids);

// The number of what the input defines as `number`, which is new in the merged capture or not.
// Returns 0 when memory or numbers are short.
uint32_t gp_merge_ids_define(gp_merge_ids_t *ids, gp_merge_kind_t kind, uint32_t number, gp_merge_key_t key,
                             bool *is_new);

// The number of what the input refers to as `number`; 0 for 0. Returns 0 also when memory is short.
uint32_t gp_merge_ids_find(gp_merge_ids_t *ids, gp_merge_kind_t kind, uint32_t number);

uint64_t gp_merge_ids_coro(gp_merge_ids_t *ids, uint64_t id);
uint32_t gp_merge_ids_thread(gp_merge_ids_t *ids, uint32_t index);
uint32_t gp_merge_ids_called(gp_merge_ids_t *ids, uint32_t number);
gp_loc_t gp_merge_ids_loc(gp_merge_ids_t *ids, gp_loc_t loc);

void gp_merge_ids_free(gp_merge_ids_t *ids);

#endif
