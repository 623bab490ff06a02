// SPDX-License-Identifier: MIT
#include "capture/write/intern.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { FIRST_SIZE = 1024 };

struct gp_intern_slot {
    uint64_t key[2];
    uint32_t number; // 0 = empty
};
_Static_assert(sizeof(struct gp_intern_slot) == GP_INTERN_SLOT_BYTES, "as the limit is reckoned");

static struct gp_intern_slot *intern_find(const gp_intern_t *table, uint64_t key0, uint64_t key1)
{
    uint32_t at = (uint32_t)((key0 ^ key1 * 0x9e3779b97f4a7c15ull) * 0x9e3779b97f4a7c15ull >> 32) & table->mask;
    while (table->slots[at].number != 0 && (table->slots[at].key[0] != key0 || table->slots[at].key[1] != key1))
        at = (at + 1) & table->mask;
    return &table->slots[at];
}

static bool intern_grow(gp_intern_t *table)
{
    uint32_t size = table->slots != NULL ? (table->mask + 1) * 2 : FIRST_SIZE;
    uint32_t most = table->limit != 0 ? table->limit : (uint32_t)GP_INTERN_SLOTS;
    if (size > most && table->last == UINT32_MAX)
        return true; // out of numbers: known entries stay
    if (size > most) {
        table->anew++;
        memset(table->slots, 0, sizeof(*table->slots) * (table->mask + 1));
        table->used = 0;
        return true;
    }
    gp_intern_t bigger = {.slots = calloc(size, sizeof(*table->slots)), .mask = size - 1};
    if (bigger.slots == NULL)
        return false;
    for (uint32_t i = 0; table->slots != NULL && i <= table->mask; i++)
        if (table->slots[i].number != 0)
            *intern_find(&bigger, table->slots[i].key[0], table->slots[i].key[1]) = table->slots[i];
    free(table->slots);
    table->slots = bigger.slots;
    table->mask = bigger.mask;
    return true;
}

uint32_t gp_intern(gp_intern_t *table, uint64_t key0, uint64_t key1, bool *is_new)
{
    *is_new = false;
    if ((table->slots == NULL || table->used >= table->mask / 2) && !intern_grow(table))
        return 0;
    struct gp_intern_slot *slot = intern_find(table, key0, key1);
    if (slot->number == 0 && table->last < UINT32_MAX) {
        *slot = (struct gp_intern_slot){{key0, key1}, ++table->last};
        table->used++;
        *is_new = true;
    }
    return slot->number;
}

void gp_intern_undo(gp_intern_t *table, uint64_t key0, uint64_t key1)
{
    struct gp_intern_slot *slot = intern_find(table, key0, key1);
    if (slot->number == 0 || slot->number != table->last) // the latest: it moved no other key on
        return;
    slot->number = 0;
    table->used--;
    table->last--;
}

void gp_intern_key(const void *bytes, size_t length, uint64_t key[2])
{
    XXH128_hash_t hash = XXH3_128bits(bytes, length);
    key[0] = hash.low64;
    key[1] = hash.high64;
}

void gp_intern_reset(gp_intern_t *table)
{
    uint32_t limit = table->limit;
    free(table->slots);
    memset(table, 0, sizeof(*table));
    table->limit = limit;
}
