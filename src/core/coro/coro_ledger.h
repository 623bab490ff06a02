// SPDX-License-Identifier: MIT
// Reading the ledger that src/core/signal/ledger_edges.h keeps: where a coroutine's time went, up to any moment.
//
// Threads: any; the parts of one reading may be a switch apart where the coroutine runs meanwhile. Signals: safe.
#pragma once

#include <stdbool.h>

#include "signal/ledger_edges.h"

// A new record: it waits from `now` (ticks) on.
void gp_ledger_begin(prof_coro_t *coro, uint64_t now);

// Up to `now` (ticks), the slice or wait in progress included. An open wait without prof_coro_ready() counts as parked
// if this coroutine has ever been reported ready, otherwise as waiting; later readings may know better. A thread's own
// stack waits while its coroutines run: that is their time, and not counted again.
void gp_ledger_read(prof_coro_t *coro, uint64_t now, gp_ledger_t *ledger);

// Without a wait in progress: changes only when the coroutine is switched.
void gp_ledger_read_closed(prof_coro_t *coro, uint64_t now, gp_ledger_t *ledger);

// Raw words of a reading, for later: a reading hardly ever wanted costs a few loads.
typedef struct gp_ledger_words {
    uint64_t since, begun, slice_ticks, off_ns, ready_known_ticks, ready_wait_ticks, switches; // as in prof_coro_t
    uint64_t blocked_ns, polled_slice_ns, gil_ns, lock_ns;                                     // as beside it
} gp_ledger_words_t;

static inline void gp_ledger_read_words(prof_coro_t *coro, gp_ledger_words_t *words)
{
    *words = (gp_ledger_words_t){
        .since = gp_ledger_edge_load(&coro->since),
        .begun = gp_ledger_edge_load(&coro->begun),
        .slice_ticks = gp_ledger_edge_load(&coro->slice_ticks),
        .off_ns = gp_ledger_edge_load(&coro->off_ns),
        .ready_known_ticks = gp_ledger_edge_load(&coro->ready_known_ticks),
        .ready_wait_ticks = gp_ledger_edge_load(&coro->ready_wait_ticks),
        .switches = gp_ledger_edge_load(&coro->switches),
        .blocked_ns = gp_ledger_edge_load(gp_coro_blocked_ns(coro)),
        .polled_slice_ns = gp_ledger_edge_load(&gp_coro_rare(coro)->polled_slice_ns),
        .gil_ns = gp_ledger_edge_load(gp_coro_gil_ns(coro)),
        .lock_ns = gp_ledger_edge_load(gp_coro_lock_ns(coro)),
    };
}

// The ledger as of `ticks`, for a coroutine that ran when its words were read, in an open epoch; as if on the CPU since
// its account was settled. Without `longest_ns` and `spawned`.
void gp_ledger_of_words(const prof_coro_t *coro, const gp_ledger_words_t *words, uint64_t ticks, gp_ledger_t *ledger);

// Were both read in one slice of a coroutine?
static inline bool gp_ledger_is_one_slice(const gp_ledger_words_t *before, const gp_ledger_words_t *after)
{
    return before->since == after->since && before->begun == after->begun && before->slice_ticks == after->slice_ticks;
}

// Hand a ledger out, as far as out->size goes. Returns 0 or -EINVAL.
int gp_ledger_give(const gp_ledger_t *ledger, prof_ledger_t *out);

// Longest slice since it came into its scope, ns, up to `now`.
uint64_t gp_ledger_longest_since_entry(prof_coro_t *coro, uint64_t now);
