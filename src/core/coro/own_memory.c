// SPDX-License-Identifier: MIT
#include "coro/own_memory.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_READ // Linux 5.14, glibc 2.35
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

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

void gp_own_touch(void *memory, size_t bytes, bool is_written)
{
    int error = errno;
    uintptr_t first = ((uintptr_t)memory + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
    uintptr_t end = ((uintptr_t)memory + bytes) & ~(uintptr_t)(PAGE_BYTES - 1);
    if (first < end)
        madvise((void *)first, end - first, is_written ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
    errno = error;
}

void gp_own_unmap(void *memory, size_t bytes)
{
    if (memory != NULL)
        munmap(memory, bytes);
}
