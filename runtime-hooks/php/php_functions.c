// SPDX-License-Identifier: MIT
// In the handler: functions by what they are called.
#include "php_frames.h"

enum { STRING_LENGTH = 16, STRING_TEXT = 24, TEXT_MAX = 1 << 16, WORD = GP_LOOK_WORD, BYTE_BITS = 8 };

bool gp_php_read_text(gp_peeks_t *look, uintptr_t string, gp_php_text_t *text)
{
    *text = (gp_php_text_t){0};
    if (string == 0)
        return true;
    if (!gp_look_may_read(look, string, STRING_TEXT + WORD))
        return false;
    size_t len = gp_look_word(string + STRING_LENGTH);
    if (len >= TEXT_MAX || (!look->is_sure && !gp_page_is_mapped(&look->mapped, string + STRING_TEXT + len)))
        return false;
    *text = (gp_php_text_t){string + STRING_TEXT, len};
    return true;
}

// The part of a text that there is room for: its beginning, or its end.
static inline gp_php_text_t php_functions_kept(const gp_php_text_t *text, size_t size, bool is_end)
{
    gp_php_text_t kept = *text;
    if (kept.len > size) {
        kept.at += is_end ? kept.len - size : 0;
        kept.len = size;
    }
    return kept;
}

// The first word of a text, or its last one; zeros beyond it. A zend_string's memory is whole words.
static inline uint64_t php_functions_word(const gp_php_text_t *text, bool is_last)
{
    if (text->len >= WORD)
        return gp_look_word(text->at + (is_last ? text->len - WORD : 0));
    return text->len > 0 ? gp_look_word(text->at) & (UINT64_MAX >> (WORD - text->len) * BYTE_BITS) : 0;
}

// All words count: files of one name in many folders, and methods of generated classes, differ in the middle.
GP_UNSANITIZED static inline uint64_t php_functions_fold(const gp_php_text_t *text)
{
    uint64_t fold = php_functions_word(text, true);
    for (size_t i = 0; i + WORD <= text->len; i += WORD)
        fold = (fold << 7 | fold >> 57) * 5 ^ gp_look_word(text->at + i);
    return fold;
}

GP_UNSANITIZED static inline bool php_functions_is_same(const char *text, const gp_php_text_t *seen)
{
    size_t i = 0;
    for (; i + WORD <= seen->len; i += WORD)
        if (gp_look_word((uintptr_t)text + i) != gp_look_word(seen->at + i))
            return false;
    while (i < seen->len && text[i] == ((const volatile char *)seen->at)[i]) // NOLINT(performance-no-int-to-ptr)
        i++;
    return i == seen->len;
}

typedef struct wanted {
    const gp_php_place_t *place;
    gp_php_text_t name, class, file; // the kept parts
} wanted_t;

static bool php_functions_is(void *wanted, uint32_t number)
{
    const wanted_t *is = wanted;
    const gp_php_place_t *place = is->place;
    const gp_php_function_t *function = &gp_php_runtime.table->functions[number];
    return function->first_line == place->first_line && function->last_line == place->last_line &&
           function->kind == place->kind && function->name_len == place->name.len &&
           function->class_len == place->class.len && function->file_len == place->file.len &&
           php_functions_is_same(function->name, &is->name) && php_functions_is_same(function->class, &is->class) &&
           php_functions_is_same(function->file, &is->file);
}

static bool php_functions_write(void *wanted, uint32_t number)
{
    const wanted_t *is = wanted;
    const gp_php_place_t *place = is->place;
    gp_php_function_t *function = &gp_php_runtime.table->functions[number];
    function->kind = place->kind;
    function->first_line = place->first_line;
    function->last_line = place->last_line;
    function->name_len = place->name.len;
    function->class_len = place->class.len;
    function->file_len = place->file.len;
    gp_look_copy(function->name, is->name.at, is->name.len);
    gp_look_copy(function->class, is->class.at, is->class.len);
    gp_look_copy(function->file, is->file.at, is->file.len);
    return true;
}

uint32_t gp_php_number(const gp_php_place_t *place)
{
    wanted_t wanted = {place, php_functions_kept(&place->name, GP_PHP_NAME_SIZE, false),
                       php_functions_kept(&place->class, GP_PHP_CLASS_SIZE, false),
                       php_functions_kept(&place->file, GP_PHP_FILE_SIZE, true)};
    uint64_t hash =
        php_functions_fold(&wanted.name) ^ php_functions_fold(&wanted.class) * 3 ^ php_functions_fold(&wanted.file) * 7;
    hash = (hash ^ hash >> 32 ^ place->first_line ^ (uint64_t)place->file.len << 20) * 0x9e3779b97f4a7c15ull;
    return gp_met_number(&gp_php_runtime.table->met, hash, &wanted, php_functions_is, php_functions_write);
}
