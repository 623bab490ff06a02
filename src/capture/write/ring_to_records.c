// SPDX-License-Identifier: MIT
#include "capture/write/ring_to_records.h"

#include <string.h>

#include "capture/span_record.h"

void gp_ring_to_sample(gp_sample_record_t *record, const gp_sample_t *sample, gp_share_t share,
                       const gp_ring_clock_t *clock, gp_ring_refs_t refs)
{
    *record = (gp_sample_record_t){
        .time_ns = gp_ring_clock_since(clock, sample->ticks),
        .weight_ns = share.weight_ns,
        .coro_id = sample->coro_id,
        .thread = refs.thread,
        .stack_id = refs.stack,
        .trace = refs.trace,
        .kind = share.kind,
    };
}

void gp_ring_to_activity(gp_activity_record_t *record, const gp_activity_mark_t *mark, const gp_ring_clock_t *clock,
                         uint32_t trace)
{
    uint64_t ready = mark->ready > mark->left ? mark->ready : mark->left;
    *record = (gp_activity_record_t){
        .coro_id = mark->coro_id,
        .start_ns = gp_ring_clock_since(clock, mark->start),
        .left_ns = gp_ring_clock_since(clock, mark->left),
        .end_ns = gp_ring_clock_since(clock, mark->end),
        .slice_ns = gp_ring_clock_ns(clock, mark->slice_ticks),
        .ready_ns = mark->ready != 0 ? gp_ring_clock_since(clock, ready < mark->end ? ready : mark->end) : 0,
        .waker_id = mark->ready != 0 ? mark->waker : 0,
        .trace = trace,
        .thread = mark->thread,
        .is_open = mark->is_open != 0,
    };
    if (mark->settled >= mark->left)
        gp_activity_set_times(record, mark->off_ns, mark->blocked_ns, mark->gil_ns, mark->lock_ns);
}

void gp_ring_to_span(gp_span_record_t *record, const gp_span_mark_t *mark, const gp_ring_clock_t *clock,
                     gp_ring_refs_t refs)
{
    const gp_span_t *span = &mark->span;
    *record = gp_span_to_record(span, gp_ring_clock_since(clock, span->start), gp_ring_clock_since(clock, span->end));
    record->trace = refs.trace;
    record->stack_id = refs.stack;
    record->field_count = mark->field_count;
    record->fields_len = mark->fields_len;
    memcpy(record + 1, mark->text, gp_ring_span_text_len(mark));
}
