// SPDX-License-Identifier: MIT
// Rows of functions that were seen to run, put into the cache before a handler asks for them.
//
// Model: a handler computes the row of a leaf by running the function's program up to it, 1 to 10 us in a large
// function whose row begins late. A function interrupted once will be so again, elsewhere: its program is run once,
// from end to end, and each block of code with a single row gets this row.
#include <string.h>

#include "unwind/prepare_tables.h"
#include "unwind/resolve.h"
#include "unwind/row_cache.h"
#include "unwind/unwind.h"

enum {
    SEEN = 4096,       // functions, and blocks, that are remembered; a power of two
    BLOCKS_MAX = 4096, // of one function: a sixteenth of the cache
};

typedef struct preparation {
    unsigned epoch;
    unsigned room; // blocks
} preparation_t;

// Guarded by the caller. Forgetting one costs time alone.
static uintptr_t seen_blocks[SEEN], seen_functions[SEEN];
static unsigned seen_epoch;

// Note `key`. Was it noted before?
static bool prepare_rows_note(uintptr_t *seen, uintptr_t key)
{
    uintptr_t *at = &seen[key * 0x9e3779b97f4a7c15u >> 52];
    bool known = *at == key;
    *at = key;
    return known;
}

static bool prepare_rows_store_blocks(void *context, const gp_row_t *row)
{
    preparation_t *preparation = context;
    const uintptr_t block = GP_CACHE_BLOCK;
    gp_packed_row_t packed = row->cfa_is_expr ? 0 : gp_row_pack(row, row->lo);
    for (uintptr_t lo = (row->lo + block - 1) & ~(block - 1); packed != 0 && lo + block <= row->hi; lo += block) {
        if (preparation->room-- == 0)
            return false;
        if (!gp_entry_meets(lo, lo + block))
            gp_cache_store(gp_cache_hash_of_block(lo), packed, UINT32_MAX, preparation->epoch);
    }
    return true;
}

void gp_unwind_prepare_leaf(uintptr_t pc)
{
    preparation_t preparation = {.epoch = gp_cache_epoch(), .room = BLOCKS_MAX};
    gp_location_t where;
    gp_unwind_module_t module;
    gp_cfi_section_t section;
    gp_fde_t fde;
    if (preparation.epoch != seen_epoch) {
        memset(seen_blocks, 0, sizeof(seen_blocks));
        memset(seen_functions, 0, sizeof(seen_functions));
        seen_epoch = preparation.epoch;
    }
    // A module that may be unloaded is read only where its code runs at this moment: in the handler.
    if (prepare_rows_note(seen_blocks, pc / GP_CACHE_BLOCK) || !gp_addr_plausible(pc) ||
        !gp_module_locate(pc, &where) || !gp_module_is_fixed(where.link_map) ||
        gp_module_find(pc, &module) == GP_MODULE_NONE || !gp_fde_find(&module.eh, pc, &section, &fde) ||
        prepare_rows_note(seen_functions, fde.start))
        return;
    gp_row_table_want(&module);
    gp_cfi_each_row(&section, &fde, prepare_rows_store_blocks, &preparation);
}
