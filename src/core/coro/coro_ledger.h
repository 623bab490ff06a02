// SPDX-License-Identifier: MIT
// Reading the ledger that src/core/signal/edge.h keeps: where a coroutine's time went, up to any moment.
//
// Threads: any; the parts of one reading may be a switch apart where the coroutine runs meanwhile. Signals: safe.
#pragma once

#include <stdbool.h>

#include "signal/coro_record.h"

// A new record: it waits from `now` (ticks) on.
void gp_ledger_begin(prof_coro_t *coro, uint64_t now);

// Up to `now` (ticks), the slice or wait in progress included. An open wait without prof_coro_ready() counts as parked
// if this coroutine has ever been reported ready, otherwise as waiting; later readings may know better. A thread's own
// stack waits while its coroutines run: that is their time, and not counted again.
void gp_ledger_read(prof_coro_t *coro, uint64_t now, gp_ledger_t *ledger);

// Without a wait in progress: changes only when the coroutine is switched.
void gp_ledger_read_closed(prof_coro_t *coro, uint64_t now, gp_ledger_t *ledger);

// Hand a ledger out, as far as out->size goes. Returns 0 or -EINVAL.
int gp_ledger_give(const gp_ledger_t *ledger, prof_ledger_t *out);

// Longest slice since it came into its scope, ns, up to `now`.
uint64_t gp_ledger_longest_since_entry(prof_coro_t *coro, uint64_t now);
