// SPDX-License-Identifier: MIT
// A span as one block of bytes: what queues and spool files hold.
//
// Threads: any. Signals: not safe.
#pragma once

#include <stdbool.h>

#include "greenprof/consumer.h"

enum {
    GP_PACKED_FIELDS_MAX = 32,
    GP_PACKED_TEXT_MAX = 8192, // name and fields; what is beyond is left out
};

typedef struct gp_packed_span {
    uint32_t bytes; // of all, a multiple of 8
    uint32_t check; // of all that follows; for spool files
    uint8_t trace[16];
    uint64_t id, parent_id, coroutine_id;
    uint64_t start_unix_ns, end_unix_ns;
    uint64_t cpu_ns, blocked_ns, preempted_ns, ready_ns, parked_ns, waiting_ns, switches;
    uint32_t kind, flags;
    uint32_t text_len;
    uint32_t field_count;
    char text[]; // name, NUL, then for each field: key, NUL, value, NUL
} gp_packed_span_t;

enum { GP_PACKED_BYTES_MAX = (sizeof(gp_packed_span_t) + GP_PACKED_TEXT_MAX + 7) & ~7u };

// Pack a span. into: GP_PACKED_BYTES_MAX bytes, aligned to 8.
void gp_packed_make(gp_packed_span_t *into, const prof_span_record_t *span);

// Are these `bytes` bytes a packed span, with a check that is right?
bool gp_packed_is_whole(const gp_packed_span_t *packed, size_t bytes);
void gp_packed_sign(gp_packed_span_t *packed);

// The span in a block. Its pointers lead there and to fields[GP_PACKED_FIELDS_MAX]; service, host and pid are not set.
void gp_packed_read(const gp_packed_span_t *packed, prof_span_record_t *span, prof_field_t *fields);
