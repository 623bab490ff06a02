// SPDX-License-Identifier: MIT
#include "base/memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE // Linux 5.14, glibc 2.35
#define MADV_POPULATE_WRITE 23
#endif

enum {
    ALIGNMENT = 16,
    PAGE = 4096,
    LARGE_PAGE = 2 * 1024 * 1024,
    WHOLE_MIN = 128 * 1024,
    BLOCK_MIN = 64 * 1024, // with the header
    BLOCK_MAX = LARGE_PAGE,
};

struct gp_arena_block {
    struct gp_arena_block *next;
    _Alignas(ALIGNMENT) uint8_t data[];
};

static _Atomic unsigned shortages;

unsigned gp_memory_shortages(void)
{
    return atomic_load_explicit(&shortages, memory_order_relaxed);
}

void *gp_memory_had(void *block)
{
    if (block == NULL)
        atomic_fetch_add_explicit(&shortages, 1, memory_order_relaxed);
    return block;
}

// The memory is not zeroed: each piece is, when it is in use at once.
static uint8_t *memory_block_add(gp_arena_t *arena, size_t bytes)
{
    struct gp_arena_block *block = gp_memory_whole(sizeof(*block) + bytes);
    if (block == NULL)
        return NULL;
    block->next = arena->blocks;
    arena->blocks = block;
    arena->bytes += bytes;
    return block->data;
}

// Blocks double: few for much, small ones for little.
static void memory_next_block(gp_arena_t *arena)
{
    size_t bytes = arena->block_bytes ? arena->block_bytes * 2 : BLOCK_MIN;
    if (bytes > BLOCK_MAX)
        bytes = BLOCK_MAX;
    arena->block_bytes = bytes;
    bytes -= sizeof(struct gp_arena_block);
    arena->free_at = memory_block_add(arena, bytes);
    arena->free_len = arena->free_at ? bytes : 0;
}

static void *memory_take(gp_arena_t *arena, size_t bytes, size_t alignment)
{
    size_t skip = (size_t)(-(uintptr_t)arena->free_at) & (alignment - 1);
    if (bytes > arena->block_bytes / 4 && bytes > BLOCK_MIN / 4)
        return memory_block_add(arena, bytes);
    if (arena->free_at == NULL || bytes + skip > arena->free_len) {
        memory_next_block(arena);
        skip = 0;
    }
    if (arena->free_at == NULL)
        return NULL;
    void *at = arena->free_at + skip;
    arena->free_at += skip + bytes;
    arena->free_len -= skip + bytes;
    return at;
}

void *gp_arena_alloc(gp_arena_t *arena, size_t bytes)
{
    void *memory = memory_take(arena, bytes ? bytes : 1, ALIGNMENT);
    return memory ? memset(memory, 0, bytes) : NULL;
}

char *gp_arena_text(gp_arena_t *arena, const char *text, size_t len)
{
    char *copy = memory_take(arena, len + 1, 1);
    if (copy == NULL)
        return NULL;
    copy[len] = '\0';
    return memcpy(copy, text, len);
}

void *gp_arena_copy(gp_arena_t *arena, const void *bytes, size_t len)
{
    void *copy = memory_take(arena, len ? len : 1, ALIGNMENT);
    if (copy != NULL && len > 0)
        memcpy(copy, bytes, len);
    return copy;
}

void gp_arena_free(gp_arena_t *arena)
{
    struct gp_arena_block *next;
    for (struct gp_arena_block *block = arena->blocks; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    memset(arena, 0, sizeof(*arena));
}

// Ask the kernel for all of it, a large page at a time: other threads that map memory wait until one is done. A failure
// here changes nothing.
static void memory_populate(char *memory, size_t bytes)
{
    int error = errno;
    char *at = memory + (size_t)(-(uintptr_t)memory & (PAGE - 1));
    char *end = at + ((bytes - (size_t)(at - memory)) & ~(size_t)(PAGE - 1));
    for (size_t len; at < end; at += len) {
        len = LARGE_PAGE - ((uintptr_t)at & (LARGE_PAGE - 1));
        len = len < (size_t)(end - at) ? len : (size_t)(end - at);
        madvise(at, len, MADV_POPULATE_WRITE);
    }
    errno = error;
}

// Large pages as far as at least half of the last one is needed.
static void *memory_large_pages(size_t bytes)
{
    size_t large = (bytes + LARGE_PAGE / 2) & ~(size_t)(LARGE_PAGE - 1);
    int error = errno;
    void *memory;
    if (posix_memalign(&memory, LARGE_PAGE, large > bytes ? large : bytes) != 0) {
        errno = ENOMEM;
        return NULL;
    }
    madvise(memory, large, MADV_HUGEPAGE);
    errno = error;
    return memory;
}

void *gp_memory_spare(size_t bytes)
{
    char *memory = bytes > SIZE_MAX / 2 ? NULL : bytes >= LARGE_PAGE ? memory_large_pages(bytes) : malloc(bytes);
    if (memory != NULL && bytes >= WHOLE_MIN)
        memory_populate(memory, bytes);
    return memory;
}

void *gp_memory_whole(size_t bytes)
{
    return gp_memory_had(gp_memory_spare(bytes));
}

void *gp_memory_zeroed(size_t bytes)
{
    void *memory = gp_memory_whole(bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

static int memory_resize(void **array, size_t *capacity, size_t larger, size_t element_bytes)
{
    void *grown = gp_memory_had(reallocarray(*array, larger, element_bytes));
    if (grown == NULL)
        return -ENOMEM;
    *array = grown;
    *capacity = larger;
    return 0;
}

int gp_enlarge(void *array, size_t *capacity, size_t element_bytes)
{
    size_t larger = *capacity < 16 ? 16 : *capacity + *capacity / 2;
    return memory_resize(array, capacity, larger, element_bytes);
}

int gp_reserve(void *array, size_t *capacity, size_t count, size_t element_bytes)
{
    return count > *capacity ? memory_resize(array, capacity, count, element_bytes) : 0;
}
