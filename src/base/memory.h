// SPDX-License-Identifier: MIT
// Memory helpers of the dump half: an arena for what lives as long as its owner, and growing arrays.
//
// Threads: an object belongs to one thread at a time. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct gp_arena { // zero-initialized = empty
    struct gp_arena_block *blocks;
    uint8_t *free_at;
    size_t free_len;
    size_t block_bytes; // of the last one
    size_t bytes;       // of all
} gp_arena_t;

// Allocate zeroed memory, aligned for any type. Returns NULL when memory is short. Freed with the arena only.
void *gp_arena_alloc(gp_arena_t *arena, size_t bytes);

// Copy a text and end it with NUL. Returns the copy or NULL.
char *gp_arena_text(gp_arena_t *arena, const char *text, size_t len);

// Copy bytes. Returns the copy, aligned for any type, or NULL.
void *gp_arena_copy(gp_arena_t *arena, const void *bytes, size_t len);

void gp_arena_free(gp_arena_t *arena);

// Allocate memory that is going to be written from end to end: the kernel is asked for it at once
// and in large pages, where it has them, not a page at a time as it is touched (which costs a
// virtual machine as much as unpacking does). Returns NULL when memory is short; free() it.
void *gp_memory_whole(size_t bytes);
void *gp_memory_zeroed(size_t bytes); // the same, zeroed; written by that
void *gp_memory_spare(size_t bytes);  // for what can be done without: no shortage is counted

// How often this process could not have memory: where it does without, names or lines are missing from what it says.
// Threads: any.
unsigned gp_memory_shortages(void);

// Count it where `block` is NULL. Returns `block`. Threads: any.
void *gp_memory_had(void *block);

// Make an array larger by half; used by gp_grow().
int gp_enlarge(void *array, size_t *capacity, size_t element_bytes);

// Make room for one more element in a malloc()ed array.
//   array:    address of the array's pointer.
//   capacity: in elements, updated.
//   count:    elements in use; on return the array has room for count + 1.
// Returns 0 or -ENOMEM (the array is as it was).
static inline int gp_grow(void *array, size_t *capacity, size_t count, size_t element_bytes)
{
    return count < *capacity ? 0 : gp_enlarge(array, capacity, element_bytes);
}

// Make room for `count` elements in such an array. Returns as gp_grow().
int gp_reserve(void *array, size_t *capacity, size_t count, size_t element_bytes);
