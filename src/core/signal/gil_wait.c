// SPDX-License-Identifier: MIT
#include "signal/gil_wait.h"

#include <string.h>

#include "signal/sampling.h"
#include "signal/scope_record.h"

enum {
    TOLD_NS = 500000,    // waits that add up to this are worth a sample
    OPEN_NS = 100000000, // and so much of a wait that goes on
    TRIES = 3,
};

// Whose time it is: the coroutine that has the thread.
static prof_coro_t *gil_wait_owner(gp_thread_t *thread, uint64_t *id)
{
    prof_coro_t *coro = atomic_load_explicit(&thread->current, memory_order_relaxed);
    *id = atomic_load_explicit(&thread->current_id, memory_order_relaxed);
    if (coro != NULL && gp_ledger_edge_load(&coro->id) == *id)
        return coro;
    *id = thread->root_id;
    return thread->root;
}

// Add ticks to those that no sample has; what others have left there stays in their ledger alone.
static void gil_wait_keep(gp_thread_t *thread, uint64_t since, uint64_t ticks, uint32_t holder)
{
    gp_thread_gil_t *gil = &thread->gil;
    uint64_t id, trace[2];
    prof_coro_t *coro = gil_wait_owner(thread, &id);
    for (int i = 0; i < 2; i++)
        trace[i] = gp_ledger_edge_load(&gp_coro_context(coro)->trace[i]);
    gp_coro_add(gp_coro_gil_ns(coro), gp_ticks_to_ns(ticks));
    if (gil->untold == 0 || gil->coro_id != id || gil->trace[0] != trace[0] || gil->trace[1] != trace[1]) {
        gil->untold = gil->longest = 0;
        gil->from = since;
        gil->coro_id = id;
        gil->trace[0] = trace[0];
        gil->trace[1] = trace[1];
    }
    gil->untold += ticks;
    if (ticks >= gil->longest) {
        gil->longest = ticks;
        gil->holder = holder;
    }
}

bool gp_gil_wait_end(gp_thread_t *thread, const gp_gil_wait_t *wait)
{
    uint64_t now = wait->now;
    gp_thread_gil_t *gil = &thread->gil;
    uint64_t since = atomic_load_explicit(&gil->since, memory_order_relaxed);
    uint64_t over = gp_ledger_edge_load(&gp_ledger_edge_epoch_over), upto = now < over ? now : over,
             epoch = gp_ledger_edge_load(&gp_ledger_edge_epoch_ticks), from = since > epoch ? since : epoch;
    gp_coro_add(&gil->ticks, now - since);
    gp_coro_add(&gil->late_ns, gp_ticks_to_ns(wait->late));
    atomic_store_explicit(&gil->since, 0, memory_order_release);
    if (upto <= from)
        return false;
    gil_wait_keep(thread, from, upto - from, wait->holder);
    uint64_t untold_ns = gp_ticks_to_ns(gil->untold);
    return over == UINT64_MAX && untold_ns >= (wait->goes_on ? OPEN_NS : TOLD_NS);
}

void gp_gil_wait_sample(gp_thread_t *thread, uint64_t now, const uintptr_t *frames, size_t depth, unsigned flags)
{
    uint64_t id;
    prof_coro_t *coro = gil_wait_owner(thread, &id);
    gp_sample_t *sample = gp_ring_reserve(&thread->ring, (uint32_t)(sizeof(*sample) + depth * sizeof(uintptr_t)));
    if (sample == NULL) {
        gp_thread_count(thread, GP_COUNTER_LOST_WAITS);
        return;
    }
    gp_scope_t *scope = atomic_load_explicit(&gp_coro_context(coro)->scope, memory_order_acquire);
    sample->ticks = now;
    sample->weight_ns = gp_ticks_to_ns(thread->gil.untold);
    sample->off_ns = 0;
    sample->slice = thread->gil.from;
    sample->coro = coro;
    sample->coro_id = id;
    sample->trace[0] = thread->gil.trace[0];
    sample->trace[1] = thread->gil.trace[1];
    sample->scope = scope != NULL ? scope->index : 0;
    sample->flags = flags;
    sample->depth = depth;
    memcpy(sample->frames, frames, depth * sizeof(uintptr_t));
    thread->gil.untold = 0;
    gp_thread_commit(thread, sample, GP_RING_GIL);
    if (gp_ring_is_pressed(&thread->ring))
        gp_handler_kick();
}

uint64_t gp_gil_waited(const gp_thread_t *thread, uint64_t now)
{
    uint64_t since = 0, ticks = 0;
    for (int i = 0; i < TRIES; i++) {
        since = atomic_load_explicit(&thread->gil.since, memory_order_acquire);
        ticks = atomic_load_explicit(&thread->gil.ticks, memory_order_acquire);
        if (atomic_load_explicit(&thread->gil.since, memory_order_relaxed) == since)
            break;
    }
    return ticks + (since != 0 && now > since ? now - since : 0);
}

uint64_t gp_gil_waited_since(const gp_thread_t *thread, uint64_t now, uint64_t *before)
{
    uint64_t ticks = gp_gil_waited(thread, now), more = ticks > *before ? ticks - *before : 0;
    *before = ticks;
    return gp_ticks_to_ns(more);
}
