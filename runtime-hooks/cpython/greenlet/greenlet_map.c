// SPDX-License-Identifier: MIT
#include "greenlet/greenlet_map.h"

#include <stdlib.h>

enum { FIRST_ROOM = 256 };

#define table gp_greenlet_table

static void begin(void)
{
    atomic_store_explicit(&table.changing, true, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

static void end(void)
{
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&table.changing, false, memory_order_relaxed);
}

static int grow(void)
{
    size_t old_room = table.slots != NULL ? table.mask + 1 : 0, room = old_room > 0 ? old_room * 2 : FIRST_ROOM;
    gp_greenlet_t *old = table.slots, *bigger = calloc(room, sizeof(*bigger));
    if (bigger == NULL)
        return 0;
    begin();
    table.slots = bigger;
    table.mask = room - 1;
    for (size_t i = 0; i < old_room; i++)
        if (old[i].greenlet != NULL)
            bigger[gp_greenlet_slot(old[i].greenlet)] = old[i];
    end();
    free(old);
    return 1;
}

void gp_greenlet_put(const gp_greenlet_t *record)
{
    if ((table.slots == NULL || table.used * 2 > table.mask) && !grow())
        return;
    gp_greenlet_t *slot = &table.slots[gp_greenlet_slot(record->greenlet)];
    begin();
    table.used += slot->greenlet == NULL;
    *slot = *record;
    end();
}

prof_coro_t *gp_greenlet_take(const void *greenlet)
{
    gp_greenlet_t *found = gp_greenlet_find(greenlet);
    if (found == NULL)
        return NULL;
    prof_coro_t *coro = found->coro;
    // Those behind it that would not be found past the gap move up.
    size_t gap = (size_t)(found - table.slots);
    begin();
    for (size_t slot = (gap + 1) & table.mask; table.slots[slot].greenlet != NULL; slot = (slot + 1) & table.mask) {
        size_t wanted = gp_greenlet_home(table.slots[slot].greenlet);
        if (((slot - wanted) & table.mask) >= ((slot - gap) & table.mask)) {
            table.slots[gap] = table.slots[slot];
            gap = slot;
        }
    }
    table.slots[gap].greenlet = NULL;
    table.used--;
    end();
    return coro;
}
