// SPDX-License-Identifier: MIT
// Locations of Lua's functions: the collector's.
//
// Source: lobject.c (luaO_chunkid).
#include <stdio.h>
#include <string.h>

#include "collect/functions.h"
#include "collect/modules.h"
#include "lua_frames.h"

enum { CHUNK_SHOWN = 60, FILE_SIZE = GP_LUA_SOURCE_SIZE + 16 };

// The file of a function: a path, what the program has called its chunk, or the first line of the chunk.
static size_t lua_locate_file(const gp_lua_function_t *function, char *file)
{
    size_t len = function->source_len;
    if (len == 0)
        return (size_t)snprintf(file, FILE_SIZE, "?");
    if (function->source[0] == '@' || function->source[0] == '=')
        return (size_t)snprintf(file, FILE_SIZE, "%.*s", (int)len - 1, function->source + 1);
    const char *end = memchr(function->source, '\n', len);
    size_t shown = end != NULL ? (size_t)(end - function->source) : len;
    bool is_cut = end != NULL || len == GP_LUA_SOURCE_SIZE || shown > CHUNK_SHOWN;
    shown = shown < CHUNK_SHOWN ? shown : CHUNK_SHOWN;
    return (size_t)snprintf(file, FILE_SIZE, "[string \"%.*s%s\"]", (int)shown, function->source, is_cut ? "..." : "");
}

static uint32_t lua_locate_number(const gp_lua_function_t *function)
{
    char file[FILE_SIZE], name[FILE_SIZE + 32];
    size_t file_len = lua_locate_file(function, file), name_len = function->name_len;
    memcpy(name, function->name, name_len);
    if (function->is_c)
        return gp_functions_number(name, name_len, "[C]", 3, 0);
    const char *slash = memrchr(file, '/', file_len);
    if (function->first_line == 0)
        name_len = (size_t)snprintf(name, sizeof(name), "main chunk");
    else if (name_len == 0)
        name_len = (size_t)snprintf(name, sizeof(name), "function <%s:%u>", slash != NULL ? slash + 1 : file,
                                    function->first_line);
    return gp_functions_number(name, name_len, file, file_len, function->first_line);
}

gp_loc_t gp_lua_locate(uintptr_t frame, uint64_t ticks)
{
    (void)ticks; // a word never means something else
    static uint32_t numbers[GP_LUA_FUNCTIONS];
    uint32_t index = gp_lua_word_function(frame), line = gp_lua_word_line(frame);
    const gp_lua_function_t *function = &gp_lua_runtime.table->functions[index];
    if (index == 0)
        return GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_UNKNOWN);
    if (function->is_c && function->name_len == 0)
        return gp_modules_locate(function->object);
    if (numbers[index] == 0)
        numbers[index] = lua_locate_number(function);
    if (numbers[index] == 0)
        return GP_LOC(GP_MODULE_PSEUDO, GP_PSEUDO_UNKNOWN);
    bool has_lines = !function->is_c && !gp_functions_is_other(numbers[index]);
    return GP_LOC(GP_MODULE_LANGUAGE, GP_LANGUAGE_OFFSET(numbers[index], has_lines ? line : 0));
}
