// SPDX-License-Identifier: MIT
// What exact mode has counted: one record for every pair of caller and callee.
//
// A table belongs to one recorder and one thread's block; only that thread adds to it, so no locked instruction is
// needed, and its signal handlers, which add with single instructions as it does. Records never move. Producer: the
// thread. Consumers: whoever holds the lock of exact mode reads along; a counter is whole at any moment.
#ifndef GP_EXACT_EXACT_TABLE_H
#define GP_EXACT_EXACT_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "signal/thread.h"

struct gp_exact;

typedef struct gp_exact_record {
    uint64_t key; // GP_EXACT_KEY
    uint64_t calls;
    uint64_t nested;                  // of those, with the callee on the stack already
    uint64_t same_edge;               // of those, called by the same caller
    uint64_t own_cpu_ns, own_ticks;   // time in the callee itself; ticks: wall time
    uint64_t cpu_ns, ticks;           // and in all it called, of calls that were not nested
    uint64_t edge_cpu_ns, edge_ticks; // the same of nested calls that were not of the same edge
} gp_exact_record_t;

// Functions by number; caller 0 = nobody who was seen.
#define GP_EXACT_KEY(caller, callee) ((uint64_t)(caller) << 32 | (callee))
#define GP_EXACT_CALLER(key)         ((uint32_t)((key) >> 32))
#define GP_EXACT_CALLEE(key)         ((uint32_t)(key))

enum { GP_EXACT_CHUNK = 25, GP_EXACT_FIRST_SLOTS = 32 };

typedef struct gp_exact_chunk {
    struct gp_exact_chunk *next;
    uint32_t count; // records in use
    gp_exact_record_t records[GP_EXACT_CHUNK];
} gp_exact_chunk_t;

typedef struct gp_exact_index {   // open addressing, at most half full
    struct gp_exact_index *older; // kept: a lookup may have been interrupted in it
    uint32_t shift, mask;
    gp_exact_record_t *slots[];
} gp_exact_index_t;

typedef struct gp_exact_table {
    struct gp_exact_table *next; // of the same recorder
    gp_thread_t *thread;         // NULL: of no thread
    gp_exact_index_t *index;
    gp_exact_chunk_t *chunks; // latest first
    uint32_t count;
} gp_exact_table_t;

// Add to a counter so that the thread's own signal handlers may do so at any moment.
static inline void gp_exact_add(uint64_t *counter, uint64_t amount)
{
#if defined(__x86_64__)
    __asm__("addq %1, %0" : "+m"(*counter) : "er"(amount) : "cc");
#else
    __atomic_fetch_add(counter, amount, __ATOMIC_RELAXED);
#endif
}

static inline uint32_t gp_exact_slot(const gp_exact_index_t *index, uint64_t key)
{
    return (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> index->shift);
}

// The record of `key`, or NULL. The table's thread, or the lock's holder. Cost: ~3 ns.
static inline gp_exact_record_t *gp_exact_find(const gp_exact_table_t *table, uint64_t key)
{
    const gp_exact_index_t *index = table->index;
    for (uint32_t slot = gp_exact_slot(index, key);; slot = (slot + 1) & index->mask) {
        gp_exact_record_t *record = index->slots[slot];
        if (record == NULL || record->key == key)
            return record;
    }
}

// Below: caller holds the lock of exact mode.

// A blank table, or NULL.
gp_exact_table_t *gp_exact_table_new(gp_thread_t *thread);
void gp_exact_table_free(gp_exact_table_t *table); // NULL is accepted

// The record of `key`, made if need be; NULL when memory is short.
gp_exact_record_t *gp_exact_table_get(gp_exact_table_t *table, uint64_t key);

// Add all records of `from` to those of `to`. Returns false when memory is short.
bool gp_exact_table_sum(gp_exact_table_t *to, const gp_exact_table_t *from);

#endif
