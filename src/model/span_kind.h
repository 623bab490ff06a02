// SPDX-License-Identifier: MIT
// The kinds of spans (greenprof/trace.h) in words, and what else a record says of a span.
#pragma once

#include "greenprof/trace.h"

#define GP_SPAN_KINDS(X)                                                                                               \
    X(REQUEST, "request")                                                                                              \
    X(REST_CALL, "rest_call")                                                                                          \
    X(REST_DISPATCH, "rest_dispatch")                                                                                  \
    X(RPC_CALL, "rpc_call")                                                                                            \
    X(RPC_DISPATCH, "rpc_dispatch")                                                                                    \
    X(DATABASE, "database")                                                                                            \
    X(CACHE, "cache")                                                                                                  \
    X(NATIVE_CALL, "native_call")                                                                                      \
    X(TASK, "task")                                                                                                    \
    X(EXTERNAL_COMMAND, "external_command")                                                                            \
    X(THREAD_SPAWN, "thread_spawn")                                                                                    \
    X(THREAD_MAIN, "thread_main")

enum { GP_SPAN_KIND_COUNT = PROF_SPAN_THREAD_MAIN + 1 };

// Numbers in captures: they never change.
enum gp_span_flag {
    GP_SPAN_REMOTE_PARENT = 1, // parent_id is of another process: a root here
    GP_SPAN_OPEN = 2,          // had not ended when it was written: end_ns is that moment
    GP_SPAN_REPAIRED = 4,      // no end was told: it ended with the span around it, or with its coroutine
    GP_SPAN_IMPLICIT = 8,      // of prof_trace_set()
    GP_SPAN_FAILED = 16,
    GP_SPAN_NO_TIMES = 32, // the end was on another coroutine: where the time went is not known
    GP_SPAN_ASKED = 64,    // a request that was to be recorded whatever the policy says (PROF_SPAN_PROFILE)
    GP_SPAN_RESTED = 128,  // recording rested during a part of it, by budget: where that part went is not known, and
                           // in none of its times
};

// The word for a kind; "unknown" for a number that is none.
static inline const char *gp_span_kind_text(uint32_t kind)
{
#define GP_SPAN_KIND_TEXT(id, text) [PROF_SPAN_##id] = (text),
    static const char *const texts[GP_SPAN_KIND_COUNT] = {GP_SPAN_KINDS(GP_SPAN_KIND_TEXT)};
#undef GP_SPAN_KIND_TEXT
    return kind < GP_SPAN_KIND_COUNT && texts[kind] != NULL ? texts[kind] : "unknown";
}
