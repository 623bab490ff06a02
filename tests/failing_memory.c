// SPDX-License-Identifier: MIT
#include "failing_memory.h"

#include <stdbool.h>
#include <stdlib.h>

long memory_until_failure = -1;
long memory_held;

static bool fails(void)
{
    return memory_until_failure >= 0 && memory_until_failure-- == 0;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_reallocarray(void *memory, size_t count, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_reallocarray(void *memory, size_t count, size_t bytes);
void __wrap_free(void *memory);

void *__wrap_malloc(size_t bytes)
{
    void *memory = fails() ? NULL : __real_malloc(bytes);
    memory_held += memory != NULL;
    return memory;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    void *memory = fails() ? NULL : __real_calloc(count, bytes);
    memory_held += memory != NULL;
    return memory;
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    void *moved = fails() ? NULL : __real_realloc(memory, bytes);
    memory_held += moved != NULL && memory == NULL;
    return moved;
}

void *__wrap_reallocarray(void *memory, size_t count, size_t bytes)
{
    void *moved = fails() ? NULL : __real_reallocarray(memory, count, bytes);
    memory_held += moved != NULL && memory == NULL;
    return moved;
}

void __wrap_free(void *memory)
{
    memory_held -= memory != NULL;
    __real_free(memory);
}
