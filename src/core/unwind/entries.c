// SPDX-License-Identifier: MIT
// Where coroutines start, as their hooks tell. Append-only: one writer at a time, handlers read meanwhile.
#include <errno.h>
#include <stdatomic.h>

#include "unwind/resolve.h"
#include "unwind/row_cache.h"
#include "unwind/unwind.h"

enum { ENTRIES_MAX = 256 };

static struct {
    uintptr_t lo, hi;
} entries[ENTRIES_MAX];
static _Atomic unsigned entry_count;

bool gp_entry_meets(uintptr_t lo, uintptr_t hi)
{
    // Acquire: pairs with gp_unwind_entry_add()'s release.
    unsigned count = atomic_load_explicit(&entry_count, memory_order_acquire);
    for (unsigned i = 0; i < count; i++)
        if (lo < entries[i].hi && entries[i].lo < hi)
            return true;
    return false;
}

int gp_unwind_entry_add(uintptr_t lo, uintptr_t hi)
{
    unsigned count = atomic_load_explicit(&entry_count, memory_order_relaxed);
    for (unsigned i = 0; i < count; i++)
        if (entries[i].lo == lo && entries[i].hi == hi)
            return 0;
    if (count == ENTRIES_MAX)
        return -ENOSPC;
    entries[count].lo = lo;
    entries[count].hi = hi;
    // Release: pairs with gp_entry_meets()'s acquire.
    atomic_store_explicit(&entry_count, count + 1, memory_order_release);
    // Rows that were cached before know nothing of it.
    gp_cache_flush();
    return 0;
}
