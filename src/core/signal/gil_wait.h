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

typedef struct gp_lock_stack {
    const uintptr_t *words, *frames; // [count] in front of [depth]
    size_t count, depth;
    unsigned flags;
} gp_lock_stack_t;

// Returns whether a sample is due. Cost: ~10 ns.
bool gp_gil_wait_end(gp_thread_t *thread, const gp_gil_wait_t *wait);

// Take it.
//   frames: uintptr_t[depth] of words, innermost first.
void gp_gil_wait_sample(gp_thread_t *thread, uint64_t now, const uintptr_t *frames, size_t depth, unsigned flags);

// How long a thread has waited so far, ticks. Threads: any.
uint64_t gp_gil_waited(const gp_thread_t *thread, uint64_t now);

// How much longer than when that was asked before, ns; `*before` is set.
uint64_t gp_gil_waited_since(const gp_thread_t *thread, uint64_t now, uint64_t *before);

// Does it wait for its interpreter's lock, or the program's?
static inline bool gp_gil_is_waited_for(const gp_thread_t *thread)
{
    return atomic_load_explicit(&thread->gil.since, memory_order_relaxed) != 0;
}

// --- locks of the program's: by the same account, but each wait is one sample of its own; so is what others tell of
// one that goes on.

// `words` are in thread->gil.lock. Cost: three stores.
static inline void gp_lock_wait_begin(gp_thread_t *thread, uint64_t now)
{
    atomic_store_explicit(&thread->gil.lock.told, now, memory_order_release);
    gp_gil_wait_begin(thread, now);
}

// The wait is over. Returns how much of it is to be told, ticks; 0 = none, or it was a wait for something else.
//   late: see gp_gil_wait_t. is_lock: it was one for a lock.
uint64_t gp_lock_wait_end(gp_thread_t *thread, uint64_t now, uint64_t late, bool is_lock);

// Tell so many ticks.
void gp_lock_wait_sample(gp_thread_t *thread, uint64_t now, uint64_t ticks, const gp_lock_stack_t *stack);

static inline bool gp_lock_is_waited_for(const gp_thread_t *thread)
{
    return gp_gil_is_waited_for(thread) && atomic_load_explicit(&thread->gil.lock.told, memory_order_acquire) != 0;
}

// Copy the words of an open wait. Returns how many; 0 = there is none. Threads: any.
//   owner: index of the thread that has the lock at this moment, 0 = not known; left as it is where only words tell.
size_t gp_lock_wait_words(const gp_thread_t *thread, uintptr_t words[GP_LOCK_WORDS], uint32_t *owner);

// Is there anything to take? Threads: any.
bool gp_lock_wait_is_due(const gp_thread_t *thread, uint64_t now);

// Take what is not told of an open wait that goes on for a second or more: for the caller to tell. Returns ticks.
// Threads: the collector.
uint64_t gp_lock_wait_take(gp_thread_t *thread, uint64_t now);
