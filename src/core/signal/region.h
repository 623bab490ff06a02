// SPDX-License-Identifier: MIT
// Which coroutine's stack holds an address.
//
// Model: a stack region of 2^(k-1) < size <= 2^k bytes touches at most two aligned blocks of 2^k bytes, so it is linked
// into at most two buckets of one hash table, under the key (k, address >> k). A look-up probes one bucket for each
// class k in use (one to three in practice) and, where stale regions overlap, takes the youngest.
// Writers (src/core/coro/registry.c) are serialized by the registry's lock. Readers take no lock: records are
// type-stable, a reader that runs into a concurrent change sees the table's version move and tries again, at most
// GP_REGION_TRIES times.
#pragma once

#include "signal/coro_record.h"

enum {
    GP_REGION_BUCKETS_LOG2 = 20, // 4 MiB, of which a million coroutines in a row take all
    GP_REGION_MIN_CLASS = 10,    // smaller regions count as 1 KiB
    GP_REGION_CHAIN_MAX = 256,
    GP_REGION_TRIES = 4,
};

// The youngest live coroutine with a region that holds `address`, or NULL; its id is stored in *id.
// Threads: any. Signals: safe. Cost: ~10 ns a class in use.
prof_coro_t *gp_region_find(uintptr_t address, uint64_t *id);

// Changes with every change of the table; odd while a writer is at work. A find at an even value holds as long as the
// value is the same.
extern _Atomic uint64_t gp_region_version __attribute__((visibility("hidden")));

// Link and unlink a record with lo < hi. Caller holds the registry's lock. Cost: O(1).
void gp_region_insert(prof_coro_t *coro);
void gp_region_remove(prof_coro_t *coro);

// Give a linked record, complete but for it, another id. The same.
void gp_region_renew(prof_coro_t *coro, uint64_t id);

// A live record of the same size class that overlaps [lo, hi), or NULL. Caller holds the registry's lock.
prof_coro_t *gp_region_overlap(uintptr_t lo, uintptr_t hi);

// Is `address` in the region of `coro`, which still has this id? Signals: safe.
static inline int gp_region_holds(prof_coro_t *coro, uint64_t id, uintptr_t address)
{
    return address >= atomic_load_explicit(&coro->lo, memory_order_relaxed) &&
           address < atomic_load_explicit(&coro->hi, memory_order_relaxed) &&
           atomic_load_explicit(&coro->id, memory_order_acquire) == id;
}
