// SPDX-License-Identifier: MIT
#include "signal/gil_wait.h"

#include <string.h>

#include "signal/sampling.h"
#include "signal/scope_record.h"

enum {
    TOLD_NS = 500000,     // waits that add up to this are worth a sample
    OPEN_NS = 100000000,  // and so much of a wait that goes on
    LONG_NS = 1000000000, // a wait that goes on for longer is told by others
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

// Returns NULL where there is no room.
static gp_sample_t *gil_wait_reserve(gp_thread_t *thread, uint64_t now, size_t depth)
{
    uint64_t id;
    prof_coro_t *coro = gil_wait_owner(thread, &id);
    gp_sample_t *sample = gp_ring_reserve(&thread->ring, (uint32_t)(sizeof(*sample) + depth * sizeof(uintptr_t)));
    if (sample == NULL) {
        gp_thread_count(thread, GP_COUNTER_LOST_WAITS);
        return NULL;
    }
    gp_coro_context_t *context = gp_coro_context(coro);
    gp_scope_t *scope = atomic_load_explicit(&context->scope, memory_order_acquire);
    sample->ticks = now;
    sample->off_ns = 0;
    sample->coro = coro;
    sample->coro_id = id;
    for (int i = 0; i < 2; i++)
        sample->trace[i] = gp_ledger_edge_load(&context->trace[i]);
    sample->scope = scope != NULL ? scope->index : 0;
    sample->depth = depth;
    return sample;
}

static void gil_wait_commit(gp_thread_t *thread, gp_sample_t *sample, enum gp_ring_type type)
{
    gp_thread_commit(thread, sample, type);
    if (gp_ring_is_pressed(&thread->ring))
        gp_handler_kick();
}

void gp_gil_wait_sample(gp_thread_t *thread, uint64_t now, const uintptr_t *frames, size_t depth, unsigned flags)
{
    gp_sample_t *sample = gil_wait_reserve(thread, now, depth);
    if (sample == NULL)
        return;
    sample->weight_ns = gp_ticks_to_ns(thread->gil.untold);
    sample->slice = thread->gil.from;
    sample->trace[0] = thread->gil.trace[0];
    sample->trace[1] = thread->gil.trace[1];
    sample->flags = flags;
    memcpy(sample->frames, frames, depth * sizeof(uintptr_t));
    thread->gil.untold = 0;
    gil_wait_commit(thread, sample, GP_RING_GIL);
}

// The part of [from, now) within the epoch.
static uint64_t gil_wait_recorded(uint64_t from, uint64_t now)
{
    uint64_t over = gp_ledger_edge_load(&gp_ledger_edge_epoch_over), upto = now < over ? now : over,
             epoch = gp_ledger_edge_load(&gp_ledger_edge_epoch_ticks);
    from = from > epoch ? from : epoch;
    return upto > from ? upto - from : 0;
}

uint64_t gp_lock_wait_end(gp_thread_t *thread, uint64_t now, uint64_t late, bool is_lock)
{
    gp_thread_gil_t *gil = &thread->gil;
    uint64_t id, since = atomic_load_explicit(&gil->since, memory_order_relaxed),
                 told = atomic_exchange_explicit(&gil->lock.told, 0, memory_order_acq_rel);
    uint64_t ticks = is_lock ? gil_wait_recorded(told, now) : 0;
    if (is_lock) {
        gp_coro_add(&gil->ticks, now - since);
        gp_coro_add(&gil->late_ns, gp_ticks_to_ns(late));
        atomic_fetch_add_explicit(gp_coro_lock_ns(gil_wait_owner(thread, &id)), gp_ticks_to_ns(ticks),
                                  memory_order_relaxed);
    }
    atomic_store_explicit(&gil->since, 0, memory_order_release);
    return gp_ledger_edge_load(&gp_ledger_edge_epoch_over) == UINT64_MAX ? ticks : 0;
}

void gp_lock_wait_sample(gp_thread_t *thread, uint64_t now, uint64_t ticks, const gp_lock_stack_t *stack)
{
    gp_sample_t *sample = gil_wait_reserve(thread, now, stack->count + stack->depth);
    if (sample == NULL)
        return;
    sample->weight_ns = gp_ticks_to_ns(ticks);
    sample->slice = now - ticks;
    sample->flags = stack->flags | GP_SAMPLE_LOCK;
    memcpy(sample->frames, stack->words, stack->count * sizeof(uintptr_t));
    memcpy(sample->frames + stack->count, stack->frames, stack->depth * sizeof(uintptr_t));
    gil_wait_commit(thread, sample, GP_RING_LOCK);
}

size_t gp_lock_wait_words(const gp_thread_t *thread, uintptr_t words[GP_LOCK_WORDS], uint32_t *owner)
{
    const gp_thread_lock_t *lock = &thread->gil.lock;
    uint64_t since = atomic_load_explicit(&thread->gil.since, memory_order_acquire);
    size_t count = lock->count <= GP_LOCK_WORDS ? lock->count : 0;
    if (since == 0 || !gp_lock_is_waited_for(thread))
        return 0;
    for (size_t i = 0; i < count; i++)
        words[i] = __atomic_load_n(&lock->words[i], __ATOMIC_RELAXED);
    const _Atomic uint32_t *now = __atomic_load_n(&lock->owner, __ATOMIC_RELAXED);
    if (now != NULL)
        *owner = atomic_load_explicit(now, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&thread->gil.since, memory_order_relaxed) == since ? count : 0;
}

static bool gil_wait_is_due(uint64_t told, uint64_t now)
{
    return told != 0 && now > told && gp_ticks_to_ns(now - told) >= LONG_NS;
}

bool gp_lock_wait_is_due(const gp_thread_t *thread, uint64_t now)
{
    return gil_wait_is_due(atomic_load_explicit(&thread->gil.lock.told, memory_order_acquire), now);
}

uint64_t gp_lock_wait_take(gp_thread_t *thread, uint64_t now)
{
    uint64_t told = atomic_load_explicit(&thread->gil.lock.told, memory_order_acquire);
    if (!gil_wait_is_due(told, now) ||
        !atomic_compare_exchange_strong_explicit(&thread->gil.lock.told, &told, now, memory_order_acq_rel,
                                                 memory_order_relaxed))
        return 0;
    return gil_wait_recorded(told, now);
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
