// SPDX-License-Identifier: MIT
// The row cache: packed rows by program counter, for all threads and handlers of the process.
//
// Model: 16384 buckets of four slots, one cache line each. The key (48 bits of pc and kind) is multiplied by an odd
// constant, which loses nothing: the product's top 14 bits choose the bucket, the other 34 are the tag. Tag and row
// share one 64-bit word, so a reader sees either a whole row or none of it.
//
// Where one row holds for an aligned block of code, all interrupted program counters in it share a slot: a leaf is
// interrupted anywhere. Return addresses, being few, have a slot each.
//
// A slot's other half is not covered by that word. `next` guesses the slot of the caller's row; a wrong guess costs a
// bucket search, never a wrong row, for the guessed slot's tag and bucket are compared. `module` matters for volatile
// rows only; it is stored between word = 0 and word = row, and read between two equal reads of `word`. Should two
// writers still mix a row with another one's module, gp_module_check() refuses it unless both lie in the same load of
// the same module, where the row is right anyway.
//
// Producers and consumers: any thread, handlers included. Nothing is ever freed; a full bucket forgets one row.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "unwind/arch.h"
#include "unwind/packed_row.h"

enum {
    GP_CACHE_WAYS = 4,
    GP_CACHE_BUCKET_BITS = 14,
    GP_CACHE_BUCKETS = 1 << GP_CACHE_BUCKET_BITS,
    GP_CACHE_SLOTS = GP_CACHE_BUCKETS * GP_CACHE_WAYS,
    GP_CACHE_BLOCK = 32, // bytes of code; a power of two
};

typedef struct gp_cache_slot {
    _Atomic uint64_t word;   // tag in the upper 34 bits, packed row in the lower 30
    _Atomic uint32_t next;   // number of the slot that held the caller's row the last time
    _Atomic uint32_t module; // descriptor number, for volatile rows
} gp_cache_slot_t;

// 1 MiB of zero pages, touched as rows arrive. Slot number GP_CACHE_SLOTS holds no row, ever: it
// stands in for "not cached" so that the hint of the previous slot can be read without a branch.
extern __attribute__((visibility("hidden"))) gp_cache_slot_t gp_row_cache[GP_CACHE_SLOTS + 1];

// The hashed key: bucket in bits 50-63, tag in bits 16-49, zeros below.
static inline uint64_t gp_cache_hash(uint64_t key)
{
    return (key << 16) * 0x9e3779b97f4bu; // 2^48 divided by the golden ratio, odd
}

// The hash of an interrupted pc or a return address, by itself.
static inline uint64_t gp_cache_hash_of(uintptr_t pc, bool is_return)
{
    return gp_cache_hash(gp_arch_key(pc - is_return, is_return));
}

// The hash of all interrupted program counters in the block of `pc`.
static inline uint64_t gp_cache_hash_of_block(uintptr_t pc)
{
    return gp_cache_hash(gp_arch_block_key(pc | (GP_CACHE_BLOCK - 1)));
}

static inline uint32_t gp_cache_bucket(uint64_t hash)
{
    return (uint32_t)(hash >> (64 - GP_CACHE_BUCKET_BITS));
}

// The slot's word with the tag taken off: the packed row, or more than 30 bits where the tag differs.
static inline uint64_t gp_cache_untag(uint64_t word, uint64_t hash)
{
    return word ^ (hash << GP_CACHE_BUCKET_BITS);
}

// Does slot number `at`, with the word `word`, hold the row of `hash`? An empty slot may say yes with row 0.
static inline bool gp_cache_matches(uint32_t at, uint64_t word, uint64_t hash)
{
    return gp_cache_untag(word, hash) >> GP_ROW_BITS == 0 && at / GP_CACHE_WAYS == gp_cache_bucket(hash);
}

// Find the row of `hash` in its bucket. Returns the slot's number, or GP_CACHE_SLOTS. `*row` may be
// stale where it is volatile: see gp_cache_module().
uint32_t gp_cache_find(uint64_t hash, gp_packed_row_t *row);

// The module of the volatile row `row` found in slot `at`, or UINT32_MAX when the slot has changed since.
uint32_t gp_cache_module(uint32_t at, uint64_t hash, gp_packed_row_t row);

// Store a row. `epoch` is gp_cache_epoch() from before the row was computed: rows that were
// overtaken by a flush are not kept. Returns the slot's number.
uint32_t gp_cache_store(uint64_t hash, gp_packed_row_t row, uint32_t module, unsigned epoch);

unsigned gp_cache_epoch(void);

// Forget every row. Signals: safe, walks may go on meanwhile.
void gp_cache_flush(void);
