// SPDX-License-Identifier: MIT
#include "export/write/string_table.h"

#include <stdlib.h>
#include <string.h>

static bool string_table_same_text(const void *owner, uint32_t number, const void *key)
{
    return strcmp(((const gp_string_table_t *)owner)->texts[number], key) == 0;
}

static uint32_t string_table_add(gp_string_table_t *table, uint64_t hash, const char *text)
{
    const char *copy = gp_arena_text(&table->arena, text, strlen(text));
    if (copy == NULL || gp_grow(&table->texts, &table->capacity, table->count, sizeof(*table->texts)) < 0 ||
        gp_index_add(&table->index, hash, (uint32_t)table->count) < 0) {
        table->failed = true;
        return 0;
    }
    table->texts[table->count] = copy;
    return (uint32_t)table->count++;
}

uint32_t gp_string_table_number(gp_string_table_t *table, const char *text)
{
    if (table->count == 0)
        string_table_add(table, gp_hash_bytes("", 0), "");
    if (table->failed)
        return 0;
    uint64_t hash = gp_hash_bytes(text, strlen(text));
    uint32_t number = gp_index_find(&table->index, hash, string_table_same_text, table, text);
    return number != GP_INDEX_NONE ? number : string_table_add(table, hash, text);
}

void gp_string_table_free(gp_string_table_t *table)
{
    free(table->texts);
    gp_index_free(&table->index);
    gp_arena_free(&table->arena);
}
