// SPDX-License-Identifier: MIT
#include "collect/functions.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "base/memory.h"

typedef struct function_key { // what a function is known by; texts of these lengths
    const char *name, *file;
    size_t name_len, file_len;
    uint32_t first_line;
} function_key_t;

static gp_function_name_t *functions; // by number - 1
static size_t count, capacity;
static gp_index_t function_index;
static size_t text_bytes;
static uint32_t other; // number of "[other functions]", 0 = not needed yet
static _Atomic uint64_t unnamed;

static uint64_t functions_hash(const function_key_t *key)
{
    uint64_t hash = gp_hash_more(gp_hash_bytes(key->name, key->name_len), gp_hash_bytes(key->file, key->file_len));
    return gp_hash_more(hash, key->first_line);
}

static bool functions_is(const void *owner, uint32_t at, const void *wanted)
{
    const gp_function_name_t *function = (const gp_function_name_t *)owner + at;
    const function_key_t *key = wanted;
    return function->first_line == key->first_line && strncmp(function->name, key->name, key->name_len) == 0 &&
           function->name[key->name_len] == '\0' && strncmp(function->file, key->file, key->file_len) == 0 &&
           function->file[key->file_len] == '\0';
}

static uint32_t functions_add(const function_key_t *key)
{
    char *texts = malloc(key->name_len + key->file_len + 2);
    if (texts == NULL || gp_grow(&functions, &capacity, count, sizeof(*functions)) < 0 ||
        gp_index_add(&function_index, functions_hash(key), (uint32_t)count) < 0) {
        free(texts);
        return 0;
    }
    memcpy(texts, key->name, key->name_len);
    texts[key->name_len] = '\0';
    memcpy(texts + key->name_len + 1, key->file, key->file_len);
    texts[key->name_len + 1 + key->file_len] = '\0';
    text_bytes += key->name_len + key->file_len + 2;
    functions[count++] = (gp_function_name_t){texts, texts + key->name_len + 1, key->first_line};
    // cppcheck-suppress memleak ; the table keeps both texts
    return (uint32_t)count;
}

static uint32_t functions_number_of_others(void)
{
    static const function_key_t key = {.name = "[other functions]", .name_len = 17, .file = "~", .file_len = 1};
    atomic_fetch_add_explicit(&unnamed, 1, memory_order_relaxed);
    if (other == 0)
        other = functions_add(&key);
    return other;
}

uint32_t gp_functions_number(const char *name, size_t name_len, const char *file, size_t file_len, uint32_t first_line)
{
    // A NUL within would make two of one.
    const function_key_t key = {name, file, strnlen(name, name_len), strnlen(file, file_len), first_line};
    uint32_t at = gp_index_find(&function_index, functions_hash(&key), functions_is, functions, &key);
    if (at != GP_INDEX_NONE)
        return at + 1;
    if (count >= GP_FUNCTIONS_MAX - 1 || text_bytes + key.name_len + key.file_len + 2 > GP_FUNCTIONS_TEXT_MAX)
        return functions_number_of_others();
    return functions_add(&key);
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
    return (uint32_t)count;
}
