// SPDX-License-Identifier: MIT
// A span as one line of JSON: what the file consumer writes and `greenprof trace` reads. doc/consumers.md names the
// keys.
#pragma once

#include "consumer/bytes.h"
#include "greenprof/consumer.h"

// Add a span, and a line feed.
void gp_span_json(gp_bytes_t *into, const prof_span_record_t *span);

// "cpu_ns":N, ... "switches":N; "fields":{...} - members that other formats have, too. Without a comma at either end.
void gp_span_json_times(gp_bytes_t *into, const prof_span_record_t *span);
void gp_span_json_fields(gp_bytes_t *into, const prof_span_record_t *span);
