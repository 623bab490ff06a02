// SPDX-License-Identifier: MIT
// In the handler: the table of functions, and what they are called.
//
// Source: Ruby 3.1, variable.c (classname), internal/class.h (rb_classext_struct), st.c (st_table), class.c
// (make_singleton_class).
#include "ruby_look.h"

enum {
    OBJECT_BYTES = GP_RUBY_OBJECT_WORDS * GP_LOOK_WORD,
    IS_EMBEDDED = 1 << 13, // RARRAY_EMBED_FLAG
    ARRAY_EMBEDDED = 16,
    ARRAY_POINTER = 32,

    IS_SINGLETON = 1 << 12,
    CLASS = 2,
    MODULE = 3,
    INNER_CLASS = 0x1c,
    INNER_OF = 8, // an inner class stands for this module
    CLASS_EXTENSION = 24,
    TABLE_BOUND = 40,
    TABLE_ENTRIES = 48,
    TABLE_BYTES = 56,
    ENTRY_NAME = 8,
    ENTRY_VALUE = 16,
    ENTRY_BYTES = 24,
    ENTRIES_MAX = 256,
};

GP_UNSANITIZED static bool ruby_functions_is_same(const char *text, uintptr_t at, size_t bytes)
{
    size_t i = 0;
    while (i < bytes && text[i] == ((const volatile char *)at)[i]) // NOLINT(performance-no-int-to-ptr)
        i++;
    return i == bytes;
}

static bool ruby_functions_read_text(gp_peeks_t *look, uintptr_t string, gp_ruby_text_t *text)
{
    uintptr_t words[GP_RUBY_OBJECT_WORDS];
    if (!gp_look_may_read(look, string, sizeof(words)))
        return false;
    for (int i = 0; i < GP_RUBY_OBJECT_WORDS; i++)
        words[i] = gp_look_word(string + (uintptr_t)i * GP_LOOK_WORD);
    return gp_ruby_string_text(words, string, text) && gp_look_is_address(text->at) &&
           (look->is_sure || gp_is_mapped(&look->mapped, text->at, text->len + 1));
}

// A path is a string, or an array that begins with it.
static bool ruby_functions_read_path(gp_peeks_t *look, uintptr_t object, gp_ruby_text_t *text)
{
    if (!gp_look_may_read(look, object, OBJECT_BYTES))
        return false;
    uintptr_t flags = gp_look_word(object);
    if ((flags & GP_RUBY_TYPE_MASK) != GP_RUBY_ARRAY)
        return ruby_functions_read_text(look, object, text);
    uintptr_t first = flags & IS_EMBEDDED ? object + ARRAY_EMBEDDED : gp_look_word(object + ARRAY_POINTER);
    return gp_look_may_read(look, first, GP_LOOK_WORD) && ruby_functions_read_text(look, gp_look_word(first), text);
}

// Cut a path to its end where it is too long.
static size_t ruby_functions_cut(gp_ruby_text_t *text, size_t size)
{
    if (text->len > size) {
        text->at += text->len - size;
        text->len = size;
    }
    return text->len;
}

static bool ruby_functions_has_path(gp_peeks_t *look, const gp_ruby_function_t *function)
{
    gp_ruby_text_t path;
    return ruby_functions_read_path(look, function->key.path, &path) &&
           ruby_functions_cut(&path, sizeof(function->path)) == function->path_len &&
           ruby_functions_is_same(function->path, path.at, path.len);
}

static bool ruby_functions_is(gp_peeks_t *look, const gp_ruby_function_t *function, const gp_ruby_key_t *key)
{
    return function->key.object == key->object && function->key.serial == key->serial &&
           function->key.body == key->body && function->key.code == key->code && function->key.label == key->label &&
           function->key.path == key->path && function->key.first_line == key->first_line &&
           (key->serial != 0 || ruby_functions_has_path(look, function));
}

// The value of a class's variable; 0 = it has none, or too many.
static uintptr_t ruby_functions_variable(gp_peeks_t *look, uintptr_t class, uint64_t name)
{
    uintptr_t extension = gp_look_word(class + CLASS_EXTENSION), table, entries, count;
    uint16_t at = gp_ruby_runtime.layout->class_variables;
    if (!gp_look_may_read(look, extension + at, GP_LOOK_WORD))
        return 0;
    table = gp_look_word(extension + at);
    if (!gp_look_may_read(look, table, TABLE_BYTES))
        return 0;
    count = gp_look_word(table + TABLE_BOUND);
    entries = gp_look_word(table + TABLE_ENTRIES);
    for (uintptr_t i = 0; i < count && i < ENTRIES_MAX; i++, entries += ENTRY_BYTES)
        if (!gp_look_may_read(look, entries, ENTRY_BYTES))
            return 0;
        else if (gp_look_word(entries + ENTRY_NAME) == name)
            return gp_look_word(entries + ENTRY_VALUE);
    return 0;
}

// The type of a class or module, else 0.
static unsigned ruby_functions_type_of(gp_peeks_t *look, uintptr_t class, bool *is_singleton)
{
    uintptr_t flags = gp_look_may_read(look, class, OBJECT_BYTES) ? gp_look_word(class) : 0;
    unsigned type = flags & GP_RUBY_TYPE_MASK;
    *is_singleton = type == CLASS && flags & IS_SINGLETON;
    return type == CLASS || type == MODULE || type == INNER_CLASS ? type : 0;
}

// Copy what the class or module of a method is called, unless it has no name.
static void ruby_functions_describe_class(gp_peeks_t *look, gp_ruby_function_t *function, uintptr_t class)
{
    gp_ruby_text_t name;
    bool is_singleton;
    unsigned type = ruby_functions_type_of(look, class, &is_singleton);
    if (type == INNER_CLASS) {
        class = gp_look_word(class + INNER_OF);
        type = ruby_functions_type_of(look, class, &is_singleton);
    }
    function->is_singleton = is_singleton;
    if (is_singleton) {
        class = ruby_functions_variable(look, class, gp_ruby_runtime.attached);
        type = ruby_functions_type_of(look, class, &is_singleton);
    }
    if ((type != CLASS && type != MODULE) ||
        !ruby_functions_read_text(look, ruby_functions_variable(look, class, gp_ruby_runtime.classpath), &name))
        return;
    function->class_len = (uint32_t)(name.len < sizeof(function->class) ? name.len : sizeof(function->class));
    gp_look_copy(function->class, name.at, function->class_len);
}

// Copy what a function is called. False: it cannot be read.
static bool ruby_functions_describe(gp_peeks_t *look, gp_ruby_function_t *function, const gp_ruby_key_t *key)
{
    gp_ruby_text_t label = {0}, path = {0};
    function->key = *key;
    if (function->kind == GP_RUBY_C)
        return true;
    if (!ruby_functions_read_text(look, key->label, &label) || !ruby_functions_read_path(look, key->path, &path))
        return false;
    label.len = label.len < sizeof(function->label) ? label.len : sizeof(function->label);
    function->label_len = (uint32_t)label.len;
    function->path_len = (uint32_t)ruby_functions_cut(&path, sizeof(function->path));
    gp_look_copy(function->label, label.at, label.len);
    gp_look_copy(function->path, path.at, path.len);
    return true;
}

typedef struct wanted {
    gp_peeks_t *look;
    const gp_ruby_key_t *key;
    enum gp_ruby_kind kind;
    const gp_ruby_method_t *method;
} wanted_t;

static bool ruby_functions_is_wanted(void *wanted, uint32_t number)
{
    const wanted_t *is = wanted;
    return ruby_functions_is(is->look, &gp_ruby_runtime.table->functions[number], is->key);
}

static bool ruby_functions_write(void *wanted, uint32_t number)
{
    const wanted_t *is = wanted;
    const gp_ruby_method_t *method = is->method;
    gp_ruby_function_t *function = &gp_ruby_runtime.table->functions[number];
    bool was_sure = is->look->is_sure;
    function->kind = is->kind;
    function->class_len = 0;
    function->id = method->entry != 0 ? gp_look_word(method->definition + GP_RUBY_DEFINITION_ID) : 0;
    is->look->is_sure = false;
    if (method->entry != 0 && gp_ruby_runtime.classpath != 0)
        ruby_functions_describe_class(is->look, function, gp_look_word(method->entry + GP_RUBY_METHOD_OWNER));
    bool is_read = ruby_functions_describe(is->look, function, is->key);
    is->look->is_sure = was_sure;
    return is_read;
}

uint32_t gp_ruby_function_number(gp_peeks_t *look, const gp_ruby_key_t *key, enum gp_ruby_kind kind,
                                 const gp_ruby_method_t *method)
{
    wanted_t wanted = {look, key, kind, method};
    uint64_t hash = (key->object ^ key->serial << 32 ^ key->serial) * 0x9e3779b97f4a7c15ull;
    return gp_met_number(&gp_ruby_runtime.table->met, hash, &wanted, ruby_functions_is_wanted, ruby_functions_write);
}
