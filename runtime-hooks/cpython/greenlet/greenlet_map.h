// SPDX-License-Identifier: MIT
// Records of live greenlets, and of asyncio's tasks, by the address of the object.
//
// Model: the holder of the interpreter lock alone changes the table. A handler looks as well, on any thread and without
// the lock: one pointer is published for a table, a record is written between two steps of `version` (odd: it is just
// being written), and a table that has been outgrown is kept. All those that are kept are as large as the last.
//
// Caller holds the interpreter lock, where nothing else is said.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "signal/coro_record.h"
#include "signal/language.h"

typedef struct gp_greenlet {
    const void *greenlet; // or task; NULL = free slot
    prof_coro_t *coro;
    uint64_t coro_id;
    const void *object; // shown as running by watchers: itself, or the call or task that it runs
} gp_greenlet_t;

typedef struct gp_greenlet_table {     // open addressing, at most half full; greenlet_map.c alone changes it
    struct gp_greenlet_table *smaller; // outgrown, never freed
    size_t mask;
    gp_greenlet_t slots[]; // [mask + 1]
} gp_greenlet_table_t;

// NULL = nothing has been put yet. Acquire to read without the lock: pairs with grow().
extern gp_greenlet_table_t *_Atomic gp_greenlet_table;
extern _Atomic uint32_t gp_greenlet_version;

// Where the search for a greenlet begins.
static inline size_t gp_greenlet_home(const gp_greenlet_table_t *table, const void *greenlet)
{
    return (size_t)(((uintptr_t)greenlet * 0x9e3779b97f4a7c15ull) >> 32) & table->mask;
}

// The record of the greenlet that runs on the calling thread, without the lock. Returns 1, 0 = it is not known, or
// -EAGAIN = the table is just being changed. Signals: safe, bounded work. Synchronizes with gp_greenlet_put() and
// gp_greenlet_take().
int gp_greenlet_read(const void *greenlet, gp_greenlet_t *record);

// A handler's sources of which greenlet runs.
typedef struct gp_greenlet_here {
    gp_language_place_of_running_t
        state;        // where greenlet keeps the address of its state of this thread: main, current, ...
    const void *last; // the greenlet of the last switch that was reported
    uint32_t epoch;   // sampling epoch in which the running greenlet is known, where switches are seen
} gp_greenlet_here_t;

extern __thread gp_greenlet_here_t gp_greenlet_here __attribute__((tls_model("initial-exec")));

// The main greenlet of the calling thread; NULL = not known. Signals: safe.
static inline const void *gp_greenlet_main(void)
{
    return gp_language_running(gp_greenlet_here.state) != NULL ? (*gp_greenlet_here.state)[0] : NULL;
}

// The coroutine that runs on the calling thread, where the switch to it has not been reported yet; NULL = the one that
// was reported last, and `*id` is left alone. Signals: safe. Cost: two loads.
prof_coro_t *gp_greenlet_unreported(uint64_t *id);

// NULL = not known. Valid until the next change.
gp_greenlet_t *gp_greenlet_find(const void *greenlet);

// The same, for a greenlet that is mostly where its search begins.
static inline const gp_greenlet_t *gp_greenlet_find_fast(const void *greenlet)
{
    gp_greenlet_table_t *table = atomic_load_explicit(&gp_greenlet_table, memory_order_relaxed);
    const gp_greenlet_t *slot = table != NULL ? &table->slots[gp_greenlet_home(table, greenlet)] : NULL;
    return __builtin_expect(slot != NULL && slot->greenlet == greenlet, 1) ? slot : gp_greenlet_find(greenlet);
}

// Add, or give another record. Does nothing when memory is short.
void gp_greenlet_put(const gp_greenlet_t *record);

// Take it off and return its record, NULL when it has none.
prof_coro_t *gp_greenlet_take(const void *greenlet);
