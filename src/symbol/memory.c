#include "symbol/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE // Linux 5.14, glibc 2.35
#define MADV_POPULATE_WRITE 23
#endif

enum {
    HEADER_ROOM = 64, // of a block, and malloc()'s own
    BLOCK_MIN = 64 * 1024 - HEADER_ROOM,
    BLOCK_MAX = 1024 * 1024 - HEADER_ROOM,
    ALIGNMENT = 16,
    PAGE = 4096,
    WHOLE_MIN = 128 * 1024,
};

struct gp_arena_block {
    struct gp_arena_block *next;
    _Alignas(ALIGNMENT) uint8_t data[];
};

static uint8_t *block_add(gp_arena_t *arena, size_t bytes)
{
    struct gp_arena_block *block = gp_memory_zeroed(sizeof(*block) + bytes);

    if (block == NULL)
        return NULL;
    block->next = arena->blocks;
    arena->blocks = block;
    return block->data;
}

// Blocks double: few for much, small ones for little.
static void next_block(gp_arena_t *arena)
{
    size_t bytes = arena->block_bytes ? arena->block_bytes * 2 + HEADER_ROOM : BLOCK_MIN;

    if (bytes > BLOCK_MAX)
        bytes = BLOCK_MAX;
    arena->free_at = block_add(arena, bytes);
    arena->free_len = arena->free_at ? bytes : 0;
    arena->block_bytes = bytes;
}

static void *take(gp_arena_t *arena, size_t bytes, size_t alignment)
{
    size_t skip = (size_t)(-(uintptr_t)arena->free_at) & (alignment - 1);

    if (bytes > arena->block_bytes / 4 && bytes > BLOCK_MIN / 4)
        return block_add(arena, bytes);
    if (arena->free_at == NULL || bytes + skip > arena->free_len) {
        next_block(arena);
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
    return take(arena, bytes ? bytes : 1, ALIGNMENT);
}

char *gp_arena_text(gp_arena_t *arena, const char *text, size_t len)
{
    char *copy = take(arena, len + 1, 1);

    if (copy != NULL)
        memcpy(copy, text, len);
    return copy;
}

void *gp_arena_copy(gp_arena_t *arena, const void *bytes, size_t len)
{
    void *copy = gp_arena_alloc(arena, len);

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

// Ask the kernel for all of it at once. What fails here changes nothing.
static void populate(char *memory, size_t bytes)
{
    int error = errno;

    if (memory == NULL || bytes < WHOLE_MIN)
        return;
    char *first = memory + (size_t)(-(uintptr_t)memory & (PAGE - 1));
    size_t len = (bytes - (size_t)(first - memory)) & ~(size_t)(PAGE - 1);
    madvise(first, len, MADV_HUGEPAGE);
    madvise(first, len, MADV_POPULATE_WRITE);
    errno = error;
}

void *gp_memory_whole(size_t bytes)
{
    char *memory = malloc(bytes);

    populate(memory, bytes);
    return memory;
}

void *gp_memory_zeroed(size_t bytes)
{
    char *memory = calloc(1, bytes);

    populate(memory, bytes);
    return memory;
}

static int resize(void **array, size_t *capacity, size_t larger, size_t element_bytes)
{
    void *grown = reallocarray(*array, larger, element_bytes);

    if (grown == NULL)
        return -ENOMEM;
    *array = grown;
    *capacity = larger;
    return 0;
}

int gp_grow(void *array, size_t *capacity, size_t count, size_t element_bytes)
{
    if (count < *capacity)
        return 0;
    size_t larger = *capacity < 16 ? 16 : *capacity + *capacity / 2;
    return resize(array, capacity, larger, element_bytes);
}

int gp_reserve(void *array, size_t *capacity, size_t count, size_t element_bytes)
{
    return count > *capacity ? resize(array, capacity, count, element_bytes) : 0;
}
