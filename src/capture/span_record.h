// SPDX-License-Identifier: MIT
// A span (model/span.h) as a record of a capture, and back: the one place that knows which field is which.
//
// Moments are ns since the capture's start. Traces and stacks are numbers in the capture, which a span does not have.
#pragma once

#include "capture/format.h"
#include "model/span.h"

static inline gp_span_record_t gp_span_to_record(const gp_span_t *span, uint64_t start_ns, uint64_t end_ns)
{
    return (gp_span_record_t){
        .id = span->id,
        .parent_id = span->parent_id,
        .coro_id = span->coro_id,
        .end_coro_id = span->end_coro_id,
        .start_ns = start_ns,
        .end_ns = end_ns,
        .cpu_ns = span->times.cpu_ns,
        .slice_ns = span->times.slice_ns,
        .blocked_ns = span->times.blocked_ns,
        .ready_ns = span->times.ready_ns,
        .parked_ns = span->times.parked_ns,
        .waiting_ns = span->times.waiting_ns,
        .switches = span->times.switches,
        .thread = span->thread,
        .kind = span->kind,
        .flags = span->flags,
        .name_len = span->name_len,
    };
}

// A damaged record may end before it begins: then it ends where it begins.
static inline gp_span_t gp_span_of_record(const gp_span_record_t *record)
{
    return (gp_span_t){
        .id = record->id,
        .parent_id = record->parent_id,
        .coro_id = record->coro_id,
        .end_coro_id = record->end_coro_id,
        .start = record->start_ns,
        .end = record->end_ns > record->start_ns ? record->end_ns : record->start_ns,
        .times = {.cpu_ns = record->cpu_ns,
                  .slice_ns = record->slice_ns,
                  .blocked_ns = record->blocked_ns,
                  .ready_ns = record->ready_ns,
                  .parked_ns = record->parked_ns,
                  .waiting_ns = record->waiting_ns,
                  .switches = record->switches},
        .thread = record->thread,
        .kind = record->kind,
        .flags = record->flags,
        .name_len = record->name_len,
    };
}
