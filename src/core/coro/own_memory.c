// SPDX-License-Identifier: MIT
#include "coro/own_memory.h"

#include <sys/mman.h>

enum { PAGE_BYTES = 4096 };

void *gp_own_map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void *gp_own_map_apart(size_t bytes)
{
    size_t room = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES, all = room + 2 * (size_t)PAGE_BYTES;
    unsigned char *memory = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (mprotect(memory + PAGE_BYTES, room, PROT_READ | PROT_WRITE) == 0)
        return memory + PAGE_BYTES;
    munmap(memory, all);
    return NULL;
}

void gp_own_unmap(void *memory, size_t bytes)
{
    if (memory != NULL)
        munmap(memory, bytes);
}
