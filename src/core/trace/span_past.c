// SPDX-License-Identifier: MIT
#include "trace/span_past.h"

#include <string.h>

#include "trace/span_slot.h"

enum { SETS = 2048, WAYS = 4, BUSY = 1 }; // an id that is BUSY is no id of a span, but for one in 2^64

typedef struct past {
    _Atomic uint64_t id; // 0 = free, BUSY = being written; written last
    _Atomic uint64_t request, trace[2];
    _Atomic bool is_chosen;
} past_t;

static struct set {
    _Atomic uint32_t next; // the way that is the next to be replaced
    past_t ways[WAYS];
} sets[SETS];

static struct set *span_past_set(uint64_t id)
{
    return &sets[id % SETS]; // ids are random
}

void gp_span_past_keep(const gp_span_slot_t *slot)
{
    struct set *set = span_past_set(slot->span.id);
    past_t *past = &set->ways[atomic_fetch_add_explicit(&set->next, 1, memory_order_relaxed) % WAYS];
    uint64_t before = atomic_load_explicit(&past->id, memory_order_relaxed);
    if (before == BUSY ||
        !atomic_compare_exchange_strong_explicit(&past->id, &before, BUSY, memory_order_acquire, memory_order_relaxed))
        return;
    atomic_thread_fence(memory_order_release); // partner of the fence in span_past_read()
    atomic_store_explicit(&past->request, slot->request, memory_order_relaxed);
    atomic_store_explicit(&past->trace[0], slot->span.trace[0], memory_order_relaxed);
    atomic_store_explicit(&past->trace[1], slot->span.trace[1], memory_order_relaxed);
    atomic_store_explicit(&past->is_chosen, slot->span.is_chosen, memory_order_relaxed);
    // Release: partner of the acquire in span_past_read().
    atomic_store_explicit(&past->id, slot->span.id, memory_order_release);
}

static bool span_past_read(past_t *past, uint64_t id, gp_span_parent_t *parent)
{
    if (atomic_load_explicit(&past->id, memory_order_acquire) != id)
        return false;
    *parent = (gp_span_parent_t){
        .id = id,
        .request = atomic_load_explicit(&past->request, memory_order_relaxed),
        .trace = {atomic_load_explicit(&past->trace[0], memory_order_relaxed),
                  atomic_load_explicit(&past->trace[1], memory_order_relaxed)},
        .is_chosen = atomic_load_explicit(&past->is_chosen, memory_order_relaxed),
    };
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&past->id, memory_order_relaxed) == id;
}

// Find a span open in the process that forked this one: its id tells no handle here. Rare, and as long as there are
// slots.
static bool span_past_find_inherited(uint64_t id, gp_span_parent_t *parent)
{
    uint32_t count = gp_span_slot_process() != 1 ? gp_span_slot_count() : 0;
    for (uint32_t i = 0; i < count; i++) {
        const gp_span_slot_t *slot = gp_span_slot_nth(i);
        if (slot == NULL || slot->span.id != id || slot->process == gp_span_slot_process() ||
            !(atomic_load_explicit(&slot->generation, memory_order_acquire) & 1))
            continue;
        *parent =
            (gp_span_parent_t){id, slot->request, {slot->span.trace[0], slot->span.trace[1]}, slot->span.is_chosen};
        return true;
    }
    return false;
}

bool gp_span_past_find(uint64_t id, gp_span_parent_t *parent)
{
    struct set *set = span_past_set(id);
    for (unsigned i = 0; i < WAYS && id > BUSY; i++)
        if (span_past_read(&set->ways[i], id, parent))
            return true;
    return span_past_find_inherited(id, parent);
}
