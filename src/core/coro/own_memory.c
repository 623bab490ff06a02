// SPDX-License-Identifier: MIT
#include "coro/own_memory.h"

#include <sys/mman.h>

void *gp_own_map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void gp_own_unmap(void *memory, size_t bytes)
{
    if (memory != NULL)
        munmap(memory, bytes);
}
