// SPDX-License-Identifier: MIT
// The table of leaf rows.
#include "unwind/leaf_rows.h"

enum { NEAR = 8 }; // blocks on either side that are stored at once: a handler's work is bounded

_Alignas(64) _Atomic uint64_t gp_leaf_rows[GP_LEAF_SLOTS];

static void store(uint64_t hash, gp_packed_row_t row, unsigned epoch)
{
    _Atomic uint64_t *slot = &gp_leaf_rows[gp_cache_bucket(hash)];
    uint64_t word = gp_cache_untag(row, hash);
    // As in gp_cache_store(): either the flush sees this word, or this sees the flush's epoch.
    atomic_store_explicit(slot, word, memory_order_seq_cst);
    if (gp_cache_epoch() != epoch)
        atomic_compare_exchange_strong_explicit(slot, &word, 0, memory_order_relaxed, memory_order_relaxed);
}

// The blocks of one size, whole ones only. Returns whether `pc` is in one of them.
static bool store_blocks(uintptr_t pc, uintptr_t lo, uintptr_t hi, unsigned shift, gp_packed_row_t row, unsigned epoch)
{
    uintptr_t first = (lo + ((uintptr_t)1 << shift) - 1) >> shift, end = hi >> shift, middle = pc >> shift;
    bool within = middle >= first && middle < end;
    first = first + NEAR < middle ? middle - NEAR : first;
    end = end > middle + NEAR ? middle + NEAR : end;
    for (uintptr_t block = first; block < end; block++)
        store(gp_leaf_hash(block << shift, shift), row, epoch);
    return within;
}

void gp_leaf_store(uintptr_t pc, uintptr_t lo, uintptr_t hi, gp_packed_row_t row, unsigned epoch)
{
    if (!store_blocks(pc, lo, hi, GP_LEAF_LARGE_SHIFT, row, epoch))
        store_blocks(pc, lo, hi, GP_LEAF_SMALL_SHIFT, row, epoch);
}

void gp_leaf_flush(void)
{
    for (uint32_t at = 0; at < GP_LEAF_SLOTS; at++)
        if (atomic_load_explicit(&gp_leaf_rows[at], memory_order_seq_cst) != 0)
            atomic_store_explicit(&gp_leaf_rows[at], 0, memory_order_seq_cst);
}
