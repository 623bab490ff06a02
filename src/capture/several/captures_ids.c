// SPDX-License-Identifier: MIT
#include "capture/several/captures_ids.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

// Numbers count from 1: a much larger one is damage, and no reason to ask for so much memory.
enum { NUMBERS_MAX = 1 << 27 };

static uint32_t *captures_ids_map_entry(gp_common_map_t *map, uint32_t number)
{
    if (number > NUMBERS_MAX)
        return NULL;
    if (number >= map->size) {
        size_t size = (size_t)number + number / 2 + 64;
        uint32_t *grown = realloc(map->numbers, size * sizeof(*grown));
        if (grown == NULL)
            return NULL;
        memset(grown + map->size, 0, (size - map->size) * sizeof(*grown));
        map->numbers = grown;
        map->size = size;
    }
    return &map->numbers[number];
}

static bool captures_ids_same_key(const void *owner, uint32_t number, const void *key)
{
    return memcmp(&((const gp_common_table_t *)owner)->keys[number], key, sizeof(gp_common_key_t)) == 0;
}

// Append to a table. Returns the number, 0 when memory is short.
static uint32_t captures_ids_add(gp_common_table_t *table, gp_common_key_t key)
{
    if (gp_grow(&table->keys, &table->capacity, table->count, sizeof(*table->keys)) < 0)
        return 0;
    table->keys[table->count] = key;
    return (uint32_t)++table->count;
}

static bool captures_ids_is_undefined(const gp_common_key_t *key)
{
    return key->words[0] == 0 && key->words[1] == 0;
}

uint32_t gp_common_define(gp_captures_ids_t *all, gp_capture_ids_t *ids, gp_common_t kind, uint32_t number,
                          gp_common_key_t key, bool *is_new)
{
    gp_common_table_t *table = &all->tables[kind];
    uint32_t *entry = captures_ids_map_entry(&ids->maps[kind], number);
    uint64_t hash = gp_hash_more(gp_hash_u64(key.words[0]), key.words[1]);
    uint32_t found = gp_index_find(&table->index, hash, captures_ids_same_key, table, &key);
    *is_new = found == GP_INDEX_NONE;
    if (entry == NULL)
        return 0;
    if (*entry != 0 && captures_ids_is_undefined(&table->keys[*entry - 1])) {
        // Referred to before: the number is given away, and has to be defined.
        if (*is_new && gp_index_add(&table->index, hash, *entry - 1) < 0)
            return 0;
        table->keys[*entry - 1] = key;
        *is_new = true;
        return *entry;
    }
    if (!*is_new)
        return *entry = found + 1;
    uint32_t added = captures_ids_add(table, key);
    if (added == 0 || gp_index_add(&table->index, hash, added - 1) < 0)
        return 0;
    return *entry = added;
}

uint32_t gp_common_find(gp_captures_ids_t *all, gp_capture_ids_t *ids, gp_common_t kind, uint32_t number)
{
    uint32_t *entry = number != 0 ? captures_ids_map_entry(&ids->maps[kind], number) : NULL;
    if (entry == NULL)
        return 0;
    if (*entry == 0) // without a key yet, and not in the index
        *entry = captures_ids_add(&all->tables[kind], (gp_common_key_t){0});
    return *entry;
}

gp_loc_t gp_common_loc(gp_captures_ids_t *all, gp_capture_ids_t *ids, gp_loc_t loc)
{
    uint32_t module = GP_LOC_MODULE(loc);
    uint64_t offset = GP_LOC_OFFSET(loc);
    if (module == GP_MODULE_PSEUDO || module == 0)
        return loc;
    if (module != GP_MODULE_LANGUAGE)
        return GP_LOC(gp_common_find(all, ids, GP_COMMON_MODULES, module), offset);
    uint32_t function = gp_common_find(all, ids, GP_COMMON_FUNCTIONS, GP_LANGUAGE_FUNCTION(offset));
    return GP_LOC(module, GP_LANGUAGE_OFFSET(function, GP_LANGUAGE_LINE(offset)));
}

void gp_captures_ids_free(gp_captures_ids_t *all)
{
    for (size_t i = 0; i < GP_COMMONS; i++) {
        free(all->tables[i].keys);
        gp_index_free(&all->tables[i].index);
    }
    memset(all, 0, sizeof(*all));
}

void gp_capture_ids_free(gp_capture_ids_t *ids)
{
    for (size_t i = 0; i < GP_COMMONS; i++)
        free(ids->maps[i].numbers);
    memset(ids, 0, sizeof(*ids));
}
