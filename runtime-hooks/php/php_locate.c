// SPDX-License-Identifier: MIT
// Locations of PHP's functions: the collector's.
#include <stdio.h>
#include <string.h>

#include "collect/functions.h"
#include "php_frames.h"

enum { NAME_SIZE = GP_PHP_NAME_SIZE + GP_PHP_CLASS_SIZE + GP_PHP_FILE_SIZE + 64 };

static size_t php_locate_kept(size_t len, size_t size)
{
    return len < size ? len : size;
}

// "function", "Class::method", "{closure:FILE:LINE}" as PHP itself says from 8.4 on; "{main}" and "include FILE".
static size_t php_locate_name(const gp_php_function_t *function, const char *file, size_t file_len, char *name)
{
    static const char text[] = ") : eval()'d code";
    const char *slash = memrchr(file, '/', file_len), *base = slash != NULL ? slash + 1 : file;
    int base_len = (int)(file_len - (size_t)(base - file));
    int name_len = (int)php_locate_kept(function->name_len, GP_PHP_NAME_SIZE);
    int class_len = (int)php_locate_kept(function->class_len, GP_PHP_CLASS_SIZE);
    bool is_text =
        file_len >= sizeof(text) - 1 && memcmp(file + file_len - (sizeof(text) - 1), text, sizeof(text) - 1) == 0;
    if (function->kind == GP_PHP_MAIN)
        return (size_t)snprintf(name, NAME_SIZE, "{main}");
    if (function->kind == GP_PHP_INCLUDE)
        return (size_t)snprintf(name, NAME_SIZE, "%s %.*s", is_text ? "eval" : "include", base_len, base);
    if (function->kind == GP_PHP_FUNCTION && memmem(function->name, (size_t)name_len, "{closure}", 9) != NULL)
        return (size_t)snprintf(name, NAME_SIZE, "{closure:%.*s:%u}", base_len, base, function->first_line);
    return (size_t)snprintf(name, NAME_SIZE, "%.*s%s%.*s", class_len, function->class, class_len > 0 ? "::" : "",
                            name_len, function->name);
}

static uint32_t php_locate_number(const gp_php_function_t *function)
{
    char name[NAME_SIZE];
    bool is_c = function->kind == GP_PHP_C;
    const char *file = is_c ? "[C]" : function->file;
    size_t file_len = is_c ? strlen(file) : php_locate_kept(function->file_len, GP_PHP_FILE_SIZE);
    size_t name_len = php_locate_name(function, file, file_len, name);
    return gp_functions_number(name, name_len, file, file_len, function->first_line);
}

gp_loc_t gp_php_locate(uintptr_t frame, uint64_t ticks)
{
    (void)ticks; // a word never means something else
    static uint32_t numbers[GP_MET_FUNCTIONS];
    uint32_t index = gp_met_word_number(frame), line = gp_php_word_line(frame);
    if (index != 0 && numbers[index] == 0)
        numbers[index] = php_locate_number(&gp_php_runtime.table->functions[index]);
    if (index == 0 || numbers[index] == 0)
        return GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_UNKNOWN);
    return GP_LOC(GP_MODULE_LANGUAGE,
                  GP_LANGUAGE_OFFSET(numbers[index], gp_functions_is_other(numbers[index]) ? 0 : line));
}
