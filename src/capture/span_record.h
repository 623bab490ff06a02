// SPDX-License-Identifier: MIT
// A span (model/span.h) as a record of a capture, and back: the one place that knows which field is which.
//
// Moments are ns since the capture's start. Traces and stacks are numbers in the capture, which a span does not have.
#pragma once

#include "capture/format.h"
#include "model/span.h"

static inline gp_span_record_t gp_span_to_record(const gp_span_t *span, uint64_t start_ns, uint64_t end_ns)
{
#define GP_SPAN_KEEP(field, kept) .kept = span->field,
    return (gp_span_record_t){.start_ns = start_ns, .end_ns = end_ns, GP_SPAN_KEPT(GP_SPAN_KEEP)};
#undef GP_SPAN_KEEP
}

// A damaged record may end before it begins: then it ends where it begins.
static inline gp_span_t gp_span_of_record(const gp_span_record_t *record)
{
#define GP_SPAN_READ(field, kept) .field = record->kept,
    return (gp_span_t){
        .start = record->start_ns,
        .end = record->end_ns > record->start_ns ? record->end_ns : record->start_ns,
        GP_SPAN_KEPT(GP_SPAN_READ) // all others
    };
#undef GP_SPAN_READ
}
