// SPDX-License-Identifier: MIT
// The name of a Fiber: its callable's. A zend_fiber has the callable behind its context: a zend_fcall_info, which
// begins with its own size, then a zend_fcall_info_cache, which begins with the function. Where a closure's file stands
// in a zend_op_array differs between versions; it is looked for: a string with a path's looks, and behind it the first
// and the last line.
//
// Source: PHP 8.1 to 8.4, Zend/zend_fibers.h (struct _zend_fiber), zend_API.h (zend_fcall_info), zend_compile.h
// (zend_op_array), zend_types.h (zend_string), zend.h (zend_class_entry).
#include "php_names.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "interpose/interpose.h"

enum {
    CONTEXT_KIND = 8,  // of a zend_fiber_context: what it is the context of
    SEARCH_WORDS = 40, // from the context on
    INFO_BYTES = 64,   // sizeof(zend_fcall_info)
    STRING_LENGTH = 16,
    STRING_TEXT = 24,
    CLASS_NAME = 8,
    CODE_FROM = 96,
    CODE_TO = 232, // where a zend_op_array may have its file name
    USER_FUNCTION = 2,
    TEXT_SIZE = 1024,
    LINES_MAX = 1 << 24,
};

typedef struct function { // the beginning of a zend_function
    unsigned char type, argument_flags[3];
    uint32_t flags;
    uintptr_t name, scope;
} function_t;

static bool php_names_read_string(uintptr_t string, char *text, size_t size)
{
    uint64_t length;
    if (string == 0 || string % sizeof(uint64_t) != 0 || !gp_peek(string + STRING_LENGTH, &length, sizeof(length)) ||
        length == 0 || length >= size || !gp_peek(string + STRING_TEXT, text, length + 1))
        return false;
    return text[length] == '\0' && strlen(text) == length;
}

static bool php_names_is_text(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ')
            return false;
    return true;
}

// The function that the Fiber calls, or 0.
static uintptr_t php_names_callable_of(const void *context)
{
    uint64_t words[SEARCH_WORDS], info[INFO_BYTES / 8 + 1];
    if (!gp_peek((uintptr_t)context, words, sizeof(words)))
        return 0;
    for (size_t i = 0; i < SEARCH_WORDS; i++)
        if (words[i] == INFO_BYTES && gp_peek((uintptr_t)context + 8 * i, info, sizeof(info)) &&
            info[INFO_BYTES / 8] != 0)
            return info[INFO_BYTES / 8];
    return 0;
}

static bool php_names_name_closure(uintptr_t code, char *name, size_t size)
{
    char text[TEXT_SIZE];
    uint32_t lines[2];
    for (uintptr_t at = code + CODE_FROM; at < code + CODE_TO; at += sizeof(uintptr_t)) {
        uintptr_t string;
        if (gp_peek(at, &string, sizeof(string)) && php_names_read_string(string, text, sizeof(text)) &&
            php_names_is_text(text) && gp_peek(at + sizeof(string), lines, sizeof(lines)) && lines[0] > 0 &&
            lines[0] <= lines[1] && lines[1] < LINES_MAX) {
            gp_hook_name_place(name, size, text, lines[0]);
            return true;
        }
    }
    return false;
}

bool gp_php_name(const void *context, char *name, size_t size)
{
    char text[TEXT_SIZE], class[TEXT_SIZE];
    function_t function;
    uintptr_t kind, scope_name;
    const uintptr_t *fiber_class = dlsym(RTLD_DEFAULT, "zend_ce_fiber");
    if (fiber_class == NULL || !gp_peek((uintptr_t)context + CONTEXT_KIND, &kind, sizeof(kind)) || kind != *fiber_class)
        return false; // of an extension's own kind
    uintptr_t code = php_names_callable_of(context);
    if (code == 0 || !gp_peek(code, &function, sizeof(function)) ||
        !php_names_read_string(function.name, text, sizeof(text)) || !php_names_is_text(text))
        return false;
    if (strstr(text, "{closure") != NULL) // in a namespace: App\{closure}
        return function.type == USER_FUNCTION && php_names_name_closure(code, name, size);
    bool is_method = function.scope != 0 && gp_peek(function.scope + CLASS_NAME, &scope_name, sizeof(scope_name)) &&
                     php_names_read_string(scope_name, class, sizeof(class)) && php_names_is_text(class);
    snprintf(name, size, "%s%s%s", is_method ? class : "", is_method ? "::" : "", text);
    return true;
}
