// SPDX-License-Identifier: MIT
#include "merge_ids.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

// Numbers count from 1: a much larger one is damage, and no reason to ask for so much memory.
enum { NUMBERS_MAX = 1 << 27 };

void gp_merge_ids_next(gp_merge_ids_t *ids)
{
    for (size_t i = 0; i < GP_MERGE_KINDS; i++)
        if (ids->maps[i].size > 0)
            memset(ids->maps[i].numbers, 0, ids->maps[i].size * sizeof(*ids->maps[i].numbers));
    ids->coro_base = ids->coro_last;
    ids->thread_base = ids->thread_last;
    ids->called_base = ids->called_last;
}

static uint32_t *map_entry(gp_merge_map_t *map, uint32_t number)
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

static bool same_key(const void *owner, uint32_t number, const void *key)
{
    return memcmp(&((const gp_merge_table_t *)owner)->keys[number], key, sizeof(gp_merge_key_t)) == 0;
}

// Append to a table. Returns the number, 0 when memory is short.
static uint32_t add(gp_merge_table_t *table, gp_merge_key_t key)
{
    if (gp_grow(&table->keys, &table->capacity, table->count, sizeof(*table->keys)) < 0)
        return 0;
    table->keys[table->count] = key;
    return (uint32_t)++table->count;
}

static bool is_undefined(const gp_merge_key_t *key)
{
    return key->words[0] == 0 && key->words[1] == 0;
}

uint32_t gp_merge_ids_define(gp_merge_ids_t *ids, gp_merge_kind_t kind, uint32_t number, gp_merge_key_t key,
                             bool *is_new)
{
    gp_merge_table_t *table = &ids->tables[kind];
    uint32_t *entry = map_entry(&ids->maps[kind], number);
    uint64_t hash = gp_hash_more(gp_hash_u64(key.words[0]), key.words[1]);
    uint32_t found = gp_index_find(&table->index, hash, same_key, table, &key);
    *is_new = found == GP_INDEX_NONE;
    if (entry == NULL)
        return 0;
    if (*entry != 0 && is_undefined(&table->keys[*entry - 1])) {
        // It has been referred to: its number is given away, and has to be defined.
        if (*is_new && gp_index_add(&table->index, hash, *entry - 1) < 0)
            return 0;
        table->keys[*entry - 1] = key;
        *is_new = true;
        return *entry;
    }
    if (!*is_new)
        return *entry = found + 1;
    uint32_t added = add(table, key);
    if (added == 0 || gp_index_add(&table->index, hash, added - 1) < 0)
        return 0;
    return *entry = added;
}

uint32_t gp_merge_ids_find(gp_merge_ids_t *ids, gp_merge_kind_t kind, uint32_t number)
{
    uint32_t *entry = number != 0 ? map_entry(&ids->maps[kind], number) : NULL;
    if (entry == NULL)
        return 0;
    if (*entry == 0) // its key is not in the index: no look-up finds it
        *entry = add(&ids->tables[kind], (gp_merge_key_t){0});
    return *entry;
}

uint64_t gp_merge_ids_coro(gp_merge_ids_t *ids, uint64_t id)
{
    if (id == 0)
        return 0;
    id += ids->coro_base;
    if (id > ids->coro_last)
        ids->coro_last = id;
    return id;
}

uint32_t gp_merge_ids_thread(gp_merge_ids_t *ids, uint32_t index)
{
    if (index == 0)
        return 0;
    index += ids->thread_base;
    if (index > ids->thread_last)
        ids->thread_last = index;
    return index;
}

uint32_t gp_merge_ids_called(gp_merge_ids_t *ids, uint32_t number)
{
    if (number == 0)
        return 0;
    number += ids->called_base;
    if (number > ids->called_last)
        ids->called_last = number;
    return number;
}

gp_loc_t gp_merge_ids_loc(gp_merge_ids_t *ids, gp_loc_t loc)
{
    uint32_t module = GP_LOC_MODULE(loc);
    uint64_t offset = GP_LOC_OFFSET(loc);
    if (module == GP_MODULE_PSEUDO || module == 0)
        return loc;
    if (module != GP_MODULE_LANGUAGE)
        return GP_LOC(gp_merge_ids_find(ids, GP_MERGE_MODULES, module), offset);
    uint32_t function = gp_merge_ids_find(ids, GP_MERGE_FUNCTIONS, GP_LANGUAGE_FUNCTION(offset));
    return GP_LOC(module, GP_LANGUAGE_OFFSET(function, GP_LANGUAGE_LINE(offset)));
}

void gp_merge_ids_free(gp_merge_ids_t *ids)
{
    for (size_t i = 0; i < GP_MERGE_KINDS; i++) {
        free(ids->tables[i].keys);
        gp_index_free(&ids->tables[i].index);
        free(ids->maps[i].numbers);
    }
    memset(ids, 0, sizeof(*ids));
}
