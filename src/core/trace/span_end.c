// SPDX-License-Identifier: MIT
// The end of a span, and what is around it then.
#include <errno.h>
#include <string.h>

#include "coro/announce.h"
#include "coro/otel_thread_context.h"
#include "coro/registry.h"
#include "greenprof/trace.h"
#include "signal/ledger_edges.h"
#include "trace/context.h"
#include "trace/span.h"
#include "trace/span_mark.h"
#include "trace/span_past.h"
#include "trace/span_watch.h"

// The span open around a span; another thread may have ended the innermost.
static uint64_t span_end_around(const gp_span_slot_t *slot)
{
    if (gp_span_is_unrecorded(slot->outer) || gp_span_slot_open(slot->outer) != NULL)
        return slot->outer;
    const gp_span_slot_t *request = gp_span_slot_open(slot->request);
    return request != NULL && request != slot ? slot->request : 0;
}

static void span_end_restore_trace(prof_coro_t *coro, const gp_span_slot_t *slot)
{
    uint64_t trace[2];
    gp_trace_of(coro, trace);
    if (memcmp(trace, slot->span.trace, sizeof(trace)) == 0)
        gp_trace_change(coro, slot->outer_trace);
}

// The span around one that is taken goes on.
static void span_end_restore(prof_coro_t *coro, const gp_span_slot_t *slot)
{
    if (slot->sets_trace)
        span_end_restore_trace(coro, slot);
    gp_ledger_edge_store(&gp_coro_context(coro)->span, span_end_around(slot));
    gp_otel_thread_update(gp_thread_self, coro);
}

// A span ends elsewhere: the outer span is open on its coroutine again, unless one was begun there meanwhile.
static void span_end_restore_from_outside(const gp_span_slot_t *slot, uint64_t handle)
{
    if (gp_span_is_known(slot))
        atomic_compare_exchange_strong_explicit(&gp_coro_context(slot->coro)->span, &handle, span_end_around(slot),
                                                memory_order_relaxed, memory_order_relaxed);
}

// Returns false: another thread has just ended it.
__attribute__((always_inline)) static inline bool
span_end_slot(gp_span_slot_t *slot, uint64_t handle, prof_coro_t *coro, bool is_on_it, unsigned flags, uint64_t now)
{
    if (!gp_span_slot_claim(slot, handle))
        return false;
    gp_span_watch_end(slot, (gp_request_end_t){0}, now);
    if (is_on_it)
        span_end_restore(coro, slot);
    else
        span_end_restore_from_outside(slot, handle);
    if (slot->process == gp_span_slot_process())
        gp_span_mark_send(slot, coro, flags, now);
    if (atomic_load_explicit(&slot->is_told, memory_order_relaxed))
        gp_span_past_keep(slot);
    gp_span_slot_give_back(handle);
    return true;
}

static bool span_end_one(uint64_t handle, prof_coro_t *coro, bool is_on_it, unsigned flags, uint64_t now)
{
    gp_span_slot_t *slot = gp_span_slot_open(handle);
    return slot != NULL && span_end_slot(slot, handle, coro, is_on_it, flags, now);
}

// Is `handle` open on the coroutine, perhaps with others within it?
static bool span_end_is_around(prof_coro_t *coro, uint64_t handle)
{
    uint64_t at = gp_ledger_edge_load(&gp_coro_context(coro)->span);
    for (gp_span_slot_t *slot; (slot = gp_span_slot_open(at)) != NULL && gp_span_is_own(slot, coro);
         at = span_end_around(slot))
        if (at == handle)
            return true;
    return false;
}

static bool span_end_on(prof_coro_t *coro, uint64_t handle, uint64_t now)
{
    for (uint64_t at; (at = gp_ledger_edge_load(&gp_coro_context(coro)->span)) != handle;) {
        if (!span_end_one(at, coro, true, GP_SPAN_REPAIRED, now))
            break;
        gp_span_count(GP_COUNTER_UNBALANCED_SPANS);
    }
    return span_end_one(handle, coro, true, 0, now);
}

// A span ended elsewhere may still be called open here.
static void span_end_drop_stale(prof_coro_t *coro)
{
    uint64_t at = gp_ledger_edge_load(&gp_coro_context(coro)->span);
    if (at != 0 && !gp_span_is_unrecorded(at) && gp_span_slot_open(at) == NULL)
        gp_ledger_edge_store(&gp_coro_context(coro)->span, 0);
}

// The slot of what is open on the coroutine, and its own, with nothing within it: as most are that end. Else NULL.
static gp_span_slot_t *span_end_innermost(prof_coro_t *coro, uint64_t handle)
{
    if (coro == NULL || gp_ledger_edge_load(&gp_coro_context(coro)->span) != handle)
        return NULL;
    gp_span_slot_t *slot = gp_span_slot_open(handle);
    return slot != NULL && gp_span_is_own(slot, coro) ? slot : NULL;
}

__attribute__((noinline)) static int span_end_recorded(uint64_t handle)
{
    prof_coro_t *coro = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
    gp_span_slot_t *slot = span_end_innermost(coro, handle);
    if (slot != NULL && span_end_slot(slot, handle, coro, true, 0, gp_span_edge_now()))
        return 0;
    if (coro != NULL)
        span_end_drop_stale(coro);
    bool is_on_it = coro != NULL && span_end_is_around(coro, handle);
    uint64_t now = gp_span_edge_now();
    if (is_on_it ? span_end_on(coro, handle, now) : span_end_one(handle, coro, false, 0, now))
        return 0;
    gp_span_count(GP_COUNTER_UNBALANCED_SPANS);
    return -EINVAL;
}

int prof_span_end(prof_span_t *span)
{
    uint64_t handle = (uintptr_t)span;
    if (handle == 0)
        return 0;
    if (!gp_span_is_unrecorded(handle))
        return span_end_recorded(handle);
    prof_coro_t *coro = gp_coro_of_caller((uintptr_t)__builtin_frame_address(0));
    if (coro != NULL && gp_ledger_edge_load(&gp_coro_context(coro)->span) == handle)
        gp_ledger_edge_store(&gp_coro_context(coro)->span, 0);
    return 0;
}

void gp_span_end_implicit(prof_coro_t *coro)
{
    span_end_drop_stale(coro);
    uint64_t at = gp_ledger_edge_load(&gp_coro_context(coro)->span);
    const gp_span_slot_t *slot = gp_span_slot_open(at);
    if (slot != NULL && gp_span_is_own(slot, coro) && gp_span_is_implicit(slot))
        span_end_on(coro, at, gp_span_edge_now());
}
