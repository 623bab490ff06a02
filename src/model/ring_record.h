// SPDX-License-Identifier: MIT
// Records that travel through a thread's ring, slot by slot. The thread and its handler write them; the collector reads
// them, and greenprof recover does out of the ring file of a process that was killed (capture/ring_file.h).
//
// Layout: a ring file has these bytes, so another layout is another version of the file. Pointers and program counters
// are the process'. Integers are as the machine has them.
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/kinds.h"
#include "model/ledger.h"
#include "model/span.h"

struct prof_coro;

enum gp_ring_type {
    GP_RING_PAD = 1,
    GP_RING_SAMPLE = 2,     // gp_sample_t, on-CPU
    GP_RING_TRACE_MARK = 3, // gp_trace_mark_t
    GP_RING_WAIT = 4,       // gp_sample_t, of a wait that is over
    GP_RING_HOG = 5,        // gp_hog_mark_t
    GP_RING_DELAY = 6,      // gp_delay_mark_t
    GP_RING_ACTIVITY = 7,   // gp_activity_mark_t
    GP_RING_SPAN = 8,       // gp_span_mark_t
    GP_RING_GIL = 9,        // gp_sample_t, of waits for an interpreter's lock
    GP_RING_LOCK = 10,      // gp_sample_t, of a wait for a lock of the program's
};

typedef struct gp_ring_header {
    _Atomic uint32_t committed; // enum gp_ring_type, 0 = not yet
    uint32_t bytes;             // with this header, a multiple of 8
} gp_ring_header_t;

// In front of the memory of a ring file: the threads of the records.
typedef struct gp_ring_owner {
    _Atomic uint64_t tail;      // nothing before it is there any more
    uint64_t since;             // from here on they are the present thread's, before it the last one's
    uint64_t root_id[2];        // of both, the present first: ids of their own stacks
    uint32_t index[2], tids[2]; // 0 = there is none
} gp_ring_owner_t;

enum gp_sample_flag {
    GP_SAMPLE_TRUNCATED =
        1u << 0, // as enum gp_unwind_flag has it: frames between the leaf and the root end are missing
    GP_SAMPLE_INCOMPLETE = 1u << 1, // the same: the walk gave up before the stack's bottom
    GP_SAMPLE_SWITCHING = 1u << 8,  // inside a switch routine that could not be walked
    GP_SAMPLE_OUTSIDE = 1u << 9,    // the stack pointer was on no known stack: `coro` is the thread's own, see `frames`
    GP_SAMPLE_BLIND = 1u << 10,     // a wait without a report of when it became ready
    GP_SAMPLE_POLLED = 1u << 11,    // its owner was read, see poll.h: `coro` is the thread's own, see `frames`
    GP_SAMPLE_MISFIT = 1u << 12,    // with OUTSIDE: the runtime that is polled was about to change stacks
    GP_SAMPLE_NOT_STARTED = 1u << 13, // a wait of a coroutine that has not run yet: its entry function is all there is
    GP_SAMPLE_UNREPORTED = 1u << 14,  // amid a switch on a shared stack: the frames may be the other coroutine's
    GP_SAMPLE_HELD_BACK = 1u << 15,   // the signal was blocked until there: without frames
    GP_SAMPLE_LOCK = 1u << 16,        // of a wait for a lock: in front of its frames stand words about that
};

typedef struct gp_sample {
    gp_ring_header_t header;
    uint64_t ticks;
    uint64_t weight_ns; // CPU time on this thread since its last sample; of a wait, the time it stands for
    uint64_t off_ns;    // besides, time preempted in the same slice; of a wait, the part that was ready
    uint64_t slice;     // ticks at which the slice, or the wait, began
    struct prof_coro *coro;
    uint64_t coro_id;
    uint64_t trace[2];
    uint32_t scope; // index in the scope table, 0 = none
    uint32_t flags; // enum gp_sample_flag
    uint64_t depth;
    uintptr_t frames[]; // [depth], innermost first, as gp_unwind_walk() leaves them; then, with GP_SAMPLE_OUTSIDE, the
                        // stack pointer; with GP_SAMPLE_POLLED, a gp_poll_answer_t
} gp_sample_t;

typedef struct gp_trace_mark { // a coroutine's trace id changed
    gp_ring_header_t header;
    struct prof_coro *coro;
    uint64_t coro_id;
    gp_ledger_t ledger; // at that moment
    uint64_t trace[2];  // the new one
} gp_trace_mark_t;

typedef struct gp_hog_mark { // a slice was long
    gp_ring_header_t header;
    struct prof_coro *coro;
    uint64_t coro_id;
    uint64_t trace[2];
    uint64_t start, end; // ticks
} gp_hog_mark_t;

typedef struct gp_delay_mark { // and this coroutine was ready meanwhile
    gp_ring_header_t header;
    struct prof_coro *coro;
    uint64_t coro_id;
    uint64_t trace[2];
    uint64_t hog_start; // ticks: which slice of this thread
    uint64_t delay_ticks;
    uint64_t unseen_ticks; // of them: when it was at most ready, see src/core/signal/ledger_edges.h
} gp_delay_mark_t;

typedef struct gp_activity_mark { // a coroutine was active, then waited: see src/core/signal/activity.h
    gp_ring_header_t header;
    struct prof_coro *coro;
    uint64_t coro_id;
    uint64_t trace[2];
    uint64_t start, left, end; // ticks: active in [start, left), waited in [left, end)
    uint64_t slice_ticks;      // of [start, left), on its thread
    uint64_t off_ns;           // of these, it was not on the CPU; may be a little below zero
    uint64_t blocked_ns;       // and of that, it slept
    uint64_t gil_ns;           // of off_ns, it waited for an interpreter's lock
    uint64_t lock_ns;          // and for a lock of the program's
    uint64_t settled;          // up to when that is known: left, or earlier where the slice goes on. Ticks
    uint64_t ready;            // ticks; 0 = not reported
    uint64_t waker;            // id of the coroutine that made it ready, 0 = not known
    uint32_t thread;           // index of the thread at `start`
    uint8_t is_open;    // the last one: it had not ended. 0 or 1, not bool: whoever wrote the file may say anything
    uint8_t is_waiting; // with is_open: in [left, end), else end = left
} gp_activity_mark_t;

typedef struct gp_span_mark { // a span is over: see src/core/trace/span.h
    gp_ring_header_t header;
    struct prof_coro *coro; // on which it began
    gp_span_t span;         // its moments are ticks
    uint16_t fields_len, field_count;
    char text[]; // name, then the fields: key, NUL, value, NUL
} gp_span_mark_t;

static_assert(sizeof(gp_ring_header_t) == 8 && sizeof(gp_ring_owner_t) == 48 && sizeof(gp_sample_t) == 88 &&
                  sizeof(gp_activity_mark_t) == 136 && sizeof(gp_span_mark_t) == sizeof(gp_span_t) + 24 &&
                  offsetof(gp_span_mark_t, text) == sizeof(gp_span_t) + 20,
              "ring files of version 5 have this layout, but for the span's");
