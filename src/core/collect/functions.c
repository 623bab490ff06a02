// SPDX-License-Identifier: MIT
#include "collect/functions.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { FIRST_ROOM = 256 };

static gp_function_name_t *functions; // by number - 1
static uint32_t count, room;
static uint32_t *slots; // open addressing, 2 * room: number, 0 = empty
static size_t text_bytes;
static uint32_t other; // number of "[other functions]", 0 = not needed yet
static _Atomic uint64_t unnamed;

static uint64_t hash_of(const char *name, size_t name_len, const char *file, size_t file_len, uint32_t first_line)
{
    return XXH3_64bits_withSeed(file, file_len, XXH3_64bits_withSeed(name, name_len, first_line));
}

static uint64_t hash_at(uint32_t number)
{
    const gp_function_name_t *function = &functions[number - 1];
    return hash_of(function->name, strlen(function->name), function->file, strlen(function->file),
                   function->first_line);
}

static int grow(void)
{
    uint32_t bigger = room > 0 ? room * 2 : FIRST_ROOM;
    gp_function_name_t *grown = realloc(functions, bigger * sizeof(*grown));
    if (grown == NULL)
        return 0;
    functions = grown;
    uint32_t *table = calloc((size_t)bigger * 2, sizeof(*table));
    if (table == NULL)
        return 0;
    free(slots);
    slots = table;
    room = bigger;
    for (uint32_t number = 1; number <= count; number++) {
        uint32_t slot = (uint32_t)hash_at(number) & (room * 2 - 1);
        while (slots[slot] != 0)
            slot = (slot + 1) & (room * 2 - 1);
        slots[slot] = number;
    }
    return 1;
}

static int is_same(const gp_function_name_t *function, const char *name, size_t name_len, const char *file,
                   size_t file_len, uint32_t first_line)
{
    return function->first_line == first_line && strncmp(function->name, name, name_len) == 0 &&
           function->name[name_len] == '\0' && strncmp(function->file, file, file_len) == 0 &&
           function->file[file_len] == '\0';
}

static uint32_t *slot_for(const char *name, size_t name_len, const char *file, size_t file_len, uint32_t first_line)
{
    uint32_t slot = (uint32_t)hash_of(name, name_len, file, file_len, first_line) & (room * 2 - 1);
    for (uint32_t number; (number = slots[slot]) != 0; slot = (slot + 1) & (room * 2 - 1))
        if (is_same(&functions[number - 1], name, name_len, file, file_len, first_line))
            break;
    return &slots[slot];
}

// There is room for one more.
static uint32_t add(uint32_t *slot, const char *name, size_t name_len, const char *file, size_t file_len,
                    uint32_t first_line)
{
    char *texts = malloc(name_len + file_len + 2);
    if (texts == NULL)
        return 0;
    memcpy(texts, name, name_len);
    texts[name_len] = '\0';
    memcpy(texts + name_len + 1, file, file_len);
    texts[name_len + 1 + file_len] = '\0';
    text_bytes += name_len + file_len + 2;
    functions[count] = (gp_function_name_t){texts, texts + name_len + 1, first_line};
    *slot = ++count;
    // cppcheck-suppress memleak ; the table keeps both texts
    return count;
}

static uint32_t number_of_others(void)
{
    static const char name[] = "[other functions]", file[] = "~";
    atomic_fetch_add_explicit(&unnamed, 1, memory_order_relaxed);
    if (other == 0 && (count < room || grow()))
        other = add(slot_for(name, sizeof(name) - 1, file, 1, 0), name, sizeof(name) - 1, file, 1, 0);
    return other;
}

uint32_t gp_functions_number(const char *name, size_t name_len, const char *file, size_t file_len, uint32_t first_line)
{
    name_len = strnlen(name, name_len); // a NUL within would make two of one
    file_len = strnlen(file, file_len);
    if (count == room && !grow())
        return 0;
    uint32_t *slot = slot_for(name, name_len, file, file_len, first_line);
    if (*slot != 0)
        return *slot;
    if (count >= GP_FUNCTIONS_MAX - 1 || text_bytes + name_len + file_len + 2 > GP_FUNCTIONS_TEXT_MAX)
        return number_of_others();
    return add(slot, name, name_len, file, file_len, first_line);
}

bool gp_functions_is_other(uint32_t number)
{
    return number != 0 && number == other;
}

uint64_t gp_functions_unnamed(void)
{
    return atomic_load_explicit(&unnamed, memory_order_relaxed);
}

const gp_function_name_t *gp_functions_at(uint32_t number)
{
    return number >= 1 && number <= count ? &functions[number - 1] : NULL;
}

uint32_t gp_functions_count(void)
{
    return count;
}
