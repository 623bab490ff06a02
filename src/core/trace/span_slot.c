// SPDX-License-Identifier: MIT
#include "trace/span_slot.h"

#include "coro/helper_memory.h"
#include "signal/thread.h"

enum {
    CHUNK_LOG2 = GP_SPAN_SLOT_CHUNK_LOG2,
    CHUNK = 1 << CHUNK_LOG2,
    CHUNKS_MAX = 1 << (GP_SPAN_SLOT_INDEX_BITS - CHUNK_LOG2),
};

_Atomic(gp_span_slot_t *) gp_span_slot_chunks[CHUNKS_MAX];
static _Atomic uint32_t slot_count;  // that have a chunk
static _Atomic uint64_t free_slots;  // number + 1 of the first; a count above, which makes each state a new one
static _Atomic uint32_t process = 1; // raised in a forked child

static void span_slot_put_slots(uint32_t first, uint32_t last)
{
    uint64_t head = atomic_load_explicit(&free_slots, memory_order_relaxed), now;
    do {
        atomic_store_explicit(&gp_span_slot_at(last)->next, (uint32_t)head, memory_order_relaxed);
        now = ((head >> 32) + 1) << 32 | (first + 1);
        // Release: partner of the acquire in span_slot_pop_slot().
    } while (
        !atomic_compare_exchange_weak_explicit(&free_slots, &head, now, memory_order_release, memory_order_relaxed));
}

static bool span_slot_pop_slot(uint32_t *number)
{
    uint64_t head = atomic_load_explicit(&free_slots, memory_order_acquire), now;
    do {
        if ((uint32_t)head == 0)
            return false;
        *number = (uint32_t)head - 1;
        // Slots are never unmapped: one that another thread has taken meanwhile is read in vain.
        now = ((head >> 32) + 1) << 32 | atomic_load_explicit(&gp_span_slot_at(*number)->next, memory_order_relaxed);
    } while (
        !atomic_compare_exchange_weak_explicit(&free_slots, &head, now, memory_order_acquire, memory_order_acquire));
    return true;
}

// Returns false where memory is short, or there are as many as there may be.
static bool span_slot_map_slots(void)
{
    uint32_t first = atomic_load_explicit(&slot_count, memory_order_relaxed);
    do {
        if (first >> CHUNK_LOG2 >= CHUNKS_MAX)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&slot_count, &first, first + CHUNK, memory_order_relaxed,
                                                    memory_order_relaxed));
    gp_span_slot_t *chunk = gp_own_map(CHUNK * sizeof(gp_span_slot_t));
    if (chunk == NULL)
        return false; // these numbers stay without slots
    // Release: partner of the acquires in gp_span_slot_at() and gp_span_slot_open().
    atomic_store_explicit(&gp_span_slot_chunks[first >> CHUNK_LOG2], chunk, memory_order_release);
    for (uint32_t i = 0; i + 1 < CHUNK; i++)
        atomic_store_explicit(&chunk[i].next, first + i + 2, memory_order_relaxed);
    span_slot_put_slots(first, first + CHUNK - 1);
    return true;
}

gp_span_slot_t *gp_span_slot_take_shared(uint32_t *number)
{
    if (!span_slot_pop_slot(number) && (!span_slot_map_slots() || !span_slot_pop_slot(number))) {
        gp_span_count(GP_COUNTER_LOST_SPANS);
        return NULL;
    }
    return gp_span_slot_at(*number);
}

void gp_span_slot_share(uint32_t number)
{
    span_slot_put_slots(number, number);
}

uint32_t gp_span_slot_count(void)
{
    return atomic_load_explicit(&slot_count, memory_order_relaxed);
}

const gp_span_slot_t *gp_span_slot_nth(uint32_t number)
{
    return atomic_load_explicit(&gp_span_slot_chunks[number >> CHUNK_LOG2], memory_order_acquire) != NULL
               ? gp_span_slot_at(number)
               : NULL;
}

uint32_t gp_span_slot_process(void)
{
    return atomic_load_explicit(&process, memory_order_relaxed);
}

void gp_span_slots_after_fork(void)
{
    atomic_fetch_add_explicit(&process, 1, memory_order_relaxed);
}
