// SPDX-License-Identifier: MIT
// Waits for the lock of an interpreter (CPython's global one), which a thread needs to run its language's code.
//
// Model: a hook tells when the calling thread begins to wait and when it goes on. Each wait is added to the account of
// the coroutine that has the thread: the ledger is exact. Samples say where: waits add up until they are worth one,
// which has the time of all of them, and is taken as the last of these ends. A wait is a sleep of its thread as well;
// whoever looks at sleeps takes gp_gil_waited() off.
//
// Order of calls, by one thread: gp_gil_wait_begin(), gp_gil_wait_end(), and where a sample is due,
// gp_gil_wait_sample(). Threads: the waiting one, unless a declaration says otherwise. Signals: not safe.
#pragma once

#include "signal/ledger_edges.h"
#include "signal/thread.h"

// `now`: ticks, as everywhere in here. Cost: a store.
static inline void gp_gil_wait_begin(gp_thread_t *thread, uint64_t now)
{
    atomic_store_explicit(&thread->gil.since, now, memory_order_release);
}

typedef struct gp_gil_wait {
    uint64_t now, late; // of it, the thread could have gone on, had there been a processor
    uint32_t holder;    // index of the thread that had the lock meanwhile; 0 = not known
    bool goes_on;       // the thread woke up amid the wait
} gp_gil_wait_t;

// Returns whether a sample is due. Cost: ~10 ns.
bool gp_gil_wait_end(gp_thread_t *thread, const gp_gil_wait_t *wait);

// Take it.
//   frames: uintptr_t[depth] of words, innermost first.
void gp_gil_wait_sample(gp_thread_t *thread, uint64_t now, const uintptr_t *frames, size_t depth, unsigned flags);

// How long a thread has waited so far, ticks. Threads: any.
uint64_t gp_gil_waited(const gp_thread_t *thread, uint64_t now);

// How much longer than when that was asked before, ns; `*before` is set.
uint64_t gp_gil_waited_since(const gp_thread_t *thread, uint64_t now, uint64_t *before);

static inline bool gp_gil_is_waited_for(const gp_thread_t *thread)
{
    return atomic_load_explicit(&thread->gil.since, memory_order_relaxed) != 0;
}
