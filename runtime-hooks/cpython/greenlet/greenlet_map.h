// SPDX-License-Identifier: MIT
// Records of live greenlets, and of asyncio's tasks, by the address of the object. Caller holds the interpreter lock; a
// handler may look as well where it has interrupted a thread that holds it.
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
    const void *object; // what watchers see as running: itself, or the call or task that it runs
} gp_greenlet_t;

typedef struct gp_greenlet_table { // open addressing, at most half full; greenlet_map.c alone changes it
    gp_greenlet_t *slots;
    size_t mask, used;
    _Atomic bool changing; // by the thread that the handler may have interrupted
} gp_greenlet_table_t;

extern gp_greenlet_table_t gp_greenlet_table;

// Where the search for a greenlet begins.
static inline size_t gp_greenlet_home(const void *greenlet)
{
    return (size_t)(((uintptr_t)greenlet * 0x9e3779b97f4a7c15ull) >> 32) & gp_greenlet_table.mask;
}

// The slot of a greenlet, or the free one where it belongs. Signals: safe while nothing changes.
size_t gp_greenlet_slot(const void *greenlet);

// What a handler reads to know which greenlet runs.
typedef struct gp_greenlet_here {
    gp_language_place_of_running_t
        state;          // where greenlet keeps the address of its state of this thread: main, current, ...
    const void *last;   // the greenlet of the last switch that was reported
    prof_coro_t *ended; // a greenlet's that is over, but still runs
    const void *next;   // the greenlet that is being switched to, and its record
    gp_greenlet_t next_record;
    uint32_t epoch; // sampling epoch in which the running greenlet is known, where switches are seen
} gp_greenlet_here_t;

extern __thread gp_greenlet_here_t gp_greenlet_here __attribute__((tls_model("initial-exec")));

// The coroutine that runs on the calling thread, where the switch to it has not been reported yet; NULL = the one that
// was reported last. Signals: safe. Cost: two loads.
prof_coro_t *gp_greenlet_unreported(uint64_t *id);

// NULL = not known. Valid until the next change.
gp_greenlet_t *gp_greenlet_find(const void *greenlet);

// Add, or give another record. Does nothing when memory is short.
void gp_greenlet_put(const gp_greenlet_t *record);

// Take it off and return its record, NULL when it has none.
prof_coro_t *gp_greenlet_take(const void *greenlet);
