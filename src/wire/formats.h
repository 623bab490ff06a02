// SPDX-License-Identifier: MIT
// The headers that carry a context, each format in a file of its own; doc/wire.md has them byte for byte.
//
// Headers come from anywhere: lengths are bounded before anything else is looked at, nothing is allocated, and nothing
// in a signed header is believed before its signature is. Threads: any. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "greenprof/trace.h"

typedef struct gp_header_text { // of a header: without the blanks around it, no NUL behind it
    const char *at;
    size_t len;
} gp_header_text_t;

typedef struct gp_wire_format {
    const char *name;
    bool is_signed;
    // Read the context of headers into one that is all zero but for its size.
    // Returns 0; -ENOENT: there is none of this format; -EINVAL: malformed; -E2BIG: longer than any that is good;
    // -EACCES: signed by none of the keys; -ETIME: too old, or ahead; -EALREADY: seen before; -ENOSPC: see nonces.h.
    int (*read)(const prof_header_t *headers, size_t count, uint64_t now_ms, prof_context_t *context);
    // Write one as lines of headers, into `text` [PROF_CONTEXT_TEXT_SIZE]. Returns 0, or what gp_keys_sign() says.
    int (*write)(const prof_context_t *context, uint64_t now_ms, char *text);
} gp_wire_format_t;

extern const gp_wire_format_t gp_wire_w3c, gp_wire_osprofiler, gp_wire_greenprof;

// Has it this name, in any case, and a value?
bool gp_header_is(const prof_header_t *header, const char *name);

// Find the header of a name. Returns 0; -ENOENT; -EINVAL where there are two; -E2BIG where it is longer than `max`.
int gp_header_find(const prof_header_t *headers, size_t count, const char *name, size_t max, gp_header_text_t *value);

// A header's value as text. False: it is longer than `max`.
bool gp_text(const char *value, size_t max, gp_header_text_t *text);

bool gp_trace_is_none(const prof_trace_id_t *id);
