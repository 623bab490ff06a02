// SPDX-License-Identifier: MIT
// The sinks: everything that the collector hands samples and records to. Profiles, exact mode and the capture are sinks
// alike; the collector knows them by this table only.
//
// Sinks are added when the process is loaded or when the capture begins; a capture at its size limit gives its sink's
// place to another. Calls come in the order of the sinks' addition. A member that a sink does not need is NULL.
//
// Threads: every call comes from the collector's thread and, where not said otherwise, under the drain lock.
#pragma once

#include "model/ring_stack.h"
#include "signal/sample.h"
#include "signal/thread.h"

typedef struct gp_hog_sample { // a stack of a long slice, with the time it stands for
    gp_stack_t stack;
    uint64_t weight_ns;
} gp_hog_sample_t;

typedef struct gp_sink {
    // Does it look at the wall clock now, so that sleeping threads are to be looked at? NULL: never. No lock is held.
    bool (*wants_waits)(void);
    // Is it to know where threads sleep that have no coroutines, too? NULL: never. No lock is held.
    bool (*wants_threads)(void);
    // A round begins: it takes all that has ended and was recorded up to here.
    void (*round_begins)(void);
    // The modules of the process are up to date and the rings are about to be emptied.
    //   changed: some were loaded or unloaded since the last time.
    void (*refresh)(bool changed);
    // A sample, or a wait. thread: NULL for a wait that has not ended. shares: gp_share_t[count], 1 or 2.
    void (*sample)(const gp_sample_t *sample, gp_thread_t *thread, const gp_stack_t *stack, const gp_share_t *shares,
                   size_t count);
    void (*hog)(const gp_hog_mark_t *mark, gp_thread_t *thread, const gp_hog_sample_t *samples, size_t count);
    void (*delay)(const gp_delay_mark_t *mark, gp_thread_t *thread); // of the thread's latest hog with that start
    void (*activity)(const gp_activity_mark_t *mark, gp_thread_t *thread);
    void (*trace_mark)(const gp_trace_mark_t *mark);
    void (*span)(const gp_span_mark_t *mark); // is over
    void (*coro_over)(prof_coro_t *coro);     // retired; its record is read one last time
    void (*thread_over)(gp_thread_t *thread); // exited, its ring is empty
    void (*pressed)(gp_thread_t *thread);     // what its ring keeps gives way now
    void (*round)(void);                      // after every round: time to write
    void (*after_round)(void);                // the same, no lock held: may take long
} gp_sink_t;

enum { GP_SINKS_MAX = 8 };

extern const gp_sink_t *gp_sinks[GP_SINKS_MAX];
extern _Atomic unsigned gp_sink_count;

// Add a sink. Takes the drain lock.
void gp_sink_add(const gp_sink_t *sink);

// Put a sink in the place of another, from the latter's own after_round(). Caller holds the drain lock.
void gp_sink_replace(const gp_sink_t *sink, const gp_sink_t *by);

// Call a member of every sink that has it.
#define GP_SINKS_CALL(member, ...)                                                                                     \
    for (unsigned sink_ = 0, count_ = atomic_load_explicit(&gp_sink_count, memory_order_acquire); sink_ < count_;      \
         sink_++)                                                                                                      \
        if (gp_sinks[sink_]->member != NULL)                                                                           \
    gp_sinks[sink_]->member(__VA_ARGS__)
