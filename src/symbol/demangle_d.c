// SPDX-License-Identifier: MIT
// libiberty's demangler of D allocates, unlike its others, and ends the program where this fails. The copy linked here
// (CMakeLists.txt) allocates with these functions, which leave it instead; their memory is freed at once.
#include "symbol/demangle_d.h"

#include <setjmp.h>
#include <string.h>

enum {
    LENGTH_MAX = 4096,    // the demangler's stack grows with it
    MEMORY_MAX = 1 << 20, // back references multiply
    HEADER_BYTES = 16,    // keeps what is behind it aligned
};

typedef struct work {
    gp_arena_t memory;
    jmp_buf too_much;
} work_t;

static _Thread_local work_t *work_now;

char *gp_demangle_d_name(const char *mangled, int options); // libiberty's dlang_demangle()
void *gp_demangle_d_malloc(size_t bytes);
void *gp_demangle_d_realloc(void *block, size_t bytes);
void gp_demangle_d_free(void *block);

void *gp_demangle_d_malloc(size_t bytes)
{
    char *block = NULL;
    if (bytes <= MEMORY_MAX && work_now->memory.bytes <= MEMORY_MAX)
        block = gp_arena_alloc(&work_now->memory, HEADER_BYTES + bytes);
    if (block == NULL)
        longjmp(work_now->too_much, 1);
    memcpy(block, &bytes, sizeof(bytes));
    return block + HEADER_BYTES;
}

void *gp_demangle_d_realloc(void *block, size_t bytes)
{
    size_t before = 0;
    void *larger = gp_demangle_d_malloc(bytes);
    if (block != NULL)
        memcpy(&before, (char *)block - HEADER_BYTES, sizeof(before));
    if (before > 0)
        memcpy(larger, block, before < bytes ? before : bytes);
    return larger;
}

void gp_demangle_d_free(void *block)
{
    (void)block; // with the arena
}

static const char *demangle_d(gp_arena_t *arena, const char *name, work_t *work)
{
    if (setjmp(work->too_much) != 0)
        return NULL;
    const char *text = gp_demangle_d_name(name, 0);
    return text != NULL && text[0] != '\0' ? gp_arena_text(arena, text, strlen(text)) : NULL;
}

const char *gp_demangle_d(gp_arena_t *arena, const char *name)
{
    work_t work = {.memory = {0}};
    if (strncmp(name, "_D", 2) != 0 || strlen(name) > LENGTH_MAX)
        return NULL;
    work_now = &work;
    const char *text = demangle_d(arena, name, &work);
    gp_arena_free(&work.memory);
    return text;
}
