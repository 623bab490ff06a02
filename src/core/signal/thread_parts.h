// SPDX-License-Identifier: MIT
// Parts of a thread's block (thread.h), a struct an owner, and how each is where a thread begins.
//
// Memory of a block is zero when it is mapped; a block that is reused has what the thread before has left.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "signal/coro_record.h"

enum { GP_HOGS = 16 };

typedef struct gp_hog { // a long slice
    prof_coro_t *coro;
    uint64_t coro_id;
    uint64_t start, end;    // ticks
    uint64_t asleep, awake; // of a loop's: between these it was off the CPU: had nothing to do, or was woken late
    bool is_notified;       // the collector knows it
} gp_hog_t;

typedef struct gp_thread_hogs { // hog.c
    gp_hog_t latest[GP_HOGS];
    unsigned count; // in all
    uint64_t end;   // when the latest ended, 0 = none
} gp_thread_hogs_t;

static inline void gp_thread_hogs_reset(gp_thread_hogs_t *hogs)
{
    hogs->count = 0;
    hogs->end = 0;
}

enum { GP_LATE_LOOKS = 4 };

typedef struct gp_late_look { // of a thread's loop for events; ticks
    uint64_t from, at;        // since when it had not looked, and when it did; 0 = none
} gp_late_look_t;

typedef struct gp_thread_loop { // ledger_edges.h
    gp_late_look_t late[GP_LATE_LOOKS];
    unsigned late_count; // in all
    bool is_late;        // was the last look of all?
} gp_thread_loop_t;

static inline void gp_thread_loop_reset(gp_thread_loop_t *loop)
{
    memset(loop->late, 0, sizeof(loop->late));
    loop->is_late = false;
}

typedef struct gp_thread_cpu { // its CPU clock: handler.c, and what arms the thread (src/core/collect/thread_timers.c)
    uint64_t sample_ns;        // at the last sample
    uint64_t carried_ns;       // of the time since then, what passed before that sample
    uint64_t start_ns;         // when sampling of this thread began
    _Atomic uint64_t final_ns; // when it exited
} gp_thread_cpu_t;

static inline void gp_thread_cpu_reset(gp_thread_cpu_t *cpu)
{
    cpu->sample_ns = cpu->start_ns = 0;
    atomic_store_explicit(&cpu->final_ns, 0, memory_order_relaxed);
}

// A language's state of this thread, and the frame at which the frames of a coroutine on the thread's own stack begin;
// for gp_language_t.walk_asleep(); 0 = none is known.
typedef struct gp_thread_language {
    _Atomic uintptr_t state, base;
} gp_thread_language_t;

static inline void gp_thread_language_reset(gp_thread_language_t *language)
{
    atomic_store_explicit(&language->state, 0, memory_order_relaxed);
    atomic_store_explicit(&language->base, 0, memory_order_relaxed);
}

typedef struct gp_thread_ended { // by its hook: a coroutine that is over, while the thread may still be on its stack
    prof_coro_t *coro;
    uint64_t id;
} gp_thread_ended_t;

enum { GP_LOCK_WORDS = 4 };

typedef struct gp_thread_lock {     // the open wait for a lock of the program's, beside `since`; see gil_wait.h
    _Atomic uint64_t told;          // ticks up to which it has samples; 0 = the thread waits for nothing of the kind
    uintptr_t words[GP_LOCK_WORDS]; // that stand in front of its frames; constant while it waits
    uint32_t count;
    const _Atomic uint32_t *owner; // index of the thread that has the lock by now; NULL = only `words` tell
} gp_thread_lock_t;

typedef struct gp_thread_gil {  // waits for an interpreter's lock, see gil_wait.h
    _Atomic uint64_t ticks;     // so far, those that are over
    _Atomic uint64_t late_ns;   // of these, it waited for a processor
    _Atomic uint64_t since;     // ticks; 0 = it does not wait
    uint64_t untold, from;      // ticks that no sample has, and when they began; and whose they are:
    uint64_t coro_id, trace[2]; // of the same
    uint64_t longest;           // of them, ticks; meanwhile the lock was held by:
    uint32_t holder;            // index of a thread; 0 = not known
    gp_thread_lock_t lock;
} gp_thread_gil_t;

static inline void gp_thread_gil_reset(gp_thread_gil_t *gil)
{
    atomic_store_explicit(&gil->since, 0, memory_order_relaxed);
    atomic_store_explicit(&gil->late_ns, 0, memory_order_relaxed);
    gil->untold = 0;
    atomic_store_explicit(&gil->lock.told, 0, memory_order_relaxed);
}

struct gp_exact_stack;

typedef struct gp_thread_exact {            // src/core/exact
    _Atomic(struct gp_exact_stack *) stack; // of the last event, a hint
    _Atomic(struct gp_exact_stack *) busy;  // of the event amid which another, or a slow one, is taken in
} gp_thread_exact_t;

static inline void gp_thread_exact_reset(gp_thread_exact_t *exact)
{
    atomic_store_explicit(&exact->stack, NULL, memory_order_relaxed);
    atomic_store_explicit(&exact->busy, NULL, memory_order_relaxed);
}

typedef struct gp_thread_look { // src/core/collect/sleep_scan.c; zeros where a thread begins
    uint64_t ticks, cpu_ns;     // when it was last looked at
    uint64_t slice, asleep;     // the slice in which it was found asleep, and since when without CPU time; or 0
    uint64_t gil;               // gp_gil_waited() then
} gp_thread_look_t;

typedef struct gp_thread_off { // of an ordinary thread, see src/core/collect/thread_off.h; zeros where a thread begins
    uint64_t kernel_ns, base_ns; // by the kernel, when it was read last, and what to add to that
    uint64_t account_ns;         // as its account had it then
    uint64_t preempted_ns;       // of the two
    uint64_t told_ns;            // of that, in samples
    uint32_t epoch;
    bool is_known;
} gp_thread_off_t;

typedef struct gp_thread_recorded { // src/core/record
    uint64_t cpu_ns;                // CPU time in its last record of the capture; UINT64_MAX = there is none
    uint64_t start_cpu_ns;          // thread CPU clock when the capture began, where it is older than that
    unsigned name_age;              // records since its name was read
    struct {
        uint64_t start, id; // ticks at which a hog began, its number in the capture
    } hogs[GP_HOGS];
    unsigned hog_count;
} gp_thread_recorded_t;

static inline void gp_thread_recorded_reset(gp_thread_recorded_t *record)
{
    record->cpu_ns = UINT64_MAX;
    record->start_cpu_ns = 0;
    record->name_age = 0;
}
