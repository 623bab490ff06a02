// SPDX-License-Identifier: MIT
// A hash index over an array of the caller: finds the number of an element that has the wanted key.
//
// Model: the index holds (hash, element number) pairs; the keys stay in the caller's array, and a
// comparison function of the caller decides. Elements are never removed. Threads: one at a time.
// Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/prefetch.h"

typedef struct gp_index { // zero-initialized = empty
    uint64_t *slots;      // hash's upper 32 bits, element number + 1; 0 = empty
    size_t size;          // power of two, or 0
    size_t count;
} gp_index_t;

#define GP_INDEX_NONE UINT32_MAX

// Does element `number` have the key that `key` points to?
typedef bool (*gp_index_same_t)(const void *owner, uint32_t number, const void *key);

// Returns the element's number or GP_INDEX_NONE.
uint32_t gp_index_find(const gp_index_t *index, uint64_t hash, gp_index_same_t same, const void *owner,
                       const void *key);

// Have the memory ready where an element is or would be: for many that are going to be looked for.
static inline void gp_index_prefetch(const gp_index_t *index, uint64_t hash)
{
    if (index->size > 0)
        gp_prefetch(&index->slots[(size_t)(hash >> 32) & (index->size - 1)]);
}

// The number of the element that is found first, which may be another one; GP_INDEX_NONE where there is none.
static inline uint32_t gp_index_guess(const gp_index_t *index, uint64_t hash)
{
    return index->size > 0 ? (uint32_t)index->slots[(size_t)(hash >> 32) & (index->size - 1)] - 1 : GP_INDEX_NONE;
}

// Add element `number`, which must not be in it yet. Returns 0 or -ENOMEM.
int gp_index_add(gp_index_t *index, uint64_t hash, uint32_t number);

// Make room for `count` elements. Returns 0 or -ENOMEM.
int gp_index_reserve(gp_index_t *index, size_t count);

// Make it empty; its room is kept.
void gp_index_clear(gp_index_t *index);

void gp_index_free(gp_index_t *index);

uint64_t gp_hash_bytes(const void *bytes, size_t len);

// Source: the finalizer of MurmurHash3 (public domain, Austin Appleby).
static inline uint64_t gp_hash_u64(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ x >> 33;
}

static inline uint64_t gp_hash_more(uint64_t hash, uint64_t x)
{
    return gp_hash_u64(hash * 31 + x);
}
