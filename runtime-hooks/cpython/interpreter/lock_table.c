// SPDX-License-Identifier: MIT
#include "interpreter/lock_table.h"

#include <stddef.h>

#include "signal/ledger_edges.h"

enum { SLOTS = 4096, ROWS = 64, GIVES = 32 };

typedef struct give {
    _Atomic uintptr_t lock;
    _Atomic uint64_t ticks;
    _Atomic uint32_t thread;
    _Atomic uintptr_t code;
    _Atomic bool by_owner;
} give_t;

static gp_lock_slot_t slots[SLOTS];
static give_t gives[ROWS][GIVES]; // of locks that are waited for, the latest ones
static _Atomic uint32_t give_count[ROWS];

#define RELAXED memory_order_relaxed

// which: 0, 1.
static gp_lock_slot_t *lock_table_slot(uintptr_t lock, unsigned which)
{
    return &slots[(lock * 0x9e3779b97f4a7c15ull >> 52) ^ which]; // the upper 12 bits
}

static size_t lock_table_row(const gp_lock_slot_t *slot)
{
    return (size_t)(slot - slots) % ROWS;
}

// Is it the slot of that lock? While recording rests, takes and gives go by unseen.
static bool lock_table_is_of(gp_lock_slot_t *slot, uintptr_t lock)
{
    uint64_t epoch = gp_ledger_edge_load(&gp_ledger_edge_epoch_ticks);
    if (atomic_load_explicit(&slot->lock, RELAXED) != lock)
        return false;
    if (atomic_load_explicit(&slot->epoch, RELAXED) != epoch) {
        atomic_store_explicit(&slot->owner, 0, RELAXED);
        atomic_store_explicit(&slot->is_doubtful, false, RELAXED);
        atomic_store_explicit(&slot->epoch, epoch, RELAXED);
    }
    return true;
}

gp_lock_slot_t *gp_lock_slot_find(uintptr_t lock)
{
    for (unsigned i = 0; i < 2; i++)
        if (lock_table_is_of(lock_table_slot(lock, i), lock))
            return lock_table_slot(lock, i);
    return NULL;
}

// The slot to be taken over: a free one first.
static gp_lock_slot_t *lock_table_spare(uintptr_t lock)
{
    gp_lock_slot_t *first = lock_table_slot(lock, 0), *second = lock_table_slot(lock, 1);
    bool is_second =
        atomic_load_explicit(&first->waiters, RELAXED) != 0 ||
        (atomic_load_explicit(&first->lock, RELAXED) != 0 && atomic_load_explicit(&second->lock, RELAXED) == 0);
    gp_lock_slot_t *slot = is_second ? second : first;
    return atomic_load_explicit(&slot->waiters, RELAXED) == 0 ? slot : NULL;
}

gp_lock_slot_t *gp_lock_slot_claim(uintptr_t lock)
{
    gp_lock_slot_t *slot = gp_lock_slot_find(lock);
    if (slot != NULL)
        return slot;
    slot = lock_table_spare(lock);
    if (slot == NULL)
        return NULL;
    atomic_store_explicit(&slot->lock, lock, RELAXED);
    atomic_store_explicit(&slot->owner, 0, RELAXED);
    atomic_store_explicit(&slot->epoch, gp_ledger_edge_load(&gp_ledger_edge_epoch_ticks), RELAXED);
    atomic_store_explicit(&slot->maker, 0, RELAXED);
    atomic_store_explicit(&slot->looked, 0, RELAXED);
    atomic_store_explicit(&slot->is_event, false, RELAXED);
    atomic_store_explicit(&slot->is_doubtful, false, RELAXED);
    return slot;
}

void gp_lock_table_begin_anew(void)
{
    for (size_t i = 0; i < SLOTS; i++) {
        atomic_store_explicit(&slots[i].owner, 0, RELAXED);
        atomic_store_explicit(&slots[i].waiters, 0, RELAXED);
    }
}

bool gp_lock_slot_leave(gp_lock_slot_t *slot, uint32_t thread, bool *by_owner)
{
    uint32_t owner = atomic_load_explicit(&slot->owner, RELAXED);
    atomic_store_explicit(&slot->owner, 0, RELAXED);
    atomic_store_explicit(&slot->is_doubtful, false, RELAXED);
    *by_owner = owner == thread || owner == 0;
    if (!*by_owner)
        atomic_store_explicit(&slot->is_event, true, RELAXED);
    return atomic_load_explicit(&slot->waiters, RELAXED) != 0;
}

void gp_lock_slot_give(const gp_lock_slot_t *slot, const gp_lock_give_t *give)
{
    size_t row = lock_table_row(slot);
    give_t *kept = &gives[row][atomic_fetch_add_explicit(&give_count[row], 1, RELAXED) % GIVES];
    atomic_store_explicit(&kept->lock, atomic_load_explicit(&slot->lock, RELAXED), RELAXED);
    atomic_store_explicit(&kept->thread, give->thread, RELAXED);
    atomic_store_explicit(&kept->code, give->code, RELAXED);
    atomic_store_explicit(&kept->by_owner, give->by_owner, RELAXED);
    // Release: partner of the acquire below; the semaphore itself orders the two for the thread that gets it.
    atomic_store_explicit(&kept->ticks, give->ticks, memory_order_release);
}

// From the owner of now, or the last one, back to those before.
gp_lock_held_t gp_lock_slot_held(const gp_lock_slot_t *slot, uint64_t since, uint64_t now, uint32_t owner)
{
    gp_lock_held_t held = {0};
    size_t row = lock_table_row(slot);
    uintptr_t lock = atomic_load_explicit(&slot->lock, RELAXED);
    uint32_t count = atomic_load_explicit(&give_count[row], RELAXED);
    uint64_t upto = now, longest = 0;
    uintptr_t code = 0;
    for (uint32_t i = 0; i <= GIVES && upto > since; i++) {
        give_t *give = &gives[row][(count - 1 - i) % GIVES];
        uint64_t ticks = i < GIVES ? atomic_load_explicit(&give->ticks, memory_order_acquire) : 0;
        bool is_older = ticks <= since;
        if (!is_older && (atomic_load_explicit(&give->lock, RELAXED) != lock || ticks > upto))
            continue; // another lock's
        uint64_t from = is_older ? since : ticks;
        if (owner != 0 && upto - from > longest) {
            longest = upto - from;
            held.thread = owner;
            held.code = code;
        }
        if (!is_older && held.given == 0) {
            held.given = ticks;
            held.by_owner = atomic_load_explicit(&give->by_owner, RELAXED);
        }
        upto = from;
        owner = atomic_load_explicit(&give->thread, RELAXED);
        code = atomic_load_explicit(&give->code, RELAXED);
    }
    return held;
}
