// SPDX-License-Identifier: MIT
// Stacks with an unmapped page below them.
#pragma once

#include <stddef.h>
#include <sys/mman.h>

enum { GUARD_BYTES = 4096 };

// Returns the low end of `bytes` bytes, or NULL.
static inline char *guarded_stack(size_t bytes)
{
    char *low = mmap(NULL, bytes + GUARD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (low == MAP_FAILED || mprotect(low, GUARD_BYTES, PROT_NONE) != 0)
        return NULL;
    return low + GUARD_BYTES;
}
