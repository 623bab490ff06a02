// SPDX-License-Identifier: MIT
// Rows of interrupted program counters, by blocks of code.
//
// Model: most of a function's body has one row, so what was found for one program counter holds for those around it. A
// slot is one 64-bit word, tag and packed row, as in row_cache.h, and speaks for a whole block: 1 KiB or 64 bytes, each
// aligned to its size, all of it within the range of one row. Only simple rows, of modules that are never unloaded, are
// kept: no slot needs a second look. In front of the row cache for leaves alone: a return address is one of few.
//
// Producers and consumers: any thread, handlers included. Nothing is freed; a block takes the place of another one with
// its slot.
#pragma once

#include "unwind/row_cache.h"

enum {
    GP_LEAF_SMALL_SHIFT = 6,
    GP_LEAF_LARGE_SHIFT = 10,
    GP_LEAF_SLOTS = GP_CACHE_BUCKETS, // 128 KiB, touched as rows arrive
};

extern __attribute__((visibility("hidden"))) _Atomic uint64_t gp_leaf_rows[GP_LEAF_SLOTS];

// The hashed key of the block of `1 << shift` bytes with `pc`.
static inline uint64_t gp_leaf_hash(uintptr_t pc, unsigned shift)
{
    return gp_cache_hash((uint64_t)(pc >> shift) << 1 | (shift == GP_LEAF_LARGE_SHIFT));
}

static inline gp_packed_row_t gp_leaf_look(uint64_t hash)
{
    // Relaxed: the word is all there is.
    uint64_t word = atomic_load_explicit(&gp_leaf_rows[gp_cache_bucket(hash)], memory_order_relaxed);
    uint64_t rest = gp_cache_untag(word, hash);
    return rest >> GP_ROW_BITS == 0 ? (gp_packed_row_t)rest : 0;
}

// The row of the interrupted `pc`, 0 where none is known.
static inline gp_packed_row_t gp_leaf_find(uintptr_t pc)
{
    gp_packed_row_t row = gp_leaf_look(gp_leaf_hash(pc, GP_LEAF_LARGE_SHIFT));
    return row != 0 ? row : gp_leaf_look(gp_leaf_hash(pc, GP_LEAF_SMALL_SHIFT));
}

// Keep `row`, simple and of a module that stays, for the blocks near `pc` that lie in [lo, hi). `epoch`: as for
// gp_cache_store(). Signals: safe. Cost: at most 48 stores.
void gp_leaf_store(uintptr_t pc, uintptr_t lo, uintptr_t hi, gp_packed_row_t row, unsigned epoch);

// Forget every row. Of gp_cache_flush(), after its epoch.
void gp_leaf_flush(void);
