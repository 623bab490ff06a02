// SPDX-License-Identifier: MIT
// Growing arrays of records that others refer to by an id.
//
// Model: items are numbered 0, 1, 2, ... in the order in which they came. Small ids lead to their numbers by an array
// (base/id_map.h), all others by an index. Items move when their array grows: keep an item's number, not its address.
//
// Order of calls: GP_TABLE_BY() or GP_TABLE_PLAIN() -> any -> free. Threads: one at a time. Signals: not safe.
#pragma once

#include "base/id_map.h"

typedef struct gp_table {
    void *items;
    size_t count, capacity;
    size_t item_bytes, id_at, id_bytes; // where in an item its id is
    bool is_sparse;                     // its ids are no small numbers
    gp_id_map_t map;
    gp_index_t index; // of ids that are not in the map
} gp_table_t;

// A table of items of one type: `table` is for the functions below.
#define GP_TABLE(type)                                                                                                 \
    union {                                                                                                            \
        gp_table_t table;                                                                                              \
        struct {                                                                                                       \
            type *items;                                                                                               \
            size_t count;                                                                                              \
        };                                                                                                             \
    }

// An empty table. The id is a field, or `bytes` from this field on.
#define GP_TABLE_PLAIN(type)                                                                                           \
    {                                                                                                                  \
        {                                                                                                              \
            .item_bytes = sizeof(type)                                                                                 \
        }                                                                                                              \
    }
#define GP_TABLE_BY(type, id)                                                                                          \
    {                                                                                                                  \
        {                                                                                                              \
            .item_bytes = sizeof(type), .id_at = offsetof(type, id), .id_bytes = sizeof(((type *)0)->id)               \
        }                                                                                                              \
    }
#define GP_TABLE_BY_PAIR(type, id)                                                                                     \
    {                                                                                                                  \
        {                                                                                                              \
            .item_bytes = sizeof(type), .id_at = offsetof(type, id), .id_bytes = 8                                     \
        }                                                                                                              \
    }
#define GP_TABLE_SPARSE(type, id)                                                                                      \
    {                                                                                                                  \
        {                                                                                                              \
            .item_bytes = sizeof(type), .id_at = offsetof(type, id), .id_bytes = sizeof(((type *)0)->id),              \
            .is_sparse = true                                                                                          \
        }                                                                                                              \
    }

// The id of an item that has two 32-bit fields in its place.
static inline uint64_t gp_table_pair(uint32_t first, uint32_t second)
{
    return (uint64_t)second << 32 | first;
}

// The number of the item that has an id, GP_INDEX_NONE where none has.
uint32_t gp_table_find_far(const gp_table_t *table, uint64_t id);
static inline uint32_t gp_table_find(const gp_table_t *table, uint64_t id)
{
    uint32_t number = gp_id_map_find(&table->map, id);
    return number != GP_INDEX_NONE ? number : gp_table_find_far(table, id);
}

// Append an item: of zeros; with an id; with an id, unless there is one. Each returns the number, GP_INDEX_NONE when
// memory is short.
uint32_t gp_table_append(gp_table_t *table);
uint32_t gp_table_add(gp_table_t *table, uint64_t id);
static inline uint32_t gp_table_need(gp_table_t *table, uint64_t id)
{
    uint32_t number = gp_table_find(table, id);
    return number != GP_INDEX_NONE ? number : gp_table_add(table, id);
}

// Find items by the ids that they have now: after they were put in order, or some were taken out. The first of two
// items with one id is found. Returns 0 or -ENOMEM.
int gp_table_index(gp_table_t *table);

// The memory that a table takes.
size_t gp_table_bytes(const gp_table_t *table);

// Take all items out, and give their memory back.
void gp_table_free(gp_table_t *table);
