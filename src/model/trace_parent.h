// SPDX-License-Identifier: MIT
// The caller's span, as W3C's header traceparent has it.
#pragma once

#include <stdint.h>

#include "greenprof/trace.h"

// Read one.
//   trace:   unchanged where it is none.
//   span_id: never 0.
//   flags:   1 = the caller records it.
// Returns 0; -EINVAL. Signals: safe. Source: W3C Trace Context, traceparent.
int gp_trace_parent_read(const char *text, prof_trace_id_t *trace, uint64_t *span_id, uint8_t *flags);
