// SPDX-License-Identifier: MIT
#include "base/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"

static size_t index_slot_of(const gp_index_t *index, uint64_t hash)
{
    return (size_t)(hash >> 32) & (index->size - 1);
}

uint32_t gp_index_find(const gp_index_t *index, uint64_t hash, gp_index_same_t same, const void *owner, const void *key)
{
    if (index->size == 0)
        return GP_INDEX_NONE;
    for (size_t slot = index_slot_of(index, hash); index->slots[slot] != 0; slot = (slot + 1) & (index->size - 1)) {
        uint32_t number = (uint32_t)index->slots[slot] - 1;
        if (index->slots[slot] >> 32 == hash >> 32 && same(owner, number, key))
            return number;
    }
    return GP_INDEX_NONE;
}

static void index_place(gp_index_t *index, uint64_t entry)
{
    size_t slot = index_slot_of(index, entry);
    while (index->slots[slot] != 0)
        slot = (slot + 1) & (index->size - 1);
    index->slots[slot] = entry;
}

static int index_enlarge(gp_index_t *index, size_t size)
{
    gp_index_t larger = {.size = size};
    // Spare room is touched only as it fills.
    larger.slots = index->count > 0 ? gp_memory_zeroed(larger.size * sizeof(*larger.slots))
                                    : gp_memory_had(calloc(larger.size, sizeof(*larger.slots)));
    if (larger.slots == NULL)
        return -ENOMEM;
    for (size_t slot = 0; slot < index->size; slot++)
        if (index->slots[slot] != 0)
            index_place(&larger, index->slots[slot]);
    free(index->slots);
    index->slots = larger.slots;
    index->size = larger.size;
    return 0;
}

int gp_index_add(gp_index_t *index, uint64_t hash, uint32_t number)
{
    if (index->count + 1 > index->size / 2 && index_enlarge(index, index->size ? index->size * 2 : 64) < 0)
        return -ENOMEM;
    index_place(index, (hash >> 32) << 32 | (uint64_t)(number + 1));
    index->count++;
    return 0;
}

int gp_index_reserve(gp_index_t *index, size_t count)
{
    size_t size = index->size ? index->size : 64;
    while (size / 2 < count)
        size *= 2;
    return size > index->size ? index_enlarge(index, size) : 0;
}

void gp_index_clear(gp_index_t *index)
{
    if (index->count > 0)
        memset(index->slots, 0, index->size * sizeof(*index->slots));
    index->count = 0;
}

void gp_index_free(gp_index_t *index)
{
    free(index->slots);
    *index = (gp_index_t){0};
}

uint64_t gp_hash_bytes(const void *bytes, size_t len)
{
    return XXH3_64bits(bytes, len);
}
