// SPDX-License-Identifier: MIT
// Functions that handlers meet: each has a number from then on, by which a frame word names it.
//
// Model: a table of the hook's, which only grows, has what a function is called, by number; slots lead there by hash.
// A function is written whole before its number stands in a slot, and never changes. Two threads may make one each.
//   Writers and readers: handlers of any threads; the collector reads by the words of samples.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    GP_MET_FUNCTIONS = 1 << 16,
    GP_MET_SLOTS = 2 * GP_MET_FUNCTIONS,
    GP_MET_PROBES = 16,
    GP_MET_NUMBER_BITS = 20, // of a frame word; the hook's own bits are above
};

typedef struct gp_met {
    _Atomic uint32_t count;               // of functions; the first is not used
    _Atomic uint32_t slots[GP_MET_SLOTS]; // their numbers, 0 = free
} gp_met_t;

// Is the function with this number the wanted one? Or: write the wanted one there; false: it cannot be read.
typedef bool gp_met_call_t(void *wanted, uint32_t number);

// A frame word's number of a function, 0 = one that could not be read.
static inline uint32_t gp_met_word_number(uintptr_t word)
{
    return (uint32_t)(word & ((1u << GP_MET_NUMBER_BITS) - 1));
}

// Returns the number of a new function, 0 = there is no room, or it cannot be read.
static inline uint32_t gp_met_make(gp_met_t *met, void *wanted, gp_met_call_t *write)
{
    uint32_t number = atomic_fetch_add_explicit(&met->count, 1, memory_order_relaxed) + 1, behind = number;
    if (number < GP_MET_FUNCTIONS && write(wanted, number))
        return number;
    // Give it back, unless another thread has taken the next one.
    atomic_compare_exchange_strong_explicit(&met->count, &behind, number - 1, memory_order_relaxed,
                                            memory_order_relaxed);
    return 0;
}

// The number of a function, 0 = there is no room, or it cannot be read. Signals: safe. Cost: ~5 ns where it was met.
static inline uint32_t gp_met_number(gp_met_t *met, uint64_t hash, void *wanted, gp_met_call_t *is,
                                     gp_met_call_t *write)
{
    uint32_t number = 0;
    for (uint32_t i = 0; i < GP_MET_PROBES; i++) {
        _Atomic uint32_t *slot = &met->slots[((hash >> 40) + i) % GP_MET_SLOTS];
        // Acquire: partner of the release below.
        uint32_t there = atomic_load_explicit(slot, memory_order_acquire);
        if (there != 0 && is(wanted, there))
            return there;
        if (there != 0)
            continue;
        if (number == 0 && (number = gp_met_make(met, wanted, write)) == 0)
            return 0;
        if (atomic_compare_exchange_strong_explicit(slot, &there, number, memory_order_release, memory_order_relaxed))
            break;
    }
    return number;
}
