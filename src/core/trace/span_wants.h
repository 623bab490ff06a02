// SPDX-License-Identifier: MIT
// Takers of spans: a capture, listeners, readers outside; and the watch of requests.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "greenprof/trace.h"

// Takers of spans. The policy chooses requests for those that listen; a capture has all of them, and all are shown to
// readers outside of the process.
enum gp_span_taker { GP_SPANS_CAPTURED = 1, GP_SPANS_HEARD = 2, GP_SPANS_SHOWN = 4, GP_SPANS_BY_ANY = 7 };

void gp_spans_want(enum gp_span_taker taker, bool wanted);

// Does one of them want spans?
//   takers: enum gp_span_taker bits.
bool gp_spans_are_wanted(unsigned takers);

// Asked where a request begins, on its thread: is it to be heard? NULL = all are.
typedef bool gp_span_policy_t(prof_span_kind_t kind, const char *name);
extern gp_span_policy_t *_Atomic gp_span_policy;

// Called at begin and end of a request for listeners: for profiles of single requests.
typedef struct gp_request_end {
    uint64_t trace[2], id;
    uint64_t duration_ns;
    bool is_asked;     // it has PROF_SPAN_PROFILE
    bool is_collector; // the caller is the collector and holds the drain lock: its coroutine is over
} gp_request_end_t;

typedef struct gp_request_watch {
    void *(*begins)(void); // on the request's coroutine. Returns a token, NULL = there will be no call of the other
    void (*ends)(void *token, const gp_request_end_t *end); // on any thread, once
} gp_request_watch_t;
extern const gp_request_watch_t *_Atomic gp_request_watch;
