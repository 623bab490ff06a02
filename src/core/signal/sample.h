// SPDX-License-Identifier: MIT
// Records that travel through a thread's ring.
#pragma once

#include <stdbool.h>

#include "model/kinds.h"
#include "signal/coro_record.h"
#include "signal/ring.h"

enum gp_sample_flag {              // besides enum gp_unwind_flag, in the same word
    GP_SAMPLE_SWITCHING = 1u << 8, // inside a switch routine that could not be walked
    GP_SAMPLE_OUTSIDE = 1u << 9,   // the stack pointer was on no known stack: `coro` is the thread's own, see `frames`
    GP_SAMPLE_BLIND = 1u << 10,    // a wait without a report of when it became ready
    GP_SAMPLE_POLLED = 1u << 11,   // its owner was read, see poll.h: `coro` is the thread's own, see `frames`
    GP_SAMPLE_MISFIT = 1u << 12,   // with OUTSIDE: the runtime that is polled was about to change stacks
    GP_SAMPLE_NOT_STARTED = 1u << 13, // a wait of a coroutine that has not run yet: its entry function is all there is
    GP_SAMPLE_UNREPORTED = 1u << 14,  // amid a switch on a shared stack: the frames may be the other coroutine's
    GP_SAMPLE_HELD_BACK = 1u << 15,   // the signal was blocked until there: without frames
};

typedef struct gp_sample {
    gp_ring_header_t header;
    uint64_t ticks;
    uint64_t weight_ns; // CPU time that passed on this thread since its sample before; a wait's, that it stands for
    uint64_t off_ns;    // besides, time preempted in the same slice; of a wait, the part that was ready
    uint64_t slice;     // ticks at which the slice, or the wait, began
    prof_coro_t *coro;
    uint64_t coro_id;
    uint64_t trace[2];
    uint32_t scope; // index in the scope table, 0 = none
    uint32_t flags;
    uint64_t depth;
    uintptr_t frames[]; // [depth], innermost first, as gp_unwind_walk() leaves them; then, with GP_SAMPLE_OUTSIDE, the
                        // stack pointer; with GP_SAMPLE_POLLED, a gp_poll_answer_t
} gp_sample_t;

// The stack of a coroutine that has not run yet, which has none. Returns the frames in `frames`, 1 at most.
static inline size_t gp_sample_not_started(const prof_coro_t *coro, uintptr_t *frames, unsigned *flags)
{
    *flags = GP_SAMPLE_NOT_STARTED;
    frames[0] = coro->entry;
    return coro->entry != 0 ? 1 : 0;
}

typedef struct gp_trace_mark { // a coroutine's trace id changed
    gp_ring_header_t header;
    prof_coro_t *coro;
    uint64_t coro_id;
    gp_ledger_t ledger; // at that moment
    uint64_t trace[2];  // the new one
} gp_trace_mark_t;

typedef struct gp_hog_mark { // a slice was long
    gp_ring_header_t header;
    prof_coro_t *coro;
    uint64_t coro_id;
    uint64_t trace[2];
    uint64_t start, end; // ticks
} gp_hog_mark_t;

typedef struct gp_delay_mark { // and this coroutine was ready meanwhile
    gp_ring_header_t header;
    prof_coro_t *coro;
    uint64_t coro_id;
    uint64_t trace[2];
    uint64_t hog_start; // ticks: which slice of this thread
    uint64_t delay_ticks;
    uint64_t unseen_ticks; // of them: when it was at most ready, see edge.h
} gp_delay_mark_t;

typedef struct gp_activity_mark { // a coroutine was active, then waited: see activity.h
    gp_ring_header_t header;
    prof_coro_t *coro;
    uint64_t coro_id;
    uint64_t trace[2];
    uint64_t start, left, end; // ticks: active in [start, left), waited in [left, end)
    uint64_t slice_ticks;      // of [start, left), in which it had its thread
    uint64_t off_ns;           // of these, it was not on the CPU; may be a little below zero
    uint64_t blocked_ns;       // and of that, it slept
    uint64_t settled;          // up to when that is known: left, or earlier where the slice goes on. Ticks
    uint64_t ready;            // ticks; 0 = not reported
    uint64_t waker;            // id of the coroutine that made it ready, 0 = not known
    uint32_t thread;           // index of the thread at `start`
    bool is_open;              // the last one: it had not ended
    bool is_waiting;           // with is_open: in [left, end), else end = left
} gp_activity_mark_t;

typedef struct gp_span_mark { // a span is over: see src/core/trace/span.h
    gp_ring_header_t header;
    prof_coro_t *coro; // on which it began
    uint64_t coro_id, end_coro_id;
    uint64_t id, parent_id, trace[2];
    uint64_t start, end; // ticks
    gp_ledger_t times;   // of its coroutine between the two
    uint32_t site;       // stack at its beginning, see src/core/coro/spawn.h; 0 = not kept
    uint32_t thread;     // index, at its beginning
    uint16_t kind;       // prof_span_kind_t
    uint16_t flags;      // enum gp_span_flag
    bool is_chosen;      // for those that listen: the policy says so
    uint16_t name_len, fields_len, field_count;
    char text[]; // name, then the fields: key, NUL, value, NUL
} gp_span_mark_t;
