// SPDX-License-Identifier: MIT
// A span as one object of JSON: what the file consumer writes as a line, and `greenprof trace` reads and writes.
// doc/consumers.md names the keys.
#pragma once

#include "consumer/bytes.h"
#include "greenprof/consumer.h"

// Add a span of this process, and a line feed.
void gp_span_json(gp_reply_bytes_t *into, const prof_span_record_t *span);

typedef struct gp_span_names {         // of a span that may be of any process, or any profiler
    const char *trace, *span, *parent; // ids; parent NULL = none
    const char *kind;
    uint64_t pid;
    bool has_times;
} gp_span_names_t;

// Add its members, without the braces around them. Ids, kind and pid of `span` are not looked at.
void gp_span_json_members(gp_reply_bytes_t *into, const prof_span_record_t *span, const gp_span_names_t *names);

// "cpu_ns":N, ... "switches":N; "fields":{...} - members that other formats have, too. Without a comma at either end.
void gp_span_json_times(gp_reply_bytes_t *into, const prof_span_record_t *span);
void gp_span_json_fields(gp_reply_bytes_t *into, const prof_span_record_t *span);
