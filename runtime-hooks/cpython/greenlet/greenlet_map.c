// SPDX-License-Identifier: MIT
#include "greenlet/greenlet_map.h"

#include <stdlib.h>

enum { FIRST_ROOM = 256 };

static size_t used;

static gp_greenlet_table_t *greenlet_map_current_table(void)
{
    return atomic_load_explicit(&gp_greenlet_table, memory_order_relaxed); // the caller holds the lock
}

// The slot of a greenlet, or the free one where it belongs.
static gp_greenlet_t *greenlet_map_slot_of(gp_greenlet_table_t *table, const void *greenlet)
{
    size_t at = gp_greenlet_home(table, greenlet);
    while (table->slots[at].greenlet != NULL && table->slots[at].greenlet != greenlet)
        at = (at + 1) & table->mask;
    return &table->slots[at];
}

// A reader between the two steps throws away what it has read.
static void greenlet_map_write_slot(gp_greenlet_t *slot, const gp_greenlet_t *record)
{
    uint32_t version = atomic_load_explicit(&gp_greenlet_version, memory_order_relaxed);
    atomic_store_explicit(&gp_greenlet_version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); // pairs with gp_greenlet_read()'s second look
    __atomic_store_n(&slot->greenlet, record->greenlet, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->coro, record->coro, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->coro_id, record->coro_id, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->object, record->object, __ATOMIC_RELAXED);
    atomic_store_explicit(&gp_greenlet_version, version + 2, memory_order_release);
}

static gp_greenlet_table_t *greenlet_map_grow(gp_greenlet_table_t *old)
{
    size_t room = old != NULL ? (old->mask + 1) * 2 : FIRST_ROOM;
    gp_greenlet_table_t *bigger = calloc(1, sizeof(*bigger) + room * sizeof(bigger->slots[0]));
    if (bigger == NULL)
        return NULL;
    bigger->smaller = old;
    bigger->mask = room - 1;
    for (size_t i = 0; i < room / 2 && old != NULL; i++)
        if (old->slots[i].greenlet != NULL)
            *greenlet_map_slot_of(bigger, old->slots[i].greenlet) = old->slots[i];
    atomic_store_explicit(&gp_greenlet_table, bigger, memory_order_release);
    return bigger;
}

gp_greenlet_t *gp_greenlet_find(const void *greenlet)
{
    gp_greenlet_table_t *table = greenlet_map_current_table();
    gp_greenlet_t *found = table != NULL ? greenlet_map_slot_of(table, greenlet) : NULL;
    return found != NULL && found->greenlet != NULL ? found : NULL;
}

void gp_greenlet_put(const gp_greenlet_t *record)
{
    gp_greenlet_t *slot = gp_greenlet_find(record->greenlet);
    gp_greenlet_table_t *table = greenlet_map_current_table();
    if (slot == NULL) {
        if ((table == NULL || used * 2 > table->mask) && (table = greenlet_map_grow(table)) == NULL)
            return;
        slot = greenlet_map_slot_of(table, record->greenlet);
        used++;
    }
    greenlet_map_write_slot(slot, record);
}

prof_coro_t *gp_greenlet_take(const void *greenlet)
{
    gp_greenlet_t *found = gp_greenlet_find(greenlet);
    if (found == NULL)
        return NULL;
    gp_greenlet_table_t *table = greenlet_map_current_table();
    prof_coro_t *coro = found->coro;
    // Slots behind it, out of reach past the gap, move up, the copy first: a reader finds one of the two.
    size_t gap = (size_t)(found - table->slots);
    for (size_t at = (gap + 1) & table->mask; table->slots[at].greenlet != NULL; at = (at + 1) & table->mask) {
        size_t wanted = gp_greenlet_home(table, table->slots[at].greenlet);
        if (((at - wanted) & table->mask) >= ((at - gap) & table->mask)) {
            greenlet_map_write_slot(&table->slots[gap], &table->slots[at]);
            gap = at;
        }
    }
    greenlet_map_write_slot(&table->slots[gap], &(gp_greenlet_t){0});
    used--;
    return coro;
}
