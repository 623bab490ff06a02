// SPDX-License-Identifier: MIT
#include "interpreter/code_graves.h"

#include <stdlib.h>
#include <string.h>

#include "base/index.h"
#include "interpreter/api.h"
#include "interpreter/frame_walk.h"
#include "signal/ticks.h"

enum { BUCKETS = 1024, LINES_MAX = 1 << 20 };

static gp_code_t *graves[BUCKETS];
static size_t count;

static uint64_t code_graves_word_at(const void *object, size_t offset)
{
    uint64_t word;
    memcpy(&word, (const char *)object + offset, sizeof(word));
    return word;
}

// A text of a code object, NULL = there is none.
static const char *code_graves_text(const void *code, size_t offset, size_t *length)
{
    gp_py_t *text = *(gp_py_t *const *)(const void *)((const char *)code + offset);
    ptrdiff_t bytes = 0;
    const char *found = text != NULL && gp_py_type(text) == gp_py.text_type ? gp_py.utf8(text, &bytes) : NULL;
    if (text != NULL && found == NULL)
        gp_py.error_clear();
    *length = (size_t)bytes;
    return found;
}

static void code_graves_copy(gp_code_t *grave, const char *name, const char *file, const char *lines)
{
    grave->name = malloc(grave->name_len + grave->file_len + 2);
    grave->lines = malloc(grave->lines_len + 1);
    if (grave->name == NULL || grave->lines == NULL)
        return;
    memcpy(grave->name, name, grave->name_len + 1);
    memcpy(grave->name + grave->name_len + 1, file, grave->file_len + 1);
    memcpy(grave->lines, lines, grave->lines_len);
}

gp_code_t *gp_code_grave_make(const void *code)
{
    const gp_cpython_layout_t *layout = gp_cpython_runtime.layout;
    gp_py_t *error[3];
    gp_code_t *grave = layout != NULL ? calloc(1, sizeof(*grave)) : NULL;
    if (grave == NULL)
        return NULL;
    gp_py.error_fetch(&error[0], &error[1], &error[2]);
    const char *name = code_graves_text(code, layout->code_name, &grave->name_len);
    const char *file = code_graves_text(code, layout->code_file, &grave->file_len);
    const char *lines = (const char *)(uintptr_t)code_graves_word_at(code, layout->code_lines); // NOLINT
    gp_py.error_restore(error[0], error[1], error[2]);
    grave->address = (uintptr_t)code;
    grave->first_line = (uint32_t)code_graves_word_at(code, layout->code_first_line);
    grave->lines_len = lines != NULL ? code_graves_word_at(lines, GP_CPYTHON_OBJECT_SIZE) : LINES_MAX + 1;
    if (name != NULL && file != NULL && grave->lines_len <= LINES_MAX)
        code_graves_copy(grave, name, file, lines + GP_CPYTHON_BYTES_DATA);
    grave->died = gp_ticks_counter();
    if (grave->name != NULL && grave->lines != NULL)
        return grave;
    gp_code_grave_free(grave);
    return NULL;
}

void gp_code_grave_free(gp_code_t *grave)
{
    if (grave == NULL)
        return;
    free(grave->name);
    free(grave->lines);
    free(grave);
}

static gp_code_t **code_graves_bucket(uintptr_t address)
{
    return &graves[gp_hash_u64(address) % BUCKETS];
}

void gp_code_graves_bury(gp_code_t *grave, uint64_t at)
{
    grave->at = at;
    gp_code_t **link = code_graves_bucket(grave->address);
    while (*link != NULL)
        link = &(*link)->next;
    *link = grave;
    count++;
}

bool gp_code_graves_are_any(void)
{
    return count > 0;
}

gp_code_t *gp_code_graves_find(uintptr_t address, uint64_t ticks)
{
    gp_code_t *grave = count > 0 ? *code_graves_bucket(address) : NULL;
    while (grave != NULL && (grave->address != address || grave->died < ticks))
        grave = grave->next;
    return grave;
}

static void code_graves_clear_bucket(gp_code_t **link, uint64_t upto)
{
    while (*link != NULL) {
        gp_code_t *grave = *link;
        if (grave->at >= upto) {
            link = &grave->next;
            continue;
        }
        *link = grave->next;
        gp_code_grave_free(grave);
        count--;
    }
}

void gp_code_graves_clear(uint64_t upto)
{
    for (size_t i = 0; count > 0 && i < BUCKETS; i++)
        code_graves_clear_bucket(&graves[i], upto);
}
