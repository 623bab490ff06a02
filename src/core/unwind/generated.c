// SPDX-License-Identifier: MIT
#include "unwind/generated.h"

#include <stdatomic.h>
#include <stddef.h>

const gp_generated_table_t *_Atomic gp_generated;

bool gp_generated_has(uintptr_t pc)
{
    // Acquire: pairs with gp_generated_look()'s release.
    const gp_generated_table_t *table = atomic_load_explicit(&gp_generated, memory_order_acquire);
    size_t base = 0, len = table != NULL ? table->count : 0;
    if (len == 0)
        return false;
    while (len > 1) {
        size_t half = len / 2;
        base += table->ranges[base + half].lo <= pc ? half : 0;
        len -= half;
    }
    return pc >= table->ranges[base].lo && pc < table->ranges[base].hi;
}
