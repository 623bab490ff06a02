// SPDX-License-Identifier: MIT
#include "trace/context.h"
#include "coro/announce.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "coro/coro_ledger.h"
#include "coro/otel_thread_context.h"
#include "coro/registry.h"
#include "greenprof/coro.h"
#include "greenprof/trace.h"
#include "signal/activity.h"
#include "signal/rest.h"
#include "signal/sample.h"
#include "signal/slice.h"
#include "signal/slice_switch.h"
#include "trace/span.h"

// Returns the moment at which it ends.
static uint64_t context_end_part(gp_thread_t *thread, prof_coro_t *coro)
{
    gp_slice_settle_as_switch(thread, coro);
    gp_slice_enter(thread);
    uint64_t now = gp_ticks();
    gp_activity_cut(thread, coro, now);
    gp_slice_leave(thread);
    return now;
}

_Atomic bool gp_trace_is_used;

// Tell the collector, so that the ledger of the old trace ends here, and its part of the timeline.
static void context_mark(prof_coro_t *coro, const uint64_t trace[2])
{
    gp_thread_t *thread = gp_thread_self;
    bool is_sampled = __atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED);
    uint64_t now = is_sampled ? context_end_part(thread, coro) : gp_ticks();
    gp_trace_mark_t *record = gp_ring_reserve(&thread->ring, sizeof(*record));
    if (record == NULL) {
        gp_thread_count(thread, GP_COUNTER_LOST_MARKS);
        return;
    }
    record->coro = coro;
    record->coro_id = atomic_load_explicit(&coro->id, memory_order_relaxed);
    gp_ledger_read(coro, now, &record->ledger);
    memcpy(record->trace, trace, sizeof(record->trace));
    gp_thread_commit(thread, record, GP_RING_TRACE_MARK);
}

// Source: the sequence lock of coro_record.h; the readers are this thread's own handler and coroutines being born here.
static void context_change(prof_coro_t *coro, const uint64_t trace[2])
{
    if (!atomic_load_explicit(&gp_trace_is_used, memory_order_relaxed))
        atomic_store_explicit(&gp_trace_is_used, true, memory_order_relaxed);
    uint32_t sequence = atomic_load_explicit(&gp_coro_context(coro)->trace_seq, memory_order_relaxed);
    atomic_store_explicit(&gp_coro_context(coro)->trace_seq, sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&gp_coro_context(coro)->trace[0], trace[0], memory_order_relaxed);
    atomic_store_explicit(&gp_coro_context(coro)->trace[1], trace[1], memory_order_relaxed);
    atomic_store_explicit(&gp_coro_context(coro)->trace_seq, sequence + 2, memory_order_release);
}

void gp_trace_change(prof_coro_t *coro, const uint64_t trace[2])
{
    uint64_t before[2];
    gp_trace_of(coro, before);
    if (before[0] == trace[0] && before[1] == trace[1])
        return;
    if (__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED) || gp_rest_is_now())
        context_mark(coro, trace);
    context_change(coro, trace);
}

int prof_trace_set(const prof_trace_id_t *id)
{
    uint64_t trace[2];
    if (id == NULL)
        return -EINVAL;
    memcpy(trace, id->bytes, sizeof(trace));
    if (trace[0] == 0 && trace[1] == 0)
        return -EINVAL;
    prof_coro_t *coro = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
    if (coro == NULL)
        return -ENOMEM;
    uint64_t before[2];
    gp_trace_of(coro, before);
    if (before[0] == trace[0] && before[1] == trace[1] && prof_span_current() != 0)
        return 0; // the request goes on
    gp_span_end_implicit(coro);
    gp_trace_change(coro, trace);
    gp_span_begin_implicit(coro);
    gp_otel_thread_update(gp_thread_self, coro);
    return 0;
}

static void context_clear(prof_coro_t *coro)
{
    static const uint64_t none[2];
    gp_span_end_implicit(coro);
    gp_trace_change(coro, none);
    gp_otel_thread_update(gp_thread_self, coro);
}

void prof_trace_clear(void)
{
    prof_coro_t *coro = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
    if (coro != NULL)
        context_clear(coro);
}

int prof_trace_get(prof_trace_id_t *id)
{
    if (id == NULL)
        return -EINVAL;
    uint64_t trace[2] = {0, 0};
    prof_coro_t *coro = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
    if (coro != NULL)
        gp_trace_of(coro, trace);
    memcpy(id->bytes, trace, sizeof(trace));
    return trace[0] != 0 || trace[1] != 0 ? 0 : -ENOENT;
}

void prof_coro_idle(void)
{
    prof_coro_t *coro = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
    if (coro == NULL)
        return;
    context_clear(coro);
    gp_ledger_edge_store(&gp_coro_context(coro)->span, 0);
    if (coro->kind != GP_CORO_THREAD)
        gp_coro_idles(coro);
}
