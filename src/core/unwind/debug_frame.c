// SPDX-License-Identifier: MIT
// The published indexes.
#include "unwind/debug_frame.h"

#include <stdatomic.h>

#include "unwind/row_cache.h"

enum { INDEXES_MAX = 128 };

static gp_debug_frame_t indexes[INDEXES_MAX];
static _Atomic unsigned index_count;

const gp_debug_frame_t *gp_debug_frame_find(uintptr_t lo, const void *link_map)
{
    // Acquire: pairs with gp_debug_frame_publish()'s release. The newest first: an address may be used again.
    unsigned count = atomic_load_explicit(&index_count, memory_order_acquire);
    while (count-- > 0)
        if (indexes[count].lo == lo && indexes[count].link_map == link_map)
            return &indexes[count];
    return NULL;
}

void gp_debug_frame_publish(const gp_debug_frame_t *index)
{
    unsigned count = atomic_load_explicit(&index_count, memory_order_relaxed);
    if (count == INDEXES_MAX)
        return;
    indexes[count] = *index;
    // Release: pairs with gp_debug_frame_find()'s acquire.
    atomic_store_explicit(&index_count, count + 1, memory_order_release);
    gp_cache_flush(); // of rows that say "none"
}
