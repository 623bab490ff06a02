// SPDX-License-Identifier: MIT
#include "base/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static uint8_t *table_item(const gp_table_t *table, uint32_t number)
{
    return (uint8_t *)table->items + number * table->item_bytes;
}

static bool table_same_id(const void *owner, uint32_t number, const void *key)
{
    const gp_table_t *table = owner;
    return memcmp(table_item(table, number) + table->id_at, key, table->id_bytes) == 0; // little-endian
}

uint32_t gp_table_find_far(const gp_table_t *table, uint64_t id)
{
    return gp_index_find(&table->index, gp_hash_u64(id), table_same_id, table, &id);
}

uint32_t gp_table_append(gp_table_t *table)
{
    if (gp_grow(&table->items, &table->capacity, table->count, table->item_bytes) < 0)
        return GP_INDEX_NONE;
    memset(table_item(table, (uint32_t)table->count), 0, table->item_bytes);
    return (uint32_t)table->count++;
}

static int table_lead_to(gp_table_t *table, uint64_t id, uint32_t number)
{
    if (!table->is_sparse && gp_id_map_add(&table->map, id, number))
        return 0;
    return gp_index_add(&table->index, gp_hash_u64(id), number);
}

uint32_t gp_table_add(gp_table_t *table, uint64_t id)
{
    uint32_t number = gp_table_append(table);
    if (number == GP_INDEX_NONE)
        return GP_INDEX_NONE;
    if (table_lead_to(table, id, number) < 0) {
        table->count--;
        return GP_INDEX_NONE;
    }
    memcpy(table_item(table, number) + table->id_at, &id, table->id_bytes);
    return number;
}

int gp_table_index(gp_table_t *table)
{
    gp_id_map_free(&table->map);
    gp_index_free(&table->index);
    for (uint32_t i = 0; i < table->count; i++) {
        uint64_t id = 0;
        memcpy(&id, table_item(table, i) + table->id_at, table->id_bytes);
        if (gp_table_find(table, id) == GP_INDEX_NONE && table_lead_to(table, id, i) < 0)
            return -ENOMEM;
    }
    return 0;
}

size_t gp_table_bytes(const gp_table_t *table)
{
    return table->capacity * table->item_bytes + table->map.size * sizeof(*table->map.numbers) +
           table->index.size * sizeof(*table->index.slots);
}

void gp_table_free(gp_table_t *table)
{
    free(table->items);
    gp_id_map_free(&table->map);
    gp_index_free(&table->index);
    table->items = NULL;
    table->count = table->capacity = 0;
}
