// SPDX-License-Identifier: MIT
#include "exact/exact_table.h"

#include "exact/exact_memory.h"

static size_t index_bytes(uint32_t slots)
{
    return sizeof(gp_exact_index_t) + (size_t)slots * sizeof(gp_exact_record_t *);
}

static gp_exact_index_t *new_index(uint32_t slots)
{
    gp_exact_index_t *index = gp_exact_alloc(index_bytes(slots));
    if (index != NULL) {
        index->shift = 64 - (uint32_t)__builtin_ctz(slots);
        index->mask = slots - 1;
    }
    return index;
}

static void place(gp_exact_index_t *index, gp_exact_record_t *record)
{
    uint32_t slot = gp_exact_slot(index, record->key);
    while (index->slots[slot] != NULL)
        slot = (slot + 1) & index->mask;
    index->slots[slot] = record;
}

gp_exact_table_t *gp_exact_table_new(gp_thread_t *thread)
{
    gp_exact_table_t *table = gp_exact_alloc(sizeof(*table));
    gp_exact_index_t *index = table != NULL ? new_index(GP_EXACT_FIRST_SLOTS) : NULL;
    if (index == NULL) {
        gp_exact_release(table, sizeof(*table));
        return NULL;
    }
    table->thread = thread;
    table->index = index;
    return table;
}

void gp_exact_table_free(gp_exact_table_t *table)
{
    if (table == NULL)
        return;
    for (gp_exact_index_t *index = table->index; index != NULL;) {
        gp_exact_index_t *older = index->older;
        gp_exact_release(index, index_bytes(index->mask + 1));
        index = older;
    }
    for (gp_exact_chunk_t *chunk = table->chunks; chunk != NULL;) {
        gp_exact_chunk_t *next = chunk->next;
        gp_exact_release(chunk, sizeof(*chunk));
        chunk = next;
    }
    gp_exact_release(table, sizeof(*table));
}

static bool grow_index(gp_exact_table_t *table)
{
    gp_exact_index_t *old = table->index, *index = new_index((old->mask + 1) * 2);
    if (index == NULL)
        return false;
    for (uint32_t slot = 0; slot <= old->mask; slot++)
        if (old->slots[slot] != NULL)
            place(index, old->slots[slot]);
    index->older = old;
    table->index = index;
    return true;
}

gp_exact_record_t *gp_exact_table_get(gp_exact_table_t *table, uint64_t key)
{
    gp_exact_record_t *record = gp_exact_find(table, key);
    if (record != NULL)
        return record;
    if (table->count >= (table->index->mask + 1) / 2 && !grow_index(table))
        return NULL;
    gp_exact_chunk_t *chunk = table->chunks;
    if (chunk == NULL || chunk->count == GP_EXACT_CHUNK) {
        chunk = gp_exact_alloc(sizeof(*chunk));
        if (chunk == NULL)
            return NULL;
        chunk->next = table->chunks;
        table->chunks = chunk;
    }
    record = &chunk->records[chunk->count++];
    record->key = key;
    place(table->index, record);
    table->count++;
    return record;
}

static void sum(gp_exact_record_t *to, const gp_exact_record_t *from)
{
    // The first word of both is the key.
    for (size_t i = 1; i < sizeof(*to) / sizeof(uint64_t); i++)
        ((uint64_t *)to)[i] += __atomic_load_n((const uint64_t *)from + i, __ATOMIC_RELAXED);
}

bool gp_exact_table_sum(gp_exact_table_t *to, const gp_exact_table_t *from)
{
    for (const gp_exact_chunk_t *chunk = from->chunks; chunk != NULL; chunk = chunk->next) {
        for (uint32_t i = 0; i < chunk->count; i++) {
            gp_exact_record_t *record = gp_exact_table_get(to, chunk->records[i].key);
            if (record == NULL)
                return false;
            sum(record, &chunk->records[i]);
        }
    }
    return true;
}
