// SPDX-License-Identifier: MIT
// Spans of a batch as OpenTelemetry's TracesData, which is also the body of an export request (POST /v1/traces).
// Threads: one at a time. Signals: not safe.
#pragma once

#include "export/write/text.h"
#include "ship/rows/row.h"

// Put the spans [from, to) together. Spans without a trace, which OpenTelemetry does not know, or without an end are
// left out.
//   resource: key, value, ..., NULL.
// Returns how many spans it has.
size_t gp_otlp_spans(const gp_batch_t *batch, size_t from, size_t to, const char *const *resource, gp_text_t *data);
