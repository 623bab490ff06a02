// SPDX-License-Identifier: MIT
// The shared, lock-free table of packed rows.
#include "unwind/row_cache.h"

_Alignas(64) gp_cache_slot_t gp_row_cache[GP_CACHE_SLOTS + 1];

static _Atomic unsigned epoch_now;
static _Atomic unsigned victim_clock;

uint32_t gp_cache_find(uint64_t hash, gp_packed_row_t *row)
{
    uint32_t first = gp_cache_bucket(hash) * GP_CACHE_WAYS;
    for (uint32_t at = first; at < first + GP_CACHE_WAYS; at++) {
        // Acquire: pairs with gp_cache_store()'s release, for gp_cache_module().
        uint64_t word = atomic_load_explicit(&gp_row_cache[at].word, memory_order_acquire);
        uint64_t rest = gp_cache_untag(word, hash);
        if (rest != 0 && rest >> GP_ROW_BITS == 0) {
            *row = (gp_packed_row_t)rest;
            return at;
        }
    }
    return GP_CACHE_SLOTS;
}

uint32_t gp_cache_module(uint32_t at, uint64_t hash, gp_packed_row_t row)
{
    uint64_t want = gp_cache_untag(row, hash);
    gp_cache_slot_t *slot = &gp_row_cache[at];
    // Acquire: the module that is read next is not older than this word (pairs with gp_cache_store()).
    uint64_t before = atomic_load_explicit(&slot->word, memory_order_acquire);
    uint32_t module = atomic_load_explicit(&slot->module, memory_order_relaxed);
    // The second read must not move before the module's.
    atomic_thread_fence(memory_order_acquire);
    uint64_t after = atomic_load_explicit(&slot->word, memory_order_relaxed);
    return before == want && after == want ? module : UINT32_MAX;
}

static uint32_t row_cache_choose_slot(uint64_t hash)
{
    uint32_t first = gp_cache_bucket(hash) * GP_CACHE_WAYS;
    for (uint32_t at = first; at < first + GP_CACHE_WAYS; at++) {
        uint64_t word = atomic_load_explicit(&gp_row_cache[at].word, memory_order_relaxed);
        if (word == 0 || gp_cache_matches(at, word, hash))
            return at;
    }
    unsigned tick = atomic_fetch_add_explicit(&victim_clock, 1, memory_order_relaxed);
    return first + tick % GP_CACHE_WAYS;
}

uint32_t gp_cache_store(uint64_t hash, gp_packed_row_t row, uint32_t module, unsigned epoch)
{
    uint32_t at = row_cache_choose_slot(hash);
    gp_cache_slot_t *slot = &gp_row_cache[at];
    uint64_t word = gp_cache_untag(row, hash);
    atomic_store_explicit(&slot->word, 0, memory_order_relaxed);
    // Release: a reader that sees the new module sees the word gone (pairs with gp_cache_module()'s fence).
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&slot->module, module, memory_order_relaxed);
    // Release: pairs with the acquire loads of `word`. Sequentially consistent because of the
    // epoch: either the flush sees this word and clears it, or the load below sees the flush's new epoch.
    atomic_store_explicit(&slot->word, word, memory_order_seq_cst);
    if (atomic_load_explicit(&epoch_now, memory_order_seq_cst) != epoch)
        atomic_compare_exchange_strong_explicit(&slot->word, &word, 0, memory_order_relaxed, memory_order_relaxed);
    return at;
}

unsigned gp_cache_epoch(void)
{
    return atomic_load_explicit(&epoch_now, memory_order_acquire);
}

void gp_cache_flush(void)
{
    atomic_fetch_add_explicit(&epoch_now, 1, memory_order_seq_cst);
    for (uint32_t at = 0; at < GP_CACHE_SLOTS; at++)
        if (atomic_load_explicit(&gp_row_cache[at].word, memory_order_seq_cst) != 0)
            atomic_store_explicit(&gp_row_cache[at].word, 0, memory_order_seq_cst);
}
