// SPDX-License-Identifier: MIT
// Ring records (model/ring_record.h) as records of a capture: for the process that writes its own, and for greenprof
// recover, which has its ring file.
//
// Threads: any. Signals: not safe.
#pragma once

#include "capture/format.h"
#include "model/ring_stack.h"

typedef struct gp_ring_clock { // of the moments in the records
    uint64_t start_ticks;      // the capture's start
    uint64_t tick_mult;        // ns = ticks * tick_mult >> 32
} gp_ring_clock_t;

typedef struct gp_ring_refs { // numbers in the capture of what a record refers to, 0 = none
    uint32_t trace, stack, thread;
} gp_ring_refs_t;

static inline uint64_t gp_ring_clock_ns(const gp_ring_clock_t *clock, uint64_t ticks)
{
    return (uint64_t)(((unsigned __int128)ticks * clock->tick_mult) >> 32);
}

// ns since the capture's start.
static inline uint64_t gp_ring_clock_since(const gp_ring_clock_t *clock, uint64_t ticks)
{
    return ticks > clock->start_ticks ? gp_ring_clock_ns(clock, ticks - clock->start_ticks) : 0;
}

void gp_ring_to_sample(gp_sample_record_t *record, const gp_sample_t *sample, gp_share_t share,
                       const gp_ring_clock_t *clock, gp_ring_refs_t refs);

// Its times are left as not known where a slice goes on, of which the ring does not have all.
void gp_ring_to_activity(gp_activity_record_t *record, const gp_activity_mark_t *mark, const gp_ring_clock_t *clock,
                         uint32_t trace);

// record: with room for gp_ring_span_text_len() bytes behind it.
void gp_ring_to_span(gp_span_record_t *record, const gp_span_mark_t *mark, const gp_ring_clock_t *clock,
                     gp_ring_refs_t refs);

static inline size_t gp_ring_span_text_len(const gp_span_mark_t *mark)
{
    return (size_t)mark->span.name_len + mark->fields_len;
}
