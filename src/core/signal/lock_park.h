// SPDX-License-Identifier: MIT
// Waits of coroutines for locks of their own: a coroutine parks until another one gives the lock.
//
// Model: before its hook lets a coroutine park for a lock it leaves a function with it, which tells the words of that
// wait (collect/lock_words.h) when the wait is over, or while it goes on. The parked part of such a wait, up to when
// the coroutine could go on, counts in the ledger as if the coroutine had slept for the lock on its thread: one state
// has both.
#pragma once

#include "signal/thread_parts.h"

// Words of its wait in [since, now): see gp_coro_lock_t. Returns 0 where it waits for no lock. Threads: any; whether it
// was left alone meanwhile is for the caller to find out. Signals: safe.
static inline size_t gp_lock_park_words(prof_coro_t *coro, uint64_t since, uint64_t now, bool is_over,
                                        uintptr_t words[GP_LOCK_WORDS])
{
    // Acquire: partner of the release by its hook; the other fields are of this wait.
    size_t (*tell)(prof_coro_t *, uint64_t, uint64_t, bool, uintptr_t *) =
        atomic_load_explicit(&gp_coro_rare(coro)->lock.tell, memory_order_acquire);
    return tell != NULL ? tell(coro, since, now, is_over, words) : 0;
}

// The coroutine waits for none any more. In a forked child no lock has waiters that were there before.
static inline void gp_lock_park_end(gp_coro_lock_t *lock)
{
    atomic_store_explicit(&lock->tell, NULL, memory_order_relaxed);
    if (atomic_load_explicit(lock->waiters, memory_order_relaxed) != 0)
        atomic_fetch_sub_explicit(lock->waiters, 1, memory_order_relaxed);
}
