// SPDX-License-Identifier: MIT
// The registry of coroutines: creates, retires and recycles their records.
#pragma once

#include <stdbool.h>

#include "coro/lock.h"
#include "signal/coro_record.h"
#include "signal/language.h"
#include "signal/thread.h"

typedef struct gp_coro_birth { // what a new coroutine starts with
    uintptr_t lo, hi;          // its stack; equal: none of its own
    uint32_t kind;             // enum gp_coro_kind
    bool keeps_stack;          // the stack is there until the record is retired
    bool shares_stack;         // see prof_coro_create_shared()
    uintptr_t entry;           // 0 = unknown
    uintptr_t object;          // of its language, 0 = none
    const char *name;          // NULL = none
    prof_coro_t *spawner;      // source of trace and scope, NULL = none
    uint64_t parent_id;        // another one than the spawner that it is a child of; 0 = the spawner's
    uint32_t spawn_site;       // where, see spawn.h; 0 = not known
    uint32_t pool;             // of a call handed to one, see pools.h; 0 = none
    uint32_t region_kind;      // enum gp_region_kind bits, of GP_CORO_FOUND
} gp_coro_birth_t;

// Make a live record. Regions of the same size class that it overlaps are retired. Returns NULL when memory is short.
prof_coro_t *gp_coro_new(const gp_coro_birth_t *birth);

// At rest: the live record of exactly this region, of a coroutine of which nothing but its birth is known, becomes the
// new one. Its birth stays, which is before all that is recorded. NULL: there is none, or something is to be kept.
prof_coro_t *gp_coro_renew(const gp_coro_birth_t *birth);

// A live record of exactly this region on which nothing has run yet: it is given the entry function and kept. NULL:
// none.
prof_coro_t *gp_coro_adopt(uintptr_t lo, uintptr_t hi, uintptr_t entry);

// The coroutine is over, or is as soon as it is switched away from; its record stays until its stack is used again.
// Cost: ~1 ns. Signals: safe.
void gp_coro_ends(prof_coro_t *coro, uint64_t id);

// A coroutine that runs goes back to its pool: it is in no profile's scope any more, and idle once it is switched away
// from. Takes the registry's lock.
void gp_coro_idles(prof_coro_t *coro);

// Take back the last wait of a coroutine that was over, as shows only now, when it was last switched away from: from
// its ledger, the census and the capture.
void gp_coro_forsake(prof_coro_t *coro, uint64_t id);

// The same, and its record is retired. The owner of its stack, or what else names it, is not to do so any more.
void gp_coro_abandon(prof_coro_t *coro, uint64_t id);

// A stack without an announcement, a thread's or one that was found, reaches down to `lo`.
void gp_coro_grow(prof_coro_t *coro, uint64_t id, uintptr_t lo);

// Retire a record; no-op on NULL and on records that are not live.
void gp_coro_retire(prof_coro_t *coro);

// Take all retired records off the registry; they stay readable until gp_coro_recycle(). Collector only.
prof_coro_t *gp_coro_take_retired(void);
prof_coro_t *gp_coro_next_retired(const prof_coro_t *coro);
void gp_coro_recycle(prof_coro_t *list);

// Call `visit` for every live record. Collector only (records may be retired meanwhile, none is recycled).
void gp_coro_each(void (*visit)(prof_coro_t *coro, void *argument), void *argument);

// The same in pieces, between which the drain lock may be given back: one that begins meanwhile may be left out.
typedef struct gp_coro_cursor { // all zero: at the beginning
    uint32_t left;              // chunks
    bool has_begun;
} gp_coro_cursor_t;

// Visit the next up to GP_CORO_PIECE live records. Returns whether there are more.
bool gp_coro_piece(gp_coro_cursor_t *cursor, void (*visit)(prof_coro_t *coro, void *argument), void *argument);

// Add the ledgers of all coroutines that were retired, and of all live ones, up to `now` (ticks). Takes the registry's
// lock. Cost: O(records).
void gp_coro_total(uint64_t now, gp_ledger_t *sum);

// While the collector rests nothing is drained: retired records are recycled at once.
// `sampling`: asked under the registry's lock whether samples may be on their way; NULL = they may.
void gp_coro_set_draining(int (*sampling)(void));
