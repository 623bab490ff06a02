// SPDX-License-Identifier: MIT
// The trace and the span of what runs on a thread, shown to readers outside of the process
// (signal/otel_thread_record.h).
//
// Model: each thread has a record in its block, to which a thread-local of libgreenprof-otel points, for as long as it
// lives. The thread writes it: where it switches, and where the trace or the span of its coroutine changes. While
// nothing samples no switch is seen: then all records are invalid.
#pragma once

#include "signal/thread.h"

typedef struct gp_otel_thread_source {
    void **(*pointer)(void); // the calling thread's thread-local, see otel/otel.h
    // Trace and span open on a coroutine; a span 0 = nothing is shown.
    void (*read)(prof_coro_t *coro, uint64_t trace[2], uint64_t *span_id);
} gp_otel_thread_source_t;

extern _Atomic bool gp_otel_thread_is_on __attribute__((visibility("hidden")));

// Show contexts from now on, while sampling. Once in a process. Signals: not safe.
void gp_otel_thread_begin(const gp_otel_thread_source_t *source);

// Sampling begins: there may be something to show. Sampling ends: nothing is shown any more. Caller holds the sampler's
// lock.
void gp_otel_thread_resume(void);
void gp_otel_thread_pause(void);

// The calling thread runs `coro`, and nothing else from here on, or something of it has changed: the slow part.
void gp_otel_thread_write(gp_thread_t *thread, prof_coro_t *coro);

static inline void gp_otel_thread_update(gp_thread_t *thread, prof_coro_t *coro)
{
    if (__builtin_expect(atomic_load_explicit(&gp_otel_thread_is_on, memory_order_relaxed), 0))
        gp_otel_thread_write(thread, coro);
}

// The calling thread ends.
void gp_otel_thread_end_thread(gp_thread_t *thread);
