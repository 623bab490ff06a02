// SPDX-License-Identifier: MIT
// Calls of libraries as spans, where a request is open on the calling coroutine; else nothing is done for them: begun
// where gp_client_may_call(). Threads: any. Signals: not safe.
#pragma once

#include "interpose/interpose.h"
#include "trace/client_switch.h"
#include "trace/span.h"

// A function of the library that `original` belongs to, which may have been loaded for a plugin alone; NULL = it has
// none of that name. Cost: ~1 ns from the second time on.
typedef struct gp_sibling {
    void *original, *found;
} gp_sibling_t;

void *gp_call_find_sibling(gp_sibling_t *known, const void *original, const char *name);

static inline void *gp_call_sibling(gp_sibling_t *known, const void *original, const char *name)
{
    // Acquire: partner of the release where it was found.
    bool is_known = __atomic_load_n(&known->original, __ATOMIC_ACQUIRE) == original;
    return __builtin_expect(is_known, 1) ? known->found : gp_call_find_sibling(known, original, name);
}

// Begin a span for a call. verb: what it does, as "SELECT"; the span is called "LIBRARY VERB".
prof_span_t *gp_call_begin(gp_client_t library, prof_span_kind_t kind, const char *verb);

// The same for a call that is over, and began at `since`.
prof_span_t *gp_call_begin_since(gp_client_t library, prof_span_kind_t kind, const char *verb,
                                 const gp_span_since_t *since);

// The first word of a text in capitals, if it is one of up to 15 letters; else `otherwise`.
const char *gp_call_verb(const char *text, const char *otherwise, char verb[16]);

// A statement for people: without what stands in quotes, and without numbers. `plain` is cut at `size`.
void gp_call_statement(const char *sql, char *plain, size_t size);
