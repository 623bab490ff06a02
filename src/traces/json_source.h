// SPDX-License-Identifier: MIT
// Functions that the readers of JSON share.
#pragma once

#include <jansson.h>

#include "traces/sources.h"

// Read one JSON text. Returns NULL and what is wrong, with its line.
//   text: [len]; see gp_spans_read_json().
json_t *gp_json_read(const char *text, size_t len, char error[GP_SPANS_ERROR_SIZE]);

// Members of an object; what is absent or of another type is "", 0, none.
const char *gp_json_string(const json_t *object, const char *key);
uint64_t gp_json_number(const json_t *object, const char *key);

// An object's members as fields: texts as they are, all else as JSON. Returns 0 or -ENOMEM.
int gp_json_fields(gp_spans_t *set, gp_tree_span_t *span, const json_t *object);

// Set cpu_ns and what follows it, the coroutine and flags of a span of greenprof's own.
void gp_json_times(gp_tree_span_t *span, const json_t *object);

// Set where such a span began, if that was kept. Returns 0 or -ENOMEM.
int gp_json_stack(gp_spans_t *set, gp_tree_span_t *span, const json_t *object);

// OSProfiler's report, and one of its events. Return 0 or -ENOMEM.
int gp_osprofiler_report(gp_spans_t *set, const json_t *report);
int gp_events_add(gp_events_t *events, const json_t *event);
bool gp_osprofiler_is_event(const json_t *object);

// How many fields a span keeps.
enum { GP_TREE_FIELDS_MAX = 256 };
