// SPDX-License-Identifier: MIT
// Where the frames of a language runtime were last found, by frame word: for those who read words that a process which
// is gone has left. A word that shares its slot with a later one is not in the table any more.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "model/location.h"

enum { GP_FRAME_TABLE_LOG2 = 13, GP_FRAME_TABLE_SLOTS = 1 << GP_FRAME_TABLE_LOG2 };

typedef struct gp_frame_place {
    uint64_t word; // 0 = none, or it is being changed
    gp_loc_t loc;
} gp_frame_place_t;

static inline gp_frame_place_t *gp_frame_table_slot(gp_frame_place_t *table, uint64_t word)
{
    return &table[(word * 0x9e3779b97f4a7c15ull) >> (64 - GP_FRAME_TABLE_LOG2)];
}

// Threads: one. The table may be a file's, read after the process was killed: it sees stores in their order.
static inline void gp_frame_table_note(gp_frame_place_t *table, uint64_t word, gp_loc_t loc)
{
    gp_frame_place_t *place = gp_frame_table_slot(table, word);
    if (place->word == word && place->loc == loc)
        return;
    *(volatile uint64_t *)&place->word = 0;
    *(volatile gp_loc_t *)&place->loc = loc;
    *(volatile uint64_t *)&place->word = word;
}
