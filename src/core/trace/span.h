// SPDX-License-Identifier: MIT
// Spans that are open in this process.
//
// Model: each is a slot of a type-stable pool; a handle is its number and its generation, which the end raises: so a
// span that is over is recognised, and one of two enders wins. A coroutine's `span` is the handle of the span open on
// it; spawned coroutines inherit the word, and find out about its end when they use it. A finished span goes through
// the ring of the thread that ended it to the sinks.
//
// Threads: any. Signals: not safe, but the handler may interrupt: it reads none of this.
#pragma once

#include <stdbool.h>

#include "coro/coro_ledger.h"
#include "greenprof/trace.h"
#include "signal/sample.h"
#include "trace/span_slot.h"
#include "trace/span_wants.h"

// The id of the span that is open on a coroutine, or was when the coroutine was spawned in it; 0 = none. The calling
// thread runs it.
uint64_t gp_span_shown_id(prof_coro_t *coro);

// Is a span open on the calling coroutine, other than a library's call (PROF_SPAN_CLIENT) of this kind?
bool gp_span_may_call(prof_span_kind_t kind);

// The request that prof_trace_set() stands for: begin it, where nothing is open, with the coroutine's trace; end it, if
// it is open. `coro` is the caller.
void gp_span_begin_implicit(prof_coro_t *coro);
void gp_span_end_implicit(prof_coro_t *coro);

// Where a span begins that is worth its record only if it takes long: noted before, begun after. On one coroutine;
// spans begun in between are beside it. Cost: that of the counter and ~5 ns to note.
typedef struct gp_span_since {
    uint64_t ticks;
    prof_coro_t *coro; // that the thread runs, as far as is known without looking; NULL = where time goes is not known
    gp_ledger_words_t words;
} gp_span_since_t;

void gp_span_note(gp_span_since_t *since);
prof_span_t *gp_span_begin_since(prof_span_kind_t kind, const char *name, const gp_span_since_t *since);

// A coroutine is over, at `ticks`: what prof_trace_set() began on it is over, too. Collector only.
void gp_span_coro_over(prof_coro_t *coro, uint64_t id, uint64_t ticks, void (*take)(const gp_span_mark_t *mark));

// Everything that is open, as it is now. Collector only.
void gp_span_each_open(uint64_t now, void (*take)(void *context, const gp_span_mark_t *mark), void *context);

// In a forked child: what is open is the parent's, which records its end.
void gp_spans_after_fork(void);
