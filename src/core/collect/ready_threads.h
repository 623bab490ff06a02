// SPDX-License-Identifier: MIT
// Threads for the collector to visit: those with news (gp_thread_notify()), and those that may sleep with a
// coroutine on them. All others are passed by, so work is for running threads only, however many there are.
//
// Caller holds the drain lock everywhere.
#pragma once

#include "signal/thread.h"

typedef struct gp_thread_set { // a bit per slot
    uint64_t words[GP_THREADS_MAX / 64];
} gp_thread_set_t;

// With news that the collector has not looked at yet; to be looked at every few milliseconds.
extern gp_thread_set_t gp_ready_threads, gp_ready_threads_lookers;

// Add what has been told since the last call to both sets. Before what is told of is looked at: what is told from here
// on is for the next call.
void gp_ready_threads_take(void);

// The first member at `*slot` or behind it, which is moved behind that member; NULL = there is none. Begin with 0.
// Cost: ~1 ns per 64 threads that the process had at a time.
gp_thread_t *gp_thread_set_next(const gp_thread_set_t *set, uint32_t *slot);

// All live threads are to be looked at, and those that begin from now on.
void gp_ready_threads_look_at_all(void);

void gp_thread_set_remove(gp_thread_set_t *set, const gp_thread_t *thread);

// Take what has been told. Is there no thread to be looked at then? News told at once wakes the collector up from here
// on, until gp_ready_threads_wake(); `for_long`: whatever is told does.
bool gp_ready_threads_doze(bool for_long);
void gp_ready_threads_wake(void);

// In a forked child.
void gp_ready_threads_forget(void);
